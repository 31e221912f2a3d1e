package wire

import (
	"strings"
	"testing"
)

// The length of an answer is held where the API has something for it.
func TestIgnoreEOS(t *testing.T) {
	for _, d := range dialects() {
		held := string(d.Body(Request{Model: "m", Prompt: "p", OutputTokens: 40, IgnoreEOS: true}))
		if want := d.framing() == framedSSE; strings.Contains(held, `"ignore_eos":true,"min_tokens":40`) != want {
			t.Errorf("%s: %s", d.Name(), held)
		}
		if free := string(d.Body(Request{Model: "m", Prompt: "p", OutputTokens: 40})); strings.Contains(free, "eos") || strings.Contains(free, "min_tokens") {
			t.Errorf("%s is asked to hold the length unasked: %s", d.Name(), free)
		}
	}
}
