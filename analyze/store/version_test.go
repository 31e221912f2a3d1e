package store

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The version that buildinfo reports is the one that go.mod requires.
func TestVersionIsTheOneBuiltIn(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/prometheus/prometheus " + libraryVersion + "\n"; !strings.Contains(string(mod), want) {
		t.Errorf("go.mod doesn't require %q: set libraryVersion and prometheusVersion in status.go", want)
	}
	var minor, patch int
	if _, err := fmt.Sscanf(libraryVersion, "v0.%d.%d", &minor, &patch); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d.%d.%d", minor/100, minor%100, patch); prometheusVersion != want {
		t.Errorf("prometheusVersion %s, want %s", prometheusVersion, want)
	}
}
