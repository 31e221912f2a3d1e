package verdict

import (
	"slices"
	"strings"
	"testing"

	"firstbreach/internal/level"
)

func TestLadder(t *testing.T) {
	for _, c := range []struct {
		name   string
		bad    map[int][]int64
		ladder []int
		state  State
		want   string
		reason string
	}{
		{"first breach", map[int][]int64{1: {0, 0, 0}, 2: {1, 0, 1}, 4: {11, 10, 10}, 8: {90, 95, 99}}, []int{1, 2, 4, 8},
			Breach, "1:ok 2:ok 4:breach 8:breach", ""},
		{"flat curve", map[int][]int64{1: {1, 1, 1}, 2: {1, 1, 1}, 4: {1, 1, 1}}, []int{1, 2, 4}, None, "1:ok 2:ok 4:ok", ""},
		{"at the limit", map[int][]int64{1: {0, 0, 0}, 2: {5, 5, 5}}, []int{1, 2}, Inconclusive, "1:ok 2:inconclusive", "concurrency 2 is undecided"},
		{"breach, then pass", map[int][]int64{1: {0, 0, 0}, 2: {20, 20, 20}, 4: {0, 0, 0}}, []int{1, 2, 4}, Inconclusive,
			"1:ok 2:inconclusive 4:ok", "concurrency 2 is undecided"},
		{"one round broke by itself", map[int][]int64{1: {0, 0, 60}}, []int{1}, Inconclusive, "1:inconclusive", "concurrency 1 is undecided"},
		{"ok overall, one round over", map[int][]int64{1: {0, 0, 6}}, []int{1}, Inconclusive, "1:inconclusive", "concurrency 1 is undecided"},
		{"two degraded of three", map[int][]int64{1: {40, 40, 0}}, []int{1}, Breach, "1:breach", ""},
		{"breach at the first step", map[int][]int64{1: {50, 50, 50}, 2: {80, 80, 80}}, []int{1, 2}, Breach, "1:breach 2:breach", ""},
		{"step never measured", map[int][]int64{1: {0, 0, 0}}, []int{1, 2}, NoData, "1:ok 2:no_data", "concurrency 2 is without data"},
		{"two rounds", map[int][]int64{1: {50, 50}}, []int{1}, Inconclusive, "1:inconclusive", "concurrency 1 is undecided"},
		{"five rounds", map[int][]int64{1: {1, 1, 1, 1, 2}, 2: {30, 30, 0, 30, 30}}, []int{1, 2}, Breach, "1:ok 2:breach", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Judge(ladderRun(c.bad, c.ladder...))
			if r.State != c.state || verdicts(r) != c.want || r.Reason != c.reason {
				t.Errorf("%s, %s, %q; want %s, %s, %q", r.State, verdicts(r), r.Reason, c.state, c.want, c.reason)
			}
			if (r.FirstBreach != nil) != (c.state == Breach) {
				t.Errorf("first breach: %+v", r.FirstBreach)
			}
		})
	}
}

func TestFirstBreachBracket(t *testing.T) {
	ok, undecided, broke := []int64{0, 0, 0}, []int64{5, 5, 5}, []int64{30, 30, 30}
	for _, c := range []struct {
		name      string
		bad       map[int][]int64
		lastOK    int // 0: none
		undecided []int
		widened   bool
	}{
		{"neighbours", map[int][]int64{1: ok, 2: ok, 4: broke}, 2, nil, false},
		{"undecided between", map[int][]int64{1: ok, 2: undecided, 4: broke}, 1, []int{2}, true},
		{"undecided below", map[int][]int64{1: undecided, 2: ok, 4: broke}, 2, []int{1}, false},
		{"none held", map[int][]int64{1: undecided, 2: undecided, 4: broke}, 0, []int{1, 2}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := Judge(ladderRun(c.bad, 1, 2, 4)).FirstBreach
			if b == nil || b.Concurrency != 4 {
				t.Fatalf("first breach: %+v", b)
			}
			last := 0
			if b.LastOK != nil {
				last = *b.LastOK
			}
			if last != c.lastOK || !slices.Equal(b.Undecided, c.undecided) || b.Widened != c.widened {
				t.Errorf("last ok %d, undecided %v, widened %v; want %d, %v, %v", last, b.Undecided, b.Widened, c.lastOK, c.undecided, c.widened)
			}
		})
	}
}

