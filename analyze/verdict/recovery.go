package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"firstbreach/internal/figures"

	"gonum.org/v1/gonum/stat/distuv"
)

// The margins within which the recovery is the same as the baseline.
const (
	latencyMargin    = 1.20
	throughputMargin = 1.10
)

// The states of a recovery.
const (
	Recovered   State = "recovered"    // shown to be the same as the baseline
	Degraded    State = "degraded"     // shown to be worse
	NotMeasured State = "not_measured" // there is no baseline or no recovery to compare
)

// Recovery says whether the service was back at its baseline after the load. Not to see a difference
// is not enough: two one-sided t tests on the ratio must show that it lies within the margin
// (Schuirmann 1987).
type Recovery struct {
	State      State
	Reason     string
	Measures   []RecoveryMeasure
	Held       []string  // what stayed taken, and is no fault by itself
	Time       *Interval // from the end of the load until every objective was in band, over all rounds
	Censored   bool      // it was not yet when the recovery step ended: Time.From is the least
	Objectives []RecoveryObjective
}

// RecoveryMeasure is one quantity, recovery ÷ baseline.
type RecoveryMeasure struct {
	Name, Unit    string
	Before, After float64
	Low, High     *float64 // 90 % interval of the ratio; nil with fewer than two rounds
	Margin        float64
	State         State
	Reason        string
}

// RecoveryObjective is the verdict on a recovery objective of the SLO file.
type RecoveryObjective struct {
	Name                   string
	Within                 float64 // seconds
	Verdict                State   // held, not_held, undecided
	Reason                 string
	Owner, Action, Runbook string
}

// Interval is a stretch of time in which something happened; of a moment nothing is claimed.
type Interval struct{ From, To float64 }

// judgeRecovery compares the first recovery step with the first baseline step.
func (r *Result) judgeRecovery(run Run) {
	rec := r.recovery(run)
	for _, o := range run.Objectives {
		if o.Kind == "recovery" {
			x := RecoveryObjective{Name: o.Name, Within: o.Within, Owner: o.Owner, Action: o.Action, Runbook: o.Runbook}
			x.Verdict, x.Reason = rec.within(o.Within)
			rec.Objectives = append(rec.Objectives, x)
		}
	}
	r.Recovery = &rec
}

func (r *Result) firstOf(phase string) *StepResult {
	for i := range r.Steps {
		if r.Steps[i].Phase == phase && r.Steps[i].ValidRounds > 0 {
			return &r.Steps[i]
		}
	}
	return nil
}

func (r *Result) recovery(run Run) Recovery {
	base, after := r.firstOf(PhaseBaseline), r.firstOf(PhaseRecovery)
	switch {
	case base == nil:
		return Recovery{State: NotMeasured, Reason: "no valid baseline to compare with"}
	case after == nil:
		return Recovery{State: NotMeasured, Reason: "no valid step after the load"}
	case base.Level() != after.Level():
		return Recovery{State: NotMeasured, Reason: fmt.Sprintf("the baseline had %s, the recovery %s: give both the same", base.Level().Words(), after.Level().Words())}
	}
	var rec Recovery
	for _, q := range quantities() {
		switch q.what {
		case "TTFT P95", "E2E P95":
			rec.add(q, *base, *after, latencyMargin)
		case "throughput":
			rec.add(q, *base, *after, throughputMargin)
		}
	}
	rec.Time, rec.Censored = recoveryTime(run, *after)
	rec.hold(*base, *after)
	rec.conclude(*base, *after)
	return rec
}

func (rec *Recovery) add(q quantity, base, after StepResult, margin float64) {
	xs, okX := perRound(base, q.of)
	ys, okY := perRound(after, q.of)
	if !okX || !okY {
		return
	}
	m := RecoveryMeasure{Name: q.what, Unit: q.unit, Before: mean(xs), After: mean(ys), Margin: margin, State: Inconclusive}
	if len(xs) < 2 || len(ys) < 2 {
		m.Reason = "one round has no spread to judge by"
		rec.Measures = append(rec.Measures, m)
		return
	}
	mx, vx := logMean(xs)
	my, vy := logMean(ys)
	t := distuv.StudentsT{Sigma: 1, Nu: float64(len(xs) + len(ys) - 2)}.Quantile(1 - Alpha)
	half := t * math.Sqrt(vx/float64(len(xs))+vy/float64(len(ys)))
	low, high := math.Exp(my-mx-half), math.Exp(my-mx+half)
	m.Low, m.High = &low, &high
	worse := low > margin
	if q.more {
		worse = high < 1/margin
	}
	switch {
	case worse:
		m.State = Degraded
	case low > 1/margin && high < margin:
		m.State = Recovered
	case low > margin || high < 1/margin:
		m.Reason = "better than the baseline: the baseline was not warm yet, or the two are not alike"
	default:
		m.Reason = "the rounds differ too much to show that it is the same"
	}
	rec.Measures = append(rec.Measures, m)
}

// hold names what the service keeps after the load.
func (rec *Recovery) hold(base, after StepResult) {
	for _, name := range []string{"memory_used", "gpu_memory_used"} {
		b, a := base.Readings[name].Mean, after.Readings[name].Mean
		if b != nil && a != nil && *a > latencyMargin**b {
			rec.Held = append(rec.Held, fmt.Sprintf("%s is %s times that of the baseline: engines keep what they allocated; it is no leak by itself", words(name), figures.Write(*a / *b, 3)))
		}
	}
}

