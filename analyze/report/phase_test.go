package report

import (
	"bytes"
	"strings"
	"testing"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// Phases after the rounds are in every file, and a run without them says nothing of them.
func TestPhases(t *testing.T) {
	run := breachRun()
	res := verdict.Judge(run)
	part := verdict.PartResult{Part: "high", Level: level.Level{Rate: 20}, Expected: verdict.Breach, Verdict: verdict.OK,
		Objectives: []verdict.ObjectiveResult{{Name: "ttft", Verdict: verdict.OK, Total: 400, Good: 399, Slow: 1, Allowance: 0.05}}}
	res.Phases = []verdict.PhaseResult{
		{Phase: verdict.PhaseSoak, Step: 1, Low: level.Level{Concurrency: 4}, High: level.Level{Concurrency: 4}, Held: verdict.Held},
		{Phase: verdict.PhaseFluctuation, Step: 1, Shape: level.Spike, Low: level.Level{Rate: 2}, High: level.Level{Rate: 20}, Held: verdict.NotHeld,
			Reasons: []string{"high: ok at rate 20/s, where the ladder says breach"}, Back: &verdict.Back{After: "the load fell"}, Parts: []verdict.PartResult{part}},
		{Phase: verdict.PhaseTrace, Step: 1, Name: "conversation.jsonl", Low: level.Level{Rate: 2}, High: level.Level{Rate: 9}, Held: verdict.Held},
		{Phase: verdict.PhaseDrill, Step: 1, Name: "restart", Low: level.Level{Concurrency: 2}, High: level.Level{Concurrency: 2}, Held: verdict.Held,
			Back: &verdict.Back{After: "the drill began", Left: true, From: 11.5, To: 12.5}},
		{Phase: verdict.PhaseDrill, Step: 2, Name: "cut", Low: level.Level{Concurrency: 2}, High: level.Level{Concurrency: 2}, Held: verdict.Undecided,
			Back: &verdict.Back{After: "it was undone", Left: true, Censored: true, From: 29}, Reasons: []string{"too few"}},
	}
	d := New(run, res, Meta{})
	write := func(f func(w *bytes.Buffer) error) string {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	files := map[string]string{
		"json": write(func(w *bytes.Buffer) error { return d.WriteJSON(w) }), "md": write(func(w *bytes.Buffer) error { return d.WriteMarkdown(w) }),
		"html": write(func(w *bytes.Buffer) error { return d.WriteHTML(w) }), "junit": write(func(w *bytes.Buffer) error { return d.WriteJUnit(w) }),
	}
	for file, wants := range map[string][]string{
		"json":  {`"held": "not_held"`, `"low": "2/s"`, `"shape": "spike"`, `"from": 11.5`, `"to": 12.5`, `"censored": true`},
		"md":    {"## After the rounds: did it hold?", "spike fluctuation", "rate 2/s to 20/s", "it never left", "11.5 s to 12.5 s after the drill began", "not within 29 s after it was undone", "drill restart", "1 of 400", "trace conversation.jsonl", "rate 2/s to 9/s"},
		"html":  {"After the rounds: did it hold?", "drill restart"},
		"junit": {`name="spike fluctuation at rate 2/s to 20/s: the ladder&#39;s conclusion holds"`, `type="not_held"`, `<skipped message="undecided: too few">`},
	} {
		for _, want := range wants {
			if !strings.Contains(files[file], want) {
				t.Errorf("%s lacks %q", file, want)
			}
		}
	}
	without := New(run, verdict.Judge(run), Meta{})
	if s := write(func(w *bytes.Buffer) error { return without.WriteMarkdown(w) }); strings.Contains(s, "After the rounds") {
		t.Error("a run without such phases speaks of them")
	}
}