// TestFailuresNameTheirOwnObjective has every objective broken by failed requests alone: the latency
// bound is only borrowed, whatever the order of the file; it stands by itself once requests were slow.
func TestFailuresNameTheirOwnObjective(t *testing.T) {
	run := ladderRun(map[int][]int64{1: {0, 0, 0}, 2: {0, 0, 0}}, 1, 2)
	run.Objectives = append(run.Objectives, Objective{Name: "success", Layer: "user", Kind: "success", Signal: "success_ratio", Target: "0.95", TargetText: "95%", Owner: "o", Action: "a"})
	for i := range run.Steps {
		s := &run.Steps[i]
		s.Counts["success"] = Count{Total: 100}
		if s.Concurrency == 2 {
			s.Outcomes = map[string]int64{"ok": 60, "server_error": 40}
			s.Counts["ttft"] = Count{Total: 100, Failed: 40}
			s.Counts["success"] = Count{Total: 100, Failed: 40}
		}
	}
	if b := Judge(run).FirstBreach; b == nil || b.Objective != "success" || len(b.Also) != 1 || b.Also[0] != "ttft" {
		t.Errorf("only failures: %+v", b)
	}
	for i := range run.Steps {
		if run.Steps[i].Concurrency == 2 {
			run.Steps[i].Counts["ttft"] = Count{Total: 100, Slow: 50, Failed: 40}
		}
	}
	if b := Judge(run).FirstBreach; b == nil || b.Objective != "ttft" {
		t.Errorf("slow as well: %+v", b)
	}
}

func TestFirstBreachTellsWhat(t *testing.T) {
	r := Judge(ladderRun(map[int][]int64{1: {0, 0, 0}, 4: {11, 10, 10}}, 1, 4))
	b := r.FirstBreach
	if b.Bad != 31 || b.Total != 300 || b.RoundsBreached != 3 || b.Rounds != 3 || b.Objective != "ttft" || b.Owner != "platform" || *b.Began != 1040 {
		t.Errorf("%+v", b)
	}
	if b.CI[0] < 0.0712 || b.CI[0] > 0.0714 || b.CI[1] < 0.1434 || b.CI[1] > 0.1435 {
		t.Errorf("interval %v", *b.CI)
	}
}

// 58 requests without a miss can't say that a P95 held; 59 can.
func TestFiftyEightAndFiftyNine(t *testing.T) {
	for _, c := range []struct {
		totals []int64
		want   State
		needed int64
	}{{[]int64{20, 19, 19}, Inconclusive, 1}, {[]int64{20, 20, 19}, OK, 0}} {
		run := ladderRun(nil, 1)
		for i, n := range c.totals {
			run.Steps = append(run.Steps, goodStep(PhaseRamp, i+1, 1, 0, n))
		}
		o := Judge(run).Steps[0].Objectives[0]
		if o.Verdict != c.want || o.Needed == nil || *o.Needed != c.needed {
			t.Errorf("%v: %s, needed %v; want %s, %d", c.totals, o.Verdict, o.Needed, c.want, c.needed)
		}
	}
}