// conclude joins the measures, the objectives and the queue.
func (rec *Recovery) conclude(base, after StepResult) {
	var worse, open []string
	for _, m := range rec.Measures {
		switch m.State {
		case Degraded:
			worse = append(worse, fmt.Sprintf("%s is %s times that of the baseline", m.Name, figures.Write(m.After/m.Before, 3)))
		case Inconclusive:
			open = append(open, m.Name+": "+m.Reason)
		}
	}
	for _, o := range after.Objectives {
		switch o.Verdict {
		case Breach:
			worse = append(worse, o.Name+" is still broken")
		case Inconclusive, NoData:
			if b := base.Objective(o.Name); b == nil || b.Verdict != o.Verdict || o.Total == 0 || o.Bad() > b.Bad() {
				open = append(open, o.Name+" is "+words(string(o.Verdict)))
			}
		}
	}
	if b, a := base.Readings["requests_waiting"], after.Readings["requests_waiting"]; b.Max != nil && a.Mean != nil && *a.Mean > *b.Max+0.5 {
		worse = append(worse, fmt.Sprintf("%s requests still wait on average, at most %s at the baseline", figures.Write(*a.Mean, 3), figures.Write(*b.Max, 3)))
	}
	switch {
	case base.Verdict == Breach:
		rec.State, rec.Reason = Inconclusive, "the baseline itself broke: there is nothing to come back to"
	case len(worse) > 0:
		rec.State, rec.Reason = Degraded, strings.Join(worse, "; ")
	case len(rec.Measures) == 0:
		rec.State, rec.Reason = Inconclusive, "no latency or throughput to compare"
	case len(open) > 0:
		rec.State, rec.Reason = Inconclusive, strings.Join(open, "; ")
	default:
		rec.State = Recovered
	}
}

// recoveryTime is when every objective was in band again, counted from the end of the load: the
// widest interval of the valid rounds, so that it holds for each.
func recoveryTime(run Run, after StepResult) (*Interval, bool) {
	var out *Interval
	censored := false
	for _, round := range after.Rounds {
		if !round.Valid {
			continue
		}
		i := slices.IndexFunc(run.Steps, func(s Step) bool {
			return s.Phase == PhaseRecovery && s.Round == round.Round && s.Step == round.Step && s.Level() == after.Level()
		})
		if i < 0 || run.Steps[i].Start == nil || run.Steps[i].End == nil {
			continue
		}
		s := run.Steps[i]
		since, ok := loadEnd(run, s)
		if !ok {
			continue
		}
		one, cut, ok := s.inBandSince(run.Objectives, since)
		if !ok {
			continue
		}
		censored = censored || cut
		if out == nil {
			out = &one
			continue
		}
		out.From, out.To = math.Max(out.From, one.From), math.Max(out.To, one.To)
	}
	return out, censored
}

// loadEnd is when the load before a recovery step ended; ok is false for one that comes after another recovery
// step, as the later ones after a search do: it can't show how long that took.
func loadEnd(run Run, s Step) (end float64, ok bool) {
	rested := 0.0
	for _, o := range run.Steps {
		switch {
		case o.End == nil || *o.End > *s.Start+1:
		case o.Phase == PhaseRamp || o.Phase == PhaseConfirm:
			end, ok = math.Max(end, *o.End), true
		case o.Phase == PhaseRecovery:
			rested = math.Max(rested, *o.End)
		}
	}
	return end, ok && end >= rested
}

// inBandSince finds from which scrape on a step kept its objectives.
func (s Step) inBandSince(objectives []Objective, since float64) (i Interval, censored, ok bool) {
	b := s.back(objectives, since, since, *s.End)
	switch {
	case b != nil && b.Left && b.Censored:
		return Interval{From: b.From}, true, true
	case b != nil && b.Left:
		return Interval{From: b.From, To: b.To}, false, true
	case b == nil:
		return Interval{}, false, false
	}
	for _, p := range s.Progress {
		for _, c := range p.Counts {
			if c.Total > 0 {
				return Interval{From: 0, To: math.Max(0, p.T-since)}, false, true
			}
		}
	}
	return Interval{}, false, false
}

// within judges a recovery objective.
func (rec Recovery) within(seconds float64) (State, string) {
	switch {
	case rec.State == Degraded:
		return NotHeld, rec.Reason
	case rec.Time != nil && rec.Time.From > seconds:
		return NotHeld, fmt.Sprintf("not in band until %s s after the load", figures.Write(rec.Time.From, 3))
	case rec.State != Recovered:
		return Undecided, rec.Reason
	case rec.Time == nil || rec.Censored:
		return Undecided, "it is recovered, but too few requests tell when"
	case rec.Time.To <= seconds:
		return Held, fmt.Sprintf("in band at most %s s after the load", figures.Write(rec.Time.To, 3))
	}
	return Undecided, fmt.Sprintf("in band between %s s and %s s after the load", figures.Write(rec.Time.From, 3), figures.Write(rec.Time.To, 3))
}
