package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const docsPage = "../../docs/plan-file.md"

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
	for _, mark := range []string{"loads", "open", "after", "classes", "lengths"} {
		if _, err := Parse("plan.yaml", []byte(example(t, page, mark))); err != nil {
			t.Errorf("%s: %v", mark, err)
		}
	}
	var lines strings.Builder // in blocks of any size, because they have none
	for i := range 20 {
		fmt.Fprintf(&lines, `{"timestamp": %d, "input_length": 50, "output_length": 5}`+"\n", 1000*i)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "conversation.jsonl"), lines.String())
	for _, mark := range []string{"trace", "replay"} {
		if _, err := Parse(filepath.Join(dir, "plan.yaml"), []byte(example(t, page, mark))); err != nil {
			t.Errorf("%s: %v", mark, err)
		}
	}
	_, err = Parse("loadgen/plan.yaml", []byte(example(t, page, "bad")))
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
