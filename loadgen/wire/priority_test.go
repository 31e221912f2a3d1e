package wire

import (
	"strings"
	"testing"
)

// A priority of 0 is sent, none is not; Ollama knows none.
func TestPriority(t *testing.T) {
	zero := 0
	for _, api := range []string{"openai-chat", "openai-completions"} {
		d, err := ByName(api)
		if err != nil {
			t.Fatal(err)
		}
		if b := string(d.Body(Request{Model: "m", Prompt: "p", Priority: &zero})); !strings.Contains(b, `"priority":0`) {
			t.Errorf("%s: %s", api, b)
		}
		if b := string(d.Body(Request{Model: "m", Prompt: "p"})); strings.Contains(b, "priority") {
			t.Errorf("%s: %s", api, b)
		}
	}
}
