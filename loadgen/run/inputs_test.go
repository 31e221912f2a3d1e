package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firstbreach/loadgen/plan"
)

// The turns of a conversation and a line's own answer length reach the request.
func TestConversationsReachTheRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.jsonl")
	line := `{"output_tokens":9,"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, api := range []string{plan.OpenAIChat, plan.OllamaChat} {
		target, err := NewTarget(&plan.Plan{
			Target: plan.Target{URL: "http://127.0.0.1:1", API: api, Model: "m"},
			Fixed:  plan.Fixed{Prompts: plan.Prompts{File: path}, OutputTokens: 64},
		}, "r")
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		var body struct {
			Messages  []plan.Message `json:"messages"`
			MaxTokens int            `json:"max_tokens"`
			Options   struct {
				NumPredict int `json:"num_predict"`
			} `json:"options"`
		}
		if err := json.Unmarshal(target.Body(plan.Stage{Phase: plan.PhaseRamp, Round: 1, Step: 1}, 0), &body); err != nil {
			t.Fatal(err)
		}
		if body.MaxTokens+body.Options.NumPredict != 9 {
			t.Errorf("%s: answers of %d tokens are asked for, not the line's 9", api, body.MaxTokens+body.Options.NumPredict)
		}
		var turns []string
		for _, m := range body.Messages {
			words := strings.Fields(m.Content)
			turns = append(turns, m.Role+" "+words[len(words)-1])
		}
		if got := strings.Join(turns, ", "); got != "system s, user a, assistant b, user c" {
			t.Errorf("%s: %s", api, got)
		}
	}
}
