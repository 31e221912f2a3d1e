package verdict

import (
	"strings"
	"testing"
)

// mixedRun is a ladder of two classes that share its slots, three to one. bad are the bad requests of each
// round by class and concurrency.
func mixedRun(bad map[string]map[int]int64, ladder ...int) Run {
	run := ladderRun(nil, ladder...)
	run.Objectives = append(run.Objectives, p95("batch-ttft"), Objective{Name: "capacity", Kind: "capacity", MinConcurrency: 4})
	run.Classes = []Class{{Name: "chat", Objectives: []string{"ttft"}}, {Name: "batch", Objectives: []string{"batch-ttft"}}}
	for _, c := range ladder {
		for round := 1; round <= 3; round++ {
			for class, share := range map[string]float64{"chat": 0.75, "batch": 0.25} {
				k := bad[class][c]
				s := goodStep(PhaseRamp, round, c, k, 100)
				s.Class = class
				// The other class's objective is missed by every request: it must not matter.
				s.Counts = map[string]Count{"ttft": {Total: 100, Slow: 100}, "batch-ttft": {Total: 100, Slow: 100}}
				s.Counts[map[string]string{"chat": "ttft", "batch": "batch-ttft"}[class]] = Count{Total: 100, Slow: k}
				s.InFlightSeconds, s.OccupancySeconds, s.SumE2E = share*s.InFlightSeconds, share*s.OccupancySeconds, share*s.SumE2E
				run.Steps = append(run.Steps, s)
			}
		}
	}
	return run
}

func TestClasses(t *testing.T) {
	for name, tc := range map[string]struct {
		bad           map[string]map[int]int64
		state         State
		class, first  string
		chat, batch   State
		capacity      State
		reasonHas     string
		chatTop, bTop string
	}{
		"both hold": {state: None, chat: None, batch: None, capacity: Held, chatTop: "8", bTop: "8"},
		"low breaks first": {
			bad: map[string]map[int]int64{"batch": {4: 40, 8: 60}, "chat": {8: 30}}, state: Breach, class: "batch", first: "concurrency 4",
			chat: Breach, batch: Breach, capacity: NotHeld, chatTop: "4", bTop: "2",
		},
		"only chat breaks": {
			bad: map[string]map[int]int64{"chat": {8: 30}}, state: Breach, class: "chat", first: "concurrency 8", chat: Breach, batch: None, capacity: Held, chatTop: "4", bTop: "8",
		},
		"one is undecided": {
			bad: map[string]map[int]int64{"batch": {2: 5, 4: 5, 8: 5}}, state: Inconclusive, chat: None, batch: Inconclusive, capacity: Undecided, reasonHas: "class batch: ", chatTop: "8", bTop: "0",
		},
	} {
		r := Judge(mixedRun(tc.bad, 2, 4, 8))
		if r.State != tc.state || !strings.Contains(r.Reason, tc.reasonHas) {
			t.Errorf("%s: %s %q, want %s", name, r.State, r.Reason, tc.state)
		}
		if b := r.FirstBreach; (b != nil) != (tc.first != "") || b != nil && (b.Class != tc.class || b.Level().Words() != tc.first) {
			t.Errorf("%s: first breach %+v, want %s of %s", name, b, tc.first, tc.class)
		}
		if len(r.Classes) != 2 || r.Classes[0].State != tc.chat || r.Classes[1].State != tc.batch ||
			r.Classes[0].Top.String() != tc.chatTop || r.Classes[1].Top.String() != tc.bTop {
			t.Errorf("%s: classes %+v", name, r.Classes)
		}
		if r.Capacity[0].Verdict != tc.capacity {
			t.Errorf("%s: capacity %s, want %s", name, r.Capacity[0].Verdict, tc.capacity)
		}
		if len(r.Steps) != 6 || r.Steps[0].Class == r.Steps[1].Class || r.Steps[0].Concurrency != 2 || r.Steps[5].Concurrency != 8 {
			t.Errorf("%s: steps %+v", name, r.Steps)
		}
		for _, s := range r.Steps {
			if s.ValidRounds != 3 || len(s.Objectives) != 1 {
				t.Errorf("%s: %s of %s: %d valid rounds, objectives %+v", name, s.Level(), s.Class, s.ValidRounds, s.Objectives)
			}
		}
	}
}

// The load generator is held to the mix: half of it missing voids every class, however they share it.
func TestTheMixIsChecked(t *testing.T) {
	run := mixedRun(nil, 4)
	for i := range run.Steps {
		run.Steps[i].InFlightSeconds /= 2
	}
	r := Judge(run)
	if r.State != Invalid || r.Steps[0].ValidRounds != 0 {
		t.Errorf("%s, %d valid rounds", r.State, r.Steps[0].ValidRounds)
	}
	run = mixedRun(nil, 4)
	run.Classes = nil // without a manifest they are found in the steps, and held to everything
	if r := Judge(run); len(r.Classes) != 2 || r.State != Breach {
		t.Errorf("%s, classes %+v", r.State, r.Classes)
	}
}
