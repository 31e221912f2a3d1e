package oracle

import (
	"math"
	"testing"
)

// The event queue agrees with theory where there is one: exponential work in a closed loop, where the last of
// n waiting clients waits for an Erlang time; and slots for everybody, where TTFT is the prefill itself.
func TestLongRunAgreesWithTheory(t *testing.T) {
	n := 200_000
	if underRace {
		n = 40_000
	}
	for _, s := range Scenarios() {
		if s.Exact == nil {
			continue
		}
		simulated := s
		simulated.Exact = nil
		truth := simulated.Truth(n, 7)
		for _, clients := range s.Ladder {
			got, want := truth[clients][ttft], s.Exact(clients)
			// Requests that wait behind each other are alike: allow for three times the error of independent ones.
			if limit := 3*3*math.Sqrt(want*(1-want)/float64(n)) + 1e-4; math.Abs(got-want) > limit {
				t.Errorf("%s, %d clients: %.5f over the threshold, want %.5f ± %.5f", s.Name, clients, got, want, limit)
			}
		}
	}
}

func TestErlangTail(t *testing.T) {
	for _, c := range []struct {
		n       int
		rate, t float64
		want    float64
	}{
		{0, 2, 1, 0}, {-1, 2, 1, 0}, {1, 2, 1, math.Exp(-2)}, {2, 2, 1, 3 * math.Exp(-2)},
		{3, 1, 6.295794, 0.05}, // half of the 95 % quantile of χ² with 6 degrees of freedom
	} {
		if got := erlangTail(c.n, c.rate, c.t); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%d at rate %v beyond %v: %v, want %v", c.n, c.rate, c.t, got, c.want)
		}
	}
}

// Every scenario has room for all verdicts that are asked of it, and its truth is far enough from the allowance
// to be told: within the error of the simulation nobody could say whether a verdict was right.
func TestScenariosAreDecidable(t *testing.T) {
	if underRace {
		t.Skip("millions of events of one goroutine")
	}
	names, outcomes := map[string]bool{}, map[bool]int{}
	for i, s := range Scenarios() {
		if names[s.Name] {
			t.Errorf("two scenarios are called %s", s.Name)
		}
		names[s.Name] = true
		truth := s.Truth(40_000, uint64(i))
		outcomes[firstBreach(s, truth) > 0]++
		for _, clients := range s.Ladder {
			if w := truth[clients].Worst(); w > 0.0485 && w < 0.0515 {
				t.Errorf("%s, %d clients: a true share of %.4f is on the allowance", s.Name, clients, w)
			}
		}
	}
	if len(names) < 10 || outcomes[true] < 5 || outcomes[false] < 3 {
		t.Errorf("%d scenarios, %d with a breach, %d without", len(names), outcomes[true], outcomes[false])
	}
}
