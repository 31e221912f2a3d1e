package query_test

import (
	"strings"
	"testing"

	"firstbreach/analyze/query"
)

// TestLateReads: what the client read too late to tell is in the slow ones, and told apart.
func TestLateReads(t *testing.T) {
	for _, tt := range []struct {
		late    int
		want    int64
		missing string
	}{{2, 2, ""}, {3, 3, ""}, {4, 0, "4 values of"}} {
		w := newWorld(t)
		spec := demoRun("r1")
		spec.steps[3].late = tt.late
		w.write(spec)
		run, _ := load(t, query.Options{URL: w.serve(), SLO: sloFile(t), RunID: "r1"})
		c := run.Steps[3].Counts["ttft"]
		if c.Late != tt.want || !strings.Contains(c.Missing, tt.missing) || (tt.missing == "") != (c.Missing == "") {
			t.Errorf("%d late: %+v", tt.late, c)
		}
		if other := run.Steps[1].Counts["ttft"]; other.Late != 0 {
			t.Errorf("late reads of another step: %+v", other)
		}
	}
}
