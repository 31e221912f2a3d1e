package host

import (
	"os"
	"path/filepath"
	"testing"
)

// A /proc that was named on purpose is never taken for the container's own.
func TestContained(t *testing.T) {
	proc := t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "self/ns"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(proc, "self/ns/pid")
	for namespace, want := range map[string]bool{"": false, initialNamespace: false, "pid:[4026532281]": true} {
		os.Remove(link)
		if namespace != "" {
			if err := os.Symlink(namespace, link); err != nil {
				t.Fatal(err)
			}
		}
		if got := namespaced(proc); got != want {
			t.Errorf("%q: %v, want %v", namespace, got, want)
		}
		if (&Reader{Options: Options{ProcFS: proc}}).Contained() {
			t.Errorf("%q: contained, in spite of a path of its own", namespace)
		}
	}
}
