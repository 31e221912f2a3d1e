package slo

import (
	"os"
	"strings"
	"testing"

	"firstbreach/internal/signal"

	"github.com/google/go-cmp/cmp"
)

const docsPage = "../../docs/slo-file.md"

// example is the code block after a mark in a page.
func example(t *testing.T, page, mark string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, "<!-- example: "+mark+" -->\n```")
	if !ok {
		t.Fatalf("no example %q", mark)
	}
	_, after, _ = strings.Cut(after, "\n")
	code, _, _ := strings.Cut(after, "```")
	return code
}

// The page shows files that really load, and errors that really come.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	if _, err := Parse("slo.yaml", []byte(example(t, page, "loads"))); err != nil {
		t.Error(err)
	}
	_, err = Parse("alerts/slo.yaml", []byte(example(t, page, "bad")))
	if err == nil {
		t.Fatal("the bad example loads")
	}
	want := example(t, page, "faults")
	if *update {
		b := strings.Replace(page, "```\n"+want+"```", "```\n"+err.Error()+"\n```", 1)
		if err := os.WriteFile(docsPage, []byte(b), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, err.Error()+"\n"); diff != "" {
		t.Error(diff)
	}
}

// The page names every key, engine and signal that the file may hold.
func TestDocsAreComplete(t *testing.T) {
	b, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	words := append(signal.Names(), userSignals...)
	for _, s := range gaugeSignals() {
		words = append(words, s.Name)
	}
	for _, k := range []Kind{Latency, Success, Capacity, Recovery, Gauge} {
		words = append(words, keysOf(k)...)
	}
	for _, w := range append(words, everyKind...) {
		if !strings.Contains(string(b), "`"+w+"`") {
			t.Errorf("%s is not described", w)
		}
	}
}