func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		name string
		bad  []int64
		want int64 // −1: not by more requests
	}{
		{"decided", []int64{0, 0, 0}, 0},
		{"on the allowance", []int64{5, 5, 5}, -1},
		{"a round over stays over", []int64{0, 0, 6}, -1},
		{"rounds disagree", []int64{0, 0, 60}, -1},
		{"two rounds, held", []int64{0, 0}, 100},
		{"two rounds, broke", []int64{50, 50}, 100},
	} {
		o := Judge(ladderRun(map[int][]int64{1: c.bad}, 1)).Steps[0].Objectives[0]
		got := int64(-1)
		if o.Needed != nil {
			got = *o.Needed
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	// 21 of 300 is one short of a breach. With the same share, so many more would decide.
	o := Judge(ladderRun(map[int][]int64{1: {7, 7, 7}}, 1)).Steps[0].Objectives[0]
	if o.Verdict != Inconclusive || o.Needed == nil || *o.Needed < 1 || *o.Needed > 200 {
		t.Fatalf("%s, %v", o.Verdict, o.Needed)
	}
	n := float64(300 + *o.Needed)
	if k := float64(int(n * 0.07)); AtLeast(k, n, 0.05) > Alpha {
		t.Errorf("%v of %v doesn't decide", k, n)
	}
}

// Three objectives asked together: p = 0.02 for one is not enough, for all of them it is neither.
func TestHolmAtWork(t *testing.T) {
	build := func(bad map[string]int64) Run {
		run := ladderRun(nil, 1)
		run.Objectives = []Objective{p95("a"), p95("b"), p95("c")}
		for round := 1; round <= 3; round++ {
			s := goodStep(PhaseRamp, round, 1, 0, 100)
			s.Counts = map[string]Count{}
			for _, o := range run.Objectives {
				s.Counts[o.Name] = Count{Total: 100, Slow: bad[o.Name]}
			}
			run.Steps = append(run.Steps, s)
		}
		return run
	}
	// 8 of 100 three times: 24 of 300, p = 0.020 alone, 0.059 among three.
	r := Judge(build(map[string]int64{"a": 8}))
	if o := r.Steps[0].Objectives[0]; o.Verdict != Inconclusive || *o.PBreach > Alpha || *o.PBreachAdj <= Alpha || !strings.Contains(o.Reason, "among 3 objectives") {
		t.Errorf("%s p=%v adjusted %v: %s", o.Verdict, *o.PBreach, *o.PBreachAdj, o.Reason)
	}
	// The smallest p names the objective; ties go by the file.
	r = Judge(build(map[string]int64{"b": 40, "c": 80}))
	if r.FirstBreach == nil || r.FirstBreach.Objective != "c" || !slices.Equal(r.FirstBreach.Also, []string{"b"}) {
		t.Errorf("%+v", r.FirstBreach)
	}
	r = Judge(build(map[string]int64{"b": 40, "c": 40}))
	if r.FirstBreach == nil || r.FirstBreach.Objective != "b" {
		t.Errorf("%+v", r.FirstBreach)
	}
}

func TestNoRequestIsNoData(t *testing.T) {
	run := ladderRun(map[int][]int64{1: {0, 0, 0}}, 1)
	run.Objectives = append(run.Objectives, Objective{Name: "tpot", Kind: "latency", Signal: "time_per_output_token", Target: "0.95"})
	for i := range run.Steps {
		run.Steps[i].Counts["tpot"] = Count{Undefined: 100} // 0 of 0
	}
	r := Judge(run)
	o := r.Steps[0].Objective("tpot")
	if o.Verdict != NoData || o.Share != nil || !strings.Contains(o.Reason, "300 ok requests") {
		t.Errorf("%+v", o)
	}
	if r.Steps[0].Verdict != NoData || r.State != NoData {
		t.Errorf("step %s, run %s", r.Steps[0].Verdict, r.State)
	}
}

func TestMissingEdgeVoidsTheObjectiveEverywhere(t *testing.T) {
	run := ladderRun(map[int][]int64{1: {0, 0, 0}, 2: {90, 90, 90}}, 1, 2)
	const why = "no bucket le=2: set always_scrape_classic_histograms: true"
	c := run.Steps[1].Counts["ttft"]
	c.Missing = why
	run.Steps[1].Counts["ttft"] = c
	r := Judge(run)
	if r.State != NoData || verdicts(r) != "1:no_data 2:no_data" {
		t.Errorf("%s %s", r.State, verdicts(r))
	}
	if o := r.Steps[1].Objectives[0]; o.Reason != why {
		t.Errorf("reason %q", o.Reason)
	}
	if c := find(t, r.Checks, checkThreshold); c.Status != Failed || !strings.Contains(c.Detail, "always_scrape_classic_histograms") {
		t.Errorf("%+v", c)
	}
}

func TestAllFailedIsBreach(t *testing.T) {
	run := ladderRun(map[int][]int64{1: {0, 0, 0}, 2: {0, 0, 0}}, 1, 2)
	for i := range run.Steps {
		if s := &run.Steps[i]; s.Concurrency == 2 {
			s.Outcomes = map[string]int64{"server_error": 100}
			s.Counts["ttft"] = Count{Total: 100, Failed: 100} // a fast 503 is not a low latency
			s.SumE2E, s.E2E = 0, Quantiles{}
		}
	}
	r := Judge(run)
	if r.State != Breach || r.FirstBreach.Concurrency != 2 || r.FirstBreach.Failed != 300 || r.FirstBreach.CI[1] != 1 {
		t.Errorf("%s %+v", r.State, r.FirstBreach)
	}
	if m := r.Step(PhaseRamp, 2).Measured; *m.RequestsPerSecond != 0 || *m.SuccessRatio != 0 {
		t.Errorf("a refusal is no throughput: %+v", m)
	}
}

// A stop rule that cuts step 4 in every round: its counts count, and what lies above was not reached.
func TestStopRule(t *testing.T) {
	run := ladderRun(map[int][]int64{1: {0, 0, 0}, 2: {0, 0, 0}, 4: {20, 20, 20}}, 1, 2, 4, 8)
	for i := range run.Steps {
		if s := &run.Steps[i]; s.Concurrency == 4 {
			s.Stopped = "error_ratio 0.5 after 20"
			s.MeasureTo = ptr(*s.MeasureFrom + 0.02)
			s.InFlightSeconds, s.OccupancySeconds = 0.01, 0
			s.Outcomes = map[string]int64{"ok": 5, "transport": 20, "aborted": 3}
			s.Counts["ttft"] = Count{Total: 25, Failed: 20}
		}
	}
	r := Judge(run)
	if r.State != Breach || verdicts(r) != "1:ok 2:ok 4:breach 8:no_data" {
		t.Fatalf("%s %s %v", r.State, verdicts(r), r.Step(PhaseRamp, 4).Reasons)
	}
	if c := find(t, r.Step(PhaseRamp, 4).Rounds[0].Checks, checkLittle); c.Status != NotChecked || !strings.Contains(c.Detail, "too short") {
		t.Errorf("%+v", c)
	}
	if why := r.Step(PhaseRamp, 8).Reasons[0]; !strings.Contains(why, "stop rule") {
		t.Error(why)
	}
	// Cut without a breach, the ladder has an open end, but the missing step is no missing data.
	for i := range run.Steps {
		if s := &run.Steps[i]; s.Concurrency == 4 {
			s.Counts["ttft"] = Count{Total: 25, Failed: 1}
		}
	}
	if r := Judge(run); r.State != Inconclusive {
		t.Errorf("%s: %s", r.State, r.Reason)
	}
}

func TestBaselineBreach(t *testing.T) {
	run := ladderRun(map[int][]int64{1: {50, 50, 50}}, 1)
	for round := 1; round <= 3; round++ {
		run.Steps = append(run.Steps, goodStep(PhaseBaseline, round, 1, 50, 100))
	}
	r := Judge(run)
	if r.State != Breach || r.FirstBreach.Concurrency != 1 || r.FirstBreach.LastOK != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "baseline broke as well") {
		t.Errorf("%s %+v %v", r.State, r.FirstBreach, r.Notes)
	}
	// A baseline that broke under a ladder that held is not a clean run.
	run = ladderRun(map[int][]int64{1: {0, 0, 0}}, 1)
	for round := 1; round <= 3; round++ {
		run.Steps = append(run.Steps, goodStep(PhaseBaseline, round, 1, 50, 100))
	}
	if r := Judge(run); r.State != Inconclusive {
		t.Errorf("%s %s", r.State, r.Reason)
	}
}

