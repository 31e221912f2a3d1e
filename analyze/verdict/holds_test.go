package verdict

import "testing"

func TestHolds(t *testing.T) {
	four := 4
	step := func(c int, v State) StepResult { return StepResult{Phase: "ramp", Concurrency: c, Verdict: v} }
	for _, c := range []struct {
		name string
		r    Result
		n    int
		ok   bool
	}{
		{"a breach above what held", Result{State: Breach, FirstBreach: &FirstBreach{Concurrency: 8, LastOK: &four}}, 4, true},
		{"a breach at the first step", Result{State: Breach, FirstBreach: &FirstBreach{Concurrency: 1}}, 0, false},
		{"no breach", Result{State: None, Steps: []StepResult{{Phase: "baseline", Concurrency: 1, Verdict: OK}, step(2, OK), step(16, OK), {Phase: "recovery", Concurrency: 32, Verdict: OK}}}, 16, true},
		{"undecided", Result{State: Inconclusive, Steps: []StepResult{step(2, OK), step(4, Inconclusive)}}, 0, false},
		{"void", Result{State: Invalid, Steps: []StepResult{step(2, OK)}}, 0, false},
		{"rates", Result{State: None, Steps: []StepResult{{Phase: "ramp", Rate: 2, Verdict: OK}}}, 0, false},
		{"classes", Result{State: None, Steps: []StepResult{{Phase: "ramp", Concurrency: 4, Class: "batch", Verdict: OK}}}, 0, false},
	} {
		if n, ok := c.r.Holds(); n != c.n || ok != c.ok {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, n, ok, c.n, c.ok)
		}
	}
}
