package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firstbreach/internal/generated"
)

func run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = command(args, &out, &errs)
	return status, out.String(), errs.String()
}

const shipped = "../alerts/slo.yaml"

// The dashboards that lie here are what the shipped SLO file gives.
func TestShippedDashboardsAreCurrent(t *testing.T) {
	if status, _, stderr := run("--slo", shipped, "--out", ".", "--check"); status != generated.ExitDone {
		t.Error(stderr)
	}
}

// A renamed service takes its old dashboards with it, and leaves those of others alone.
func TestStaleDashboards(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "slo.yaml")
	for _, service := range []string{"chat", "talk"} {
		if err := os.WriteFile(path, bytes.Replace(text, []byte("service: chat "), []byte("service: "+service+" "), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		if status, _, stderr := run("--slo", path, "--out", out); status != generated.ExitDone {
			t.Fatal(stderr)
		}
		if service == "chat" {
			if err := os.WriteFile(filepath.Join(out, "mine.json"), []byte(`{"uid": "mine"}`), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "gpu-host.json loadtest-talk.json mine.json slo-talk.json" {
		t.Errorf("the folder holds %s", got)
	}
}

func TestBadInput(t *testing.T) {
	if status, _, stderr := run("--slo", "none.yaml", "--out", t.TempDir()); status != generated.ExitUsage || !strings.Contains(stderr, "none.yaml: can't be read") {
		t.Errorf("%d %s", status, stderr)
	}
	if status, _, stderr := run("--slo", offEdge(t), "--out", t.TempDir()); status != generated.ExitUsage ||
		!strings.Contains(stderr, "off.yaml:26: objective ttft: threshold: 700ms is between two bucket edges of vllm:time_to_first_token_seconds, so that no rule could answer it exactly (fix: write 500ms or 750ms, or read") {
		t.Errorf("%d %s", status, stderr)
	}
	if status, _, stderr := run("--slo", shipped, "--slo", shipped, "--out", t.TempDir()); status != generated.ExitUsage || !strings.Contains(stderr, "would replace each other") {
		t.Errorf("%d %s", status, stderr)
	}
}

// offEdge is the shipped SLO file with a threshold that no bucket of the engine has.
func offEdge(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "off.yaml")
	if err := os.WriteFile(path, bytes.Replace(text, []byte("750ms"), []byte("700ms"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