func TestCapacity(t *testing.T) {
	ok, undecided, broke := []int64{0, 0, 0}, []int64{5, 5, 5}, []int64{30, 30, 30}
	for _, c := range []struct {
		name  string
		least int
		bad   map[int][]int64
		want  State
	}{
		{"held exactly", 2, map[int][]int64{1: ok, 2: ok, 4: broke}, Held},
		{"broke at it", 4, map[int][]int64{1: ok, 2: ok, 4: broke}, NotHeld},
		{"between two steps", 3, map[int][]int64{1: ok, 2: ok, 4: broke}, Undecided},
		{"no breach, above", 8, map[int][]int64{1: ok, 2: ok, 4: ok}, Undecided},
		{"no breach, within", 4, map[int][]int64{1: ok, 2: ok, 4: ok}, Held},
		{"undecided at it", 2, map[int][]int64{1: ok, 2: undecided, 4: broke}, Undecided},
		{"a higher step speaks for it", 1, map[int][]int64{1: undecided, 2: ok, 4: broke}, Held},
	} {
		run := ladderRun(c.bad, 1, 2, 4)
		run.Objectives = append(run.Objectives, Objective{Name: "capacity", Kind: "capacity", MinConcurrency: c.least, Owner: "o"})
		r := Judge(run)
		if len(r.Capacity) != 1 || r.Capacity[0].Verdict != c.want {
			t.Errorf("%s: %+v, want %s", c.name, r.Capacity, c.want)
		}
	}
}

