package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firstbreach/loadgen/record"
)

// TestCalibrate has the program measure itself for a moment and keep the table with a run.
func TestCalibrate(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, record.ManifestFile), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "calibrate", "--streams=1,4", "--rate=200", "--warmup=50ms", "--measure=300ms", "--run="+dir)
	if code := p.exit(t); code != exitDone {
		t.Fatalf("exit status %d: %s", code, p.said())
	}
	if said := p.said(); !strings.Contains(said, "TTFT error p50") || !strings.Contains(said, "measuring 4 streams") {
		t.Errorf("said %s", said)
	}
	raw, err := os.ReadFile(filepath.Join(dir, record.Calibration))
	if err != nil {
		t.Fatal(err)
	}
	var kept calibration
	if err := json.Unmarshal(raw, &kept); err != nil {
		t.Fatal(err)
	}
	if len(kept.Levels) != 2 || kept.Levels[1].Streams != 4 || kept.Levels[1].Failed != 0 || kept.Levels[1].Chunk.N == 0 || kept.ChunksPerSecond != 200 {
		t.Errorf("%s", raw)
	}
}

func TestCalibrateRefuses(t *testing.T) {
	for flag, want := range map[string]string{
		"--streams=50;200":          "write them as 50,200,500",
		"--streams=0":               "from 1 to 4096",
		"--rate=0":                  "from 0.1 to 1000",
		"--measure=1ms":             "at least 0 and 100ms",
		"--run=/nonexistent/of/run": "no run directory",
	} {
		var stderr bytes.Buffer
		if code := command(t.Context(), []string{"calibrate", flag}, &bytes.Buffer{}, &stderr); code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit status %d, %q", flag, code, stderr.String())
		}
	}
}
