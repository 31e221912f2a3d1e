package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The shipped plan says what the defaults are, so it must not differ from them.
func TestShippedPlan(t *testing.T) {
	p, err := Load("../plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Environment = Isolated
	want.Target = Target{URL: "http://127.0.0.1:11434", API: OllamaChat, Model: "gemma3:270m"}
	want.Fixed.Prompts.Synthetic = &Synthetic{InputTokens: 256}
	want.Fixed.OutputTokens, want.Fixed.ContextLength = 64, 4096
	want.Ramp.Concurrency = []int{1, 2, 4, 8}
	want.Path, want.Source = p.Path, p.Source
	if diff := cmp.Diff(&want, p); diff != "" {
		t.Error(diff)
	}
	if w := p.Warnings(); len(w) > 0 {
		t.Error(w)
	}
}
