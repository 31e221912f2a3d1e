package verdict

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// searched is a run of a search, with as many rounds of 100 requests of each level as it has counts of bad ones, and
// of those that were run once more in the end.
func searched(bad, again map[int][]int64, ladder ...int) Run {
	run := ladderRun(bad, ladder...)
	run.Search = &Search{Min: 1, Max: 64, Looks: 3}
	for n, counts := range again {
		for i, k := range counts {
			s := goodStep(PhaseConfirm, i+1, n, k, 100)
			*s.Start, *s.End = *s.Start+10000, *s.End+10000
			run.Steps = append(run.Steps, s)
		}
	}
	return run
}

func TestSearch(t *testing.T) {
	ok, broke, one := []int64{0, 0, 0}, []int64{30, 30, 30}, []int64{0}
	for _, c := range []struct {
		name         string
		bad, again   map[int][]int64
		ladder       []int
		state        State
		lastOK       int
		breach       int
		exact        bool
		open         []int
		confirmation State
	}{
		{"exact and confirmed", map[int][]int64{1: one, 2: one, 4: ok, 5: broke, 8: {40}}, map[int][]int64{4: ok, 5: broke}, []int{1, 2, 4, 5, 8}, Breach, 4, 5, true, nil, Confirmed},
		{"not confirmed", map[int][]int64{4: ok, 5: broke}, map[int][]int64{4: {4, 5, 5}, 5: broke}, []int{4, 5}, Breach, 4, 5, true, nil, Undecided},
		{"contradicted", map[int][]int64{4: ok, 5: broke}, map[int][]int64{4: ok, 5: ok}, []int{4, 5}, Breach, 4, 5, true, nil, Contradicted},
		{"the last ok broke later", map[int][]int64{4: ok, 5: broke}, map[int][]int64{4: broke, 5: broke}, []int{4, 5}, Breach, 4, 5, true, nil, Contradicted},
		{"open between", map[int][]int64{1: one, 4: ok, 5: {5, 5, 5}, 6: broke}, nil, []int{1, 4, 5, 6}, Breach, 4, 6, false, []int{5}, ""},
		{"broke alone", map[int][]int64{1: broke}, map[int][]int64{1: broke}, []int{1}, Breach, 0, 1, true, nil, Confirmed},
		{"no breach", map[int][]int64{1: one, 2: one, 4: one, 8: ok}, nil, []int{1, 2, 4, 8}, None, 8, 0, false, nil, ""},
		{"budget before a decision", map[int][]int64{1: one, 2: {0, 0}, 4: {30}}, nil, []int{1, 2, 4}, Inconclusive, 0, 0, false, []int{1, 2, 4}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Judge(searched(c.bad, c.again, c.ladder...))
			s := r.Search
			if s == nil || r.State != c.state || s.LastOK != c.lastOK || s.FirstBreach != c.breach || s.Exact != c.exact || !slices.Equal(s.Open, c.open) {
				t.Fatalf("state %s (%s), %+v", r.State, r.Reason, s)
			}
			var got State
			if s.Confirmation != nil {
				got = s.Confirmation.Verdict
				if (got == Confirmed) != (len(s.Confirmation.Reasons) == 0) {
					t.Errorf("%s: reasons %q", got, s.Confirmation.Reasons)
				}
			}
			if got != c.confirmation {
				t.Errorf("confirmation %q, want %q", got, c.confirmation)
			}
		})
	}
}

// TestSearchSpendsAlpha: of a plan's one look 0 of 60 is enough, of the first of three it isn't.
func TestSearchSpendsAlpha(t *testing.T) {
	run := ladderRun(nil, 1)
	for i := range 3 {
		run.Steps = append(run.Steps, goodStep(PhaseRamp, i+1, 1, 0, 20))
	}
	if v := Judge(run).Steps[0].Verdict; v != OK {
		t.Errorf("with a plan: %s", v)
	}
	run.Search = &Search{Min: 1, Max: 1, Looks: 3}
	if v := Judge(run).Steps[0].Verdict; v != Inconclusive {
		t.Errorf("at one of three looks: %s", v)
	}
	run.Search.Looks = 1
	if v := Judge(run).Steps[0].Verdict; v != OK {
		t.Errorf("at a single look: %s", v)
	}
}

func TestDriftOfALevel(t *testing.T) {
	for _, c := range []struct {
		name  string
		bad   []int64
		seen  bool
		worse bool
	}{
		{"slower", []int64{0, 50, 50}, true, true},
		{"faster", []int64{60, 60, 1, 0}, true, false},
		{"to and fro", []int64{0, 60, 0, 60}, false, false},
		{"two rounds", []int64{0, 60}, false, false},
		{"by chance", []int64{5, 6, 7}, false, false},
		{"all alike", []int64{30, 30, 30}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Judge(searched(map[int][]int64{1: {0, 0, 0}, 4: c.bad, 8: {90, 90, 90}}, nil, 1, 4, 8))
			d := r.Search.Drift
			if (d != nil) != c.seen {
				t.Fatalf("drift %+v", d)
			}
			if d == nil {
				return
			}
			if d.Concurrency != 4 || d.Worse != c.worse || d.LastBefore == nil || d.FirstAfter == nil || *d.LastBefore > *d.FirstAfter {
				t.Errorf("%+v", d)
			}
			if r.FirstBreach != nil || r.State != Inconclusive || !strings.Contains(r.Reason, "not with load") {
				t.Errorf("first breach %+v, %s: %s", r.FirstBreach, r.State, r.Reason)
			}
		})
	}
}

// TestFisher compares with the combinations counted out.
func TestFisher(t *testing.T) {
	for _, c := range []struct {
		few, of, bad, total int64
		want                float64
	}{
		{0, 3, 3, 6, 1.0 / 20},
		{1, 10, 12, 24, (66 + 12*220) / 1961256.0},
		{0, 20, 20, 40, 1 / 137846528820.0},
		{3, 3, 3, 6, 1},
	} {
		if got := fisher(c.few, c.of, c.bad, c.total); math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("fisher(%d, %d, %d, %d) = %.12g, want %.12g", c.few, c.of, c.bad, c.total, got, c.want)
		}
	}
}
