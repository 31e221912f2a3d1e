package verdict

import (
	"math"
	"strings"
	"testing"
)

// scaled is a ladder whose throughput is given by round.
func scaled(t *testing.T, x map[int][]float64, ladder ...int) Result {
	t.Helper()
	run := ladderRun(map[int][]int64{}, ladder...)
	for _, c := range ladder {
		for i, v := range x[c] {
			s := goodStep(PhaseRamp, i+1, c, 0, 100)
			to := *s.MeasureFrom + 100/v
			s.MeasureTo, s.End = ptr(to), ptr(to+1)
			s.InFlightSeconds, s.OccupancySeconds = float64(c)*100/v, float64(c)*100/v
			run.Steps = append(run.Steps, s)
		}
	}
	return Judge(run)
}

func around(x float64) []float64 { return []float64{x * 0.99, x, x * 1.01} }

// Four slots: linear up to 4, flat from there. Two steps more must not change it, nor may a flat or a
// linear curve get a knee where there is none to see.
func TestKnee(t *testing.T) {
	for _, c := range []struct {
		name  string
		x     map[int][]float64
		steps []int
		state State
		at    int
	}{
		{"four slots", map[int][]float64{1: around(10), 2: around(20), 4: around(40), 8: around(40.5)}, []int{1, 2, 4, 8}, KneeFound, 4},
		{"flat", map[int][]float64{1: around(10), 2: around(10.1), 4: around(9.9), 8: around(10)}, []int{1, 2, 4, 8}, KneeFound, 1},
		{"linear", map[int][]float64{1: around(10), 2: around(20), 4: around(40), 8: around(80)}, []int{1, 2, 4, 8}, KneeNone, 0},
		{"noise", map[int][]float64{1: around(10), 2: around(20), 4: {15, 40, 70}, 8: {15, 40, 70}}, []int{1, 2, 4, 8}, KneeUndecided, 0},
	} {
		s := scaled(t, c.x, c.steps...).Scaling
		if k := s.Throughput; k.State != c.state || k.At != nil && k.At.Concurrency != c.at {
			t.Errorf("%s: %+v", c.name, k)
		}
		if s.USL.Used || s.Kneedle.Used || !strings.Contains(s.USL.Text, "needs 6 steps") {
			t.Errorf("%s: four steps carry no fitted curve: %+v %+v", c.name, s.Kneedle, s.USL)
		}
		for _, l := range s.Laws {
			if math.Abs(*l.L-float64(l.Level.Concurrency)) > 0.01 || math.Abs(*l.X**l.R-*l.L) > 1e-9 {
				t.Errorf("%s: Little's law at %s: X %g, R %g, L %g", c.name, l.Level, *l.X, *l.R, *l.L)
			}
		}
	}
}

// Fitted curves with enough steps: a system of Gunther's shape has its peak found, one with slots is
// refused, and Kneedle agrees with the marginal rule on the slots.
func TestCurves(t *testing.T) {
	ns := []int{1, 2, 4, 6, 8, 12, 16, 24, 32}
	law, slots, line := map[int][]float64{}, map[int][]float64{}, map[int][]float64{}
	for i, n := range ns {
		f := float64(n)
		noise := 1 + 0.004*float64(i%3-1)
		law[n] = around(noise * 10 * f / (1 + 0.05*(f-1) + 0.004*f*(f-1)))
		slots[n] = around(10 * math.Min(f, 6))
		line[n] = around(10 * f)
	}
	if s := scaled(t, law, ns...).Scaling; !s.USL.Used || s.USL.At == nil || math.Abs(*s.USL.At-15.4) > 2 {
		t.Errorf("the peak is at √(0.95/0.004) = 15.4: %+v", s.USL)
	}
	s := scaled(t, slots, ns...).Scaling
	if s.USL.Used || !strings.Contains(s.USL.Text, "not used") {
		t.Errorf("slots are not of that shape: %+v", s.USL)
	}
	if s.Kneedle.At == nil || *s.Kneedle.At != 6 || s.Throughput.At.Concurrency != 6 {
		t.Errorf("knee %+v, by gain %+v, want 6", s.Kneedle, s.Throughput.At)
	}
	if s := scaled(t, line, ns...).Scaling; s.Kneedle.Used {
		t.Errorf("a straight line has no knee: %+v", s.Kneedle)
	}
}

func TestTradeOffWords(t *testing.T) {
	r := scaled(t, map[int][]float64{1: around(10), 2: around(10.9)}, 1, 2)
	if len(r.TradeOffs) != 1 || !strings.Contains(r.TradeOffs[0].Text, "throughput up 9 %") {
		t.Errorf("%+v", r.TradeOffs)
	}
	r = scaled(t, map[int][]float64{1: around(10), 2: {9, 10, 12}}, 1, 2)
	if r.TradeOffs[0].Text != "no change of 5 % or more that every round shows" {
		t.Errorf("noise has no name: %q", r.TradeOffs[0].Text)
	}
}