func TestGauge(t *testing.T) {
	reading := func(over, samples int) map[string]Reading {
		return map[string]Reading{"requests_waiting": {Layer: "service", Mean: ptr(3.), Max: ptr(6.), Over: over, Samples: samples}}
	}
	for _, c := range []struct {
		name   string
		rounds []map[string]Reading
		want   string
	}{
		{"two of three rounds", []map[string]Reading{reading(5, 10), reading(5, 10), reading(0, 10)}, "yes"},
		{"one of three rounds", []map[string]Reading{reading(9, 10), reading(4, 10), reading(0, 10)}, "no"},
		{"no samples", []map[string]Reading{reading(0, 0), nil, {"requests_waiting": {Missing: "no series"}}}, "?"},
	} {
		run := ladderRun(map[int][]int64{1: {0, 0, 0}}, 1)
		run.Objectives = append(run.Objectives, Objective{Name: "queue", Layer: "service", Kind: "gauge", Signal: "requests_waiting", Max: ptr(4.)})
		for i := range run.Steps {
			run.Steps[i].Readings = c.rounds[i]
		}
		r := Judge(run)
		g := r.Steps[0].Gauges[0]
		got := "?"
		if g.Crossed != nil {
			got = map[bool]string{true: "yes", false: "no"}[*g.Crossed]
		}
		if got != c.want || r.Steps[0].Verdict != OK {
			t.Errorf("%s: crossed %s, step %s; want %s, ok: a reading makes no verdict", c.name, got, r.Steps[0].Verdict, c.want)
		}
	}
}

func TestNothingAtAll(t *testing.T) {
	if r := Judge(Run{}); r.State != NoData || r.Reason == "" {
		t.Errorf("%s %q", r.State, r.Reason)
	}
}

func find(t *testing.T, checks []Check, name string) Check {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q in %v", name, checks)
	return Check{}
}

// rateStep is a step of an open loop that passes every gate.
func rateStep(round int, rate float64, bad, total int64) Step {
	s := goodStep(PhaseRamp, round, 0, bad, total)
	window := float64(total) / rate
	s.Rate, s.MeasureTo, s.InFlightSeconds, s.OccupancySeconds = rate, ptr(*s.MeasureFrom+window), window, window
	return s
}

// A ladder of rates breaks first at a rate.
func TestLadderOfRates(t *testing.T) {
	run := ladderRun(nil)
	run.Rates = []float64{2, 2.5, 10, 20}
	for round := 1; round <= 3; round++ {
		run.Steps = append(run.Steps, rateStep(round, 10, 40, 100), rateStep(round, 2, 0, 100), rateStep(round, 2.5, 5, 100))
	}
	r := Judge(run)
	b := r.FirstBreach
	if r.State != Breach || b == nil {
		t.Fatalf("%s %s", r.State, r.Reason)
	}
	if got := b.Level().Words(); got != "rate 10/s" || b.Concurrency != 0 {
		t.Errorf("first breach at %s, concurrency %d", got, b.Concurrency)
	}
	if l, ok := b.LastOKLevel(); !ok || l.String() != "2/s" || b.LastOK != nil {
		t.Errorf("last ok %s %v", l, ok)
	}
	if got := level.List(b.UndecidedLevels()); got != "2.5/s" || !b.Widened {
		t.Errorf("undecided %s, widened %v", got, b.Widened)
	}
	if s := r.At(PhaseRamp, level.Level{Rate: 20}); s == nil || s.Verdict != NoData {
		t.Errorf("the step that was not measured: %+v", s)
	}
	run.Objectives = append(run.Objectives, Objective{Name: "capacity", Kind: "capacity", MinConcurrency: 4})
	if c := Judge(run).Capacity[0]; c.Verdict != Undecided {
		t.Errorf("a capacity in requests in flight from a ladder of rates: %+v", c)
	}
}

// A schedule that the client didn't keep voids the step; the chance in Poisson arrivals doesn't.
func TestAchievedRate(t *testing.T) {
	for name, tc := range map[string]struct {
		due    int64
		window float64
		valid  bool
	}{
		"as asked":                 {100, 10, true},
		"chance":                   {75, 10, true},
		"the client stood still":   {50, 10, false},
		"two clients":              {160, 10, false},
		"many, a little too few":   {9500, 1000, true},
		"many, clearly too few":    {9000, 1000, false},
		"one request at a low one": {1, 0.3, true},
	} {
		s := rateStep(1, 10, 0, tc.due)
		s.MeasureTo = ptr(*s.MeasureFrom + tc.window)
		run := ladderRun(nil)
		run.Steps = []Step{s}
		if r := Judge(run).Steps[0].Rounds[0]; r.Valid != tc.valid {
			t.Errorf("%s: valid %v: %q", name, r.Valid, r.Void())
		}
	}
}
