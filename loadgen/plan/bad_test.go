package plan

import (
	"errors"
	"flag"
	"os"
	"testing"

	"firstbreach/internal/strictyaml"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// One reading of a bad file names every fault: line, key, what is wrong, what to write.
func TestEveryFaultOfABadFile(t *testing.T) {
	_, err := Load("testdata/bad.yaml")
	var listed *strictyaml.Error
	if !errors.As(err, &listed) {
		t.Fatalf("got %v, want a *strictyaml.Error", err)
	}
	got := err.Error() + "\n"
	if *update {
		if err := os.WriteFile("testdata/bad.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/bad.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}