// recoveryRun is a baseline and a recovery with the given P95s.
func recoveryRun(base, after []float64) Run {
	run := ladderRun(map[int][]int64{1: {0, 0, 0}}, 1)
	run.Objectives = append(run.Objectives, Objective{Name: "back", Kind: "recovery", Within: 60, Owner: "platform"})
	for i := range base {
		for phase, v := range map[string]float64{PhaseBaseline: base[i], PhaseRecovery: after[i]} {
			s := goodStep(phase, i+1, 1, 0, 100)
			if phase == PhaseRecovery {
				for _, at := range []*float64{s.Start, s.MeasureFrom, s.MeasureTo, s.End} {
					*at += 30
				}
				for n := range 8 {
					s.Progress = append(s.Progress, Progress{T: *s.MeasureFrom + float64(n), Counts: map[string]Count{"ttft": {Total: int64(12 * n)}}})
				}
			}
			s.TTFT.P95, s.E2E.P95 = ptr(v), ptr(v)
			run.Steps = append(run.Steps, s)
		}
	}
	return run
}

func TestRecovery(t *testing.T) {
	same := []float64{0.10, 0.101, 0.099}
	for _, c := range []struct {
		name        string
		base, after []float64
		state       State
		objective   State
	}{
		{"the same", same, []float64{0.102, 0.100, 0.103}, Recovered, Held},
		{"half as slow again", same, []float64{0.15, 0.151, 0.149}, Degraded, NotHeld},
		{"scattered", []float64{0.08, 0.1, 0.13}, []float64{0.13, 0.08, 0.1}, Inconclusive, Undecided},
		{"better", same, []float64{0.05, 0.051, 0.049}, Inconclusive, Undecided},
		{"none", nil, nil, NotMeasured, Undecided},
	} {
		r := Judge(recoveryRun(c.base, c.after)).Recovery
		if r.State != c.state || r.Objectives[0].Verdict != c.objective {
			t.Errorf("%s: %s (%s), objective %+v", c.name, r.State, r.Reason, r.Objectives[0])
		}
		if c.state == Recovered && (r.Time == nil || !(r.Time.To > r.Time.From) || r.Time.To > 60) {
			t.Errorf("%s: time %+v is no interval", c.name, r.Time)
		}
	}
}

func TestOnsetIsAnInterval(t *testing.T) {
	var ps []Point
	for i := range 60 {
		v := 1 + 0.1*float64(i%3)
		if i >= 40 {
			v = 3
		}
		if i == 20 { // one sample alone is no onset
			v = 9
		}
		ps = append(ps, Point{float64(i), v})
	}
	n := NormalOf([]float64{1, 1.1, 1.2, 1, 1.1, 1.2}, 0.01)
	at, ok := Onset(ps, n, Detector{Effect: 0.5, Delay: 1}, 21, 59)
	if !ok || at.From >= at.To || at.To != 40 || at.From < 36 {
		t.Errorf("%+v %v, want it to end at 40 and begin shortly before", at, ok)
	}
	if at, ok := Onset(ps[:39], n, Detector{Effect: 0.5}, -1, 38); ok {
		t.Errorf("a single sample is no onset: %+v", at)
	}
	if _, ok := Onset(ps, Normal{}, Detector{}, -1, 59); ok {
		t.Error("without a normal range nothing can leave it")
	}
}

// The cap is checked by the wait of the last in the queue: Erlang's 95th percentile.
func TestQueueCap(t *testing.T) {
	for _, c := range []struct {
		s      float64
		slots  int
		budget float64
		want   int
	}{
		{1, 4, 0, 0},
		{1, 4, 0.5, 0},
		{1, 1, 3.0, 1},
	} {
		if got := queueCap(c.s, c.slots, c.budget); got != c.want {
			t.Errorf("S %g, c %d, budget %g: %d, want %d", c.s, c.slots, c.budget, got, c.want)
		}
	}
	// Twelve ahead at four slots: simulated 8.93 s with S = 2 s; Erlang says 9.7 s at the most.
	if got := queueCap(2, 4, 9.8); got != 13 {
		t.Errorf("%d, want 13: thirteen departures", got)
	}
}

func TestLimits(t *testing.T) {
	run := ladderRun(map[int][]int64{1: {0, 0, 0}, 2: {0, 0, 0}, 4: {90, 90, 90}}, 1, 2, 4)
	for i := range run.Steps {
		run.Steps[i].TTFT.P95 = ptr(0.5)
	}
	l := Judge(run).Limits
	if !l.Applies || l.MaxConcurrency > 2 || l.QueueTimeout != 1.5 || l.RetryAfter < 1 {
		t.Errorf("%+v", l)
	}
	for _, x := range l.List {
		if x.From != FromMeasured && x.From != FromModelled && x.From != FromInferred || x.Inputs == "" {
			t.Errorf("%+v says not where it comes from", x)
		}
	}
	if l := Judge(ladderRun(map[int][]int64{1: {90, 90, 90}}, 1)).Limits; l.Applies || l.Reason == "" {
		t.Errorf("no step held: %+v", l)
	}
}
