package run_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// rates makes a ladder of rates of a plan.
func rates(p *plan.Plan, maxInFlight int, rates ...float64) {
	p.Ramp = plan.Ramp{Rate: rates, Arrivals: plan.Constant, MaxInFlight: maxInFlight}
}

// levels writes the steps of the manifest in short.
func levels(m record.Manifest) (s []string) {
	for _, step := range m.Steps {
		mark := ""
		if step.Stopped != "" {
			mark = "!"
		}
		s = append(s, fmt.Sprintf("%d%s:%s%s", step.Round, step.Phase[:2], step.Level(), mark))
	}
	return s
}

func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{})
		o.Plan.Rounds = 1
		rates(o.Plan, 100, 0.5, 4)
		p, m, counts := whole(t, o)
		equal(t, "steps", levels(m), []string{"1ba:1", "1ra:0.5/s", "1ra:4/s", "1re:1"})
		equal(t, "rates", m.Rates, []float64{0.5, 4})
		equal(t, "ladder", m.Ladder, []int{})
		equal(t, "arrivals", m.Arrivals, "constant")
		equal(t, "what Prometheus saw last", p.last, counts)
		equal(t, "ledger", ledger(t, o), withoutZeros(counts))
		// The target takes a second: at 4/s four are in flight, and the fifth finds the first four ended.
		for i, warm := range []int{1, 4} {
			s := m.Steps[i+1]
			equal(t, "finished before measuring", s.Totals["warmup"].Outcomes["ok"] >= warm, true)
			equal(t, "measured", s.Totals["measure"].Outcomes["ok"], 20)
		}
		entries, err := record.ReadLedger(o.Dir + "/ledger.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[float64]int{}
		for _, e := range entries {
			seen[e.Rate]++
			if (e.Rate > 0) == (e.Concurrency > 0) {
				t.Errorf("ledger line %d has rate %v and concurrency %d", e.ID, e.Rate, e.Concurrency)
			}
		}
		if len(seen) != 3 {
			t.Errorf("ledger by rate: %v", seen)
		}
	})
}

// With two in flight at most and a second of service, a rate of 8 drops three of four: the stop rule
// ends the round's ladder there.
func TestOpenLoopStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{})
		o.Plan.Rounds = 2
		rates(o.Plan, 2, 1, 8, 16)
		_, m, _ := whole(t, o)
		equal(t, "steps", levels(m), []string{"1ba:1", "1ra:1/s", "1ra:8/s!", "1re:1", "2ba:1", "2ra:1/s", "2ra:8/s!", "2re:1"})
		if !strings.HasPrefix(m.Reason, "round 1 stopped at ramp step 2, rate 8/s (error_ratio: ") {
			t.Errorf("reason %q", m.Reason)
		}
		if n := m.Steps[2].Totals["measure"].Outcomes["dropped"]; n < 4 {
			t.Errorf("%d dropped", n)
		}
	})
}
