package capacity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What is written reads back, odd texts included.
func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capacity.yaml")
	want := &File{
		APIVersion: APIVersion, Service: "chat", Engine: "vllm", Run: "20261130T090000Z-1a2b", At: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC),
		Concurrency: 16, Conditions: map[string]string{"model": "org/name:7b", "digest": "1e3", "driver": "on", "note": "a: \"b\" # c"}, Path: path,
	}
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capacity.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: firstbreach/v1\nservice: chat\nengine: vllm\nrun: x\nat: yesterday\nconcurrency: 0\ncolour: red\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	if err == nil {
		t.Fatal("it loads")
	}
	for _, want := range []string{":5: at: \"yesterday\" is not a time", ":6: concurrency: must be at least 1", ":7: colour: unknown key"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if _, err := Load(path + ".none"); err == nil || !strings.Contains(err.Error(), "--write-capacity") {
		t.Errorf("missing file: %v", err)
	}
}
