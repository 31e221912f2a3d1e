package record

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestDocsNameEveryKey holds the page of the run directory against the types that are written.
func TestDocsNameEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/run-directory.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{Entry{}, Manifest{}, Search{}, ManifestStep{}, Totals{}} {
		for i := range reflect.TypeOf(v).NumField() {
			key, _, _ := strings.Cut(reflect.TypeOf(v).Field(i).Tag.Get("json"), ",")
			if !strings.Contains(string(page), "`"+key+"`") {
				t.Errorf("docs/run-directory.md does not name %T's key %q", v, key)
			}
		}
	}
}
