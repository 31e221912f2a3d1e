package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"firstbreach/analyze/store"
	"firstbreach/loadgen/record"
)

// An SLO file that differs from the run's own is used, and terminal and report say so; one with the same
// text is not worth a word.
func TestOtherSLO(t *testing.T) {
	own, err := os.ReadFile("../alerts/slo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := time.Now().Add(-time.Hour)
	if err := record.WriteManifest(dir, record.Manifest{Schema: record.ManifestSchema, Run: "r", State: record.Complete, StartedAt: at, EndedAt: &at, Rounds: 3}); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{record.SLOFile: own, record.PlanFile: []byte(badPlan), "same.yaml": own, "other.yaml": append([]byte("# changed since\n"), own...)} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(dir, record.StoreDir)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for file, differs := range map[string]bool{"same.yaml": false, "other.yaml": true} {
		var stdout, stderr bytes.Buffer
		run([]string{"report", "--run=" + dir, "--slo=" + filepath.Join(dir, file)}, &stdout, &stderr)
		md, err := os.ReadFile(filepath.Join(dir, record.ReportMD))
		if err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		for where, text := range map[string]string{"terminal": stdout.String(), "report": string(md)} {
			if got := strings.Contains(text, "differs from the SLO file that the run was made with"); got != differs {
				t.Errorf("%s, %s: said %v, want %v:\n%s", file, where, got, differs, text)
			}
			if differs && !strings.Contains(text, file) {
				t.Errorf("the %s doesn't name %s", where, file)
			}
		}
	}
}
