package oracle

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"firstbreach/analyze/verdict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// named are the scenarios of these names.
func named(t *testing.T, names ...string) (out []Scenario) {
	t.Helper()
	for _, s := range Scenarios() {
		if slices.Contains(names, s.Name) {
			out = append(out, s)
		}
	}
	if len(out) != len(names) {
		t.Fatalf("%d of %q", len(out), names)
	}
	return out
}

// TestKnownAnswers is the small form of `analyze known-answers`: scenarios whose first breach is beyond doubt
// are found, whatever the seed, through a store, its queries and the verdict.
func TestKnownAnswers(t *testing.T) {
	want := map[string]int{"slot-bound": 8, "KV-bound": 6, "error-bound": 8, "rejecting": 8, "no breach": 0, "first step breach": 1, "warm-up cache": 8}
	names := []string{"slot-bound", "KV-bound", "error-bound", "rejecting", "no breach", "first step breach", "warm-up cache"}
	if underRace {
		names = names[:1]
	}
	s := Study{Scenarios: named(t, names...), Runs: 1, Seed: 11, Truth: 20_000}
	n := 0
	if err := s.Run(t.Context(), func(int, int) { n++ }); err != nil {
		t.Fatal(err)
	}
	if n != len(names) {
		t.Errorf("%d runs", n)
	}
	for i, trials := range s.Trials {
		name := s.Scenarios[i].Name
		if truth := firstBreach(s.Scenarios[i], s.truth[i]); truth != want[name] {
			t.Errorf("%s: the oracle says %d, want %d", name, truth, want[name])
		}
		for _, r := range trials {
			if r.Claimed != want[name] || r.FalseBreach || r.FalseOK || r.State == verdict.Invalid {
				t.Errorf("%s, seed %d: claimed %d (%s), want %d: %+v", name, r.Seed, r.Claimed, r.State, want[name], r.Steps)
			}
		}
	}
	if c := s.Count(); c.Decided != c.Clear || c.Clear < 4*len(names) {
		t.Errorf("%d of %d clear steps decided", c.Decided, c.Clear)
	}
}

// The same seed gives the same run.
func TestRunIsReproducible(t *testing.T) {
	s := named(t, "bursts")[0]
	s.Ladder, s.Requests = []int{1, 8}, 40
	truth := map[int]Shares{1: {ttft: 0.015}, 8: {ttft: 0.015}}
	var runs [2]Trial
	for i := range runs {
		var err error
		if runs[i], err = s.Run(t.Context(), 3, truth); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(runs[0], runs[1]); d != "" {
		t.Error(d)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	s := Study{Scenarios: named(t, "no breach"), Runs: 2, Truth: 1000}
	if err := s.Run(ctx, func(int, int) { t.Error("a run was finished") }); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

// What counts as wrong, and what as decided.
func TestCompareAndCount(t *testing.T) {
	s := Scenario{Name: "made up", Ladder: []int{1, 2, 4}}
	truth := map[int]Shares{1: {ttft: 0.005}, 2: {ttft: 0.03, success: 0.02}, 4: {ttft: 0.2, success: 0.02}}
	result := func(first int, objective string, said ...verdict.State) verdict.Result {
		r := verdict.Result{State: verdict.Inconclusive}
		for i, v := range said {
			r.Steps = append(r.Steps, verdict.StepResult{Phase: verdict.PhaseRamp, Concurrency: s.Ladder[i], Verdict: v})
		}
		if first > 0 {
			r.State, r.FirstBreach = verdict.Breach, &verdict.FirstBreach{Concurrency: first, Objective: objective}
		}
		return r
	}
	for name, c := range map[string]struct {
		result               verdict.Result
		falseBreach, falseOK bool
		clear, decided       int
	}{
		"right":                         {result(4, ttft, verdict.OK, verdict.OK, verdict.Breach), false, false, 2, 2},
		"careful":                       {result(4, ttft, verdict.OK, verdict.Inconclusive, verdict.Breach), false, false, 2, 2},
		"undecided":                     {result(0, "", verdict.OK, verdict.OK, verdict.Inconclusive), false, false, 2, 1},
		"a breach too early":            {result(2, ttft, verdict.OK, verdict.Breach, verdict.Breach), true, false, 2, 2},
		"the wrong objective":           {result(4, success, verdict.OK, verdict.OK, verdict.Breach), true, false, 2, 2},
		"a breach that was called ok":   {result(0, "", verdict.OK, verdict.OK, verdict.OK), false, true, 2, 2},
		"void":                          {result(0, "", verdict.Invalid, verdict.Invalid, verdict.Invalid), false, false, 2, 0},
		"nothing said of the last step": {result(0, "", verdict.OK, verdict.OK), false, false, 2, 1},
	} {
		one := s.compare(1, c.result, truth)
		if one.FalseBreach != c.falseBreach || one.FalseOK != c.falseOK {
			t.Errorf("%s: false breach %v, false ok %v", name, one.FalseBreach, one.FalseOK)
		}
		study := Study{Scenarios: []Scenario{s}, Trials: [][]Trial{{one}}, truth: []map[int]Shares{truth}}
		if n := study.Count(); n.Clear != c.clear || n.Decided != c.decided {
			t.Errorf("%s: %d of %d clear steps decided", name, n.Decided, n.Clear)
		}
		var out bytes.Buffer
		if err := study.Write(&out); err != nil || !strings.Contains(out.String(), "1: 0.5 %, 2: 3 %, 4: 20 %") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		count Count
		says  string // "" when all is well
	}{
		{Count{Runs: 200, FalseBreach: 4, FalseOK: 4, Clear: 100, Decided: 85}, ""},
		{Count{Runs: 200, FalseBreach: 5, Clear: 100, Decided: 85}, "false breach in 5 of 200"},
		{Count{Runs: 200, FalseOK: 5, Clear: 100, Decided: 85}, "false ok in 5 of 200"},
		{Count{Runs: 200, Clear: 100, Decided: 84}, "84 of 100 clear steps"},
		{Count{Runs: 20, Clear: 100, Decided: 100}, "false breach in 0 of 20"}, // too few to show it
	} {
		got := strings.Join(c.count.Faults(), "; ")
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%+v: %q, want %q", c.count, got, c.says)
		}
	}
}
