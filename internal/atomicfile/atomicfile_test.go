package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	for _, text := range []string{"the first, which is longer", "the second", ""} {
		if err := Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("read %q, %v; want %q", got, err, text)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v; want one that others can read", info.Mode(), err)
	}
}

func TestNothingIsLeftOfAWriteThatFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(path, "by a folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("text")); err == nil {
		t.Fatal("a file took the place of a folder")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d entries (%v), want only the folder", len(entries), err)
	}
	if err := Write(filepath.Join(dir, "missing", "file"), nil); err == nil {
		t.Error("written into a folder that isn't there")
	}
}
