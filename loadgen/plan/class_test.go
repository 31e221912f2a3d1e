package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"firstbreach/internal/slo"
)

func TestClasses(t *testing.T) {
	p, err := Parse("plan.yaml", file(`classes: [{name: chat, weight: 3, priority: 0, headers: {X-Tier: gold}, objectives: [ttft]}, `+
		`{name: batch, weight: 1, prompts: {synthetic: {input_tokens: 900}}, output_tokens: 7, max_in_flight: 9}]`, "target: {url: 'http://h', api: openai-chat, model: m, headers: {X-Team: a}}"))
	if err != nil {
		t.Fatal(err)
	}
	zero := 0
	want := []Class{
		{Name: "chat", Weight: 3, Priority: &zero, Headers: map[string]string{"X-Tier": "gold"}, Objectives: []string{"ttft"}},
		{Name: "batch", Weight: 1, Prompts: &Prompts{Synthetic: &Synthetic{InputTokens: 900}}, OutputTokens: 7, MaxInFlight: 9},
	}
	if d := cmp.Diff(want, p.Classes); d != "" {
		t.Error(d)
	}
	chat, batch := p.ForClass(0), p.ForClass(1)
	if d := cmp.Diff(map[string]string{"X-Team": "a", "X-Tier": "gold"}, chat.Target.Headers); d != "" || *chat.Fixed.Priority != 0 || chat.Fixed.OutputTokens != p.Fixed.OutputTokens {
		t.Errorf("chat: %s, %+v", d, chat.Fixed)
	}
	if batch.Fixed.Prompts.Synthetic.InputTokens != 900 || batch.Fixed.OutputTokens != 7 || batch.Fixed.Priority != nil || len(batch.Target.Headers) != 1 {
		t.Errorf("batch: %+v %v", batch.Fixed, batch.Target.Headers)
	}
	if len(p.Target.Headers) != 1 {
		t.Errorf("the plan's own headers became %v", p.Target.Headers)
	}
	if err := p.CheckObjectives(&slo.File{Objectives: []slo.Objective{{Name: "ttft", Layer: slo.User, Kind: slo.Latency}}}); err != nil {
		t.Error(err)
	}
	err = p.CheckObjectives(&slo.File{Objectives: []slo.Objective{{Name: "success", Layer: slo.User, Kind: slo.Success}}})
	if err == nil || err.Error() != "plan.yaml: classes[0].objectives: ttft is no per-request objective of the SLO file (fix: write some of success)" {
		t.Errorf("an objective that isn't there: %v", err)
	}
}

// In every run of as many requests as the weights add up to each class has its share, spread evenly.
func TestTheMixIsSpread(t *testing.T) {
	p := &Plan{Classes: []Class{{Weight: 5}, {Weight: 1}, {Weight: 2}}}
	var got strings.Builder
	for n := range 16 {
		got.WriteByte("abc"[p.ClassOf(n)])
	}
	if want := "acaabacaacaabaca"; got.String() != want {
		t.Errorf("%s, want %s", got.String(), want)
	}
	if p.ClassOf(8_000_000_000) != p.ClassOf(0) {
		t.Error("the mix doesn't come again after as many requests as the weights add up to")
	}
}

func TestClassFaults(t *testing.T) {
	classes := func(s string) string { return "classes: [{name: a, weight: 1}, {" + s + "}]" }
	for _, c := range []struct{ line, want string }{
		{classes("name: b"), "classes[1].weight: is missing (fix: write its share of the requests, such as weight: 3)"},
		{classes("weight: 1"), "classes[1].name: is missing"},
		{classes("name: b, weight: 0"), "classes[1].weight: 0 is not between 1 and 1000"},
		{classes("name: b, weight: 1.5"), "classes[1].weight:"},
		{classes("name: a, weight: 1"), `classes[1].name: "a" is the name of another class`},
		{classes("name: B 2, weight: 1"), `classes[1].name: "B 2" can't be a label`},
		{classes("name: b, weight: 1, prompts: {}"), "classes[1].prompts: must name exactly one of synthetic, file and sharegpt"},
		{classes("name: b, weight: 1, prompts: {file: none.jsonl}"), "classes[1].prompts.file: none.jsonl can't be read"},
		{classes("name: b, weight: 1, headers: {Authorization: Bearer hunter2}"), "classes[1].headers.Authorization: would put a secret into the plan"},
		{classes("name: b, weight: 1, objectives: []"), "classes[1].objectives: is empty"},
		{classes("name: b, weight: 1, max_in_flight: 0"), "classes[1].max_in_flight: 0 is no load"},
		{classes("name: b, weight: 1, color: red"), "classes[1].color: unknown key"},
		{"classes: [{name: a, weight: 1}]", "classes: has 1 entry"},
		{"classes: {a: 1}", "classes: must be a list"},
	} {
		_, err := Parse("plan.yaml", file(c.line))
		if err == nil {
			t.Errorf("%s is taken", c.line)
			continue
		}
		if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, "plan.yaml:") || !strings.Contains(text, c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.line, err, c.want)
		}
	}
	ollama := "target: {url: 'http://h', api: ollama-chat, model: m}"
	if _, err := Parse("plan.yaml", file(ollama, classes("name: b, weight: 1, priority: 3"))); err == nil || !strings.Contains(err.Error(), "classes[1].priority: is nothing that ollama-chat knows") {
		t.Errorf("a priority that the API doesn't have: %v", err)
	}
}
