package window

import (
	"context"
	"fmt"
	"math"
	"slices"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/sli"
	"firstbreach/internal/slo"
)

const leastBinsOfLevel = 3

// flight is the mean number of requests in the service in each bin, over all its instances; NaN where
// it isn't known.
type flight struct {
	mean   []float64
	reason string // why nothing is known
}

func (a *analysis) inFlight(ctx context.Context, ratios []sli.Ratio) (flight, error) {
	n, err := sli.NewInFlight(a.SLO, slo.Objective{Name: "requests in flight", Line: ratios[0].Objective.Line})
	if err != nil {
		return flight{reason: fmt.Sprintf("the series of engine %s can't say how many requests are in the service", a.SLO.Engine)}, nil //nolint:nilerr // a gap in what is known, and said
	}
	parts := max(1, min(5, MostBins/a.n))
	values, err := a.finer(ctx, "requests in flight, running and waiting", promexpr.SumBy(n.Value()), parts)
	if err != nil {
		return flight{}, err
	}
	f := flight{mean: make([]float64, a.n), reason: "the engine's gauges have no sample in the window"}
	for i := range f.mean {
		sum, of := 0.0, 0
		for _, v := range values[i*parts : (i+1)*parts] {
			if !math.IsNaN(v) {
				sum, of = sum+v, of+1
			}
		}
		f.mean[i] = sum / float64(of) // NaN without any
		if of > 0 {
			f.reason = ""
		}
	}
	return f, nil
}

// levels pools an objective's requests by how many were in flight, in powers of two.
func levels(c counted, f flight, allowance float64) *InFlight {
	if f.reason != "" {
		return &InFlight{Text: "Not concluded: " + f.reason + "."}
	}
	byLevel := map[int]*Level{}
	last := map[int]int{}
	bad, total := map[int]float64{}, map[int]float64{}
	for i, x := range f.mean {
		if math.IsNaN(x) || !c.busy(i) {
			continue
		}
		e := max(0, int(math.Ceil(math.Log2(math.Max(x, 1)))))
		l := byLevel[e]
		if l == nil {
			l = &Level{UpTo: math.Exp2(float64(e))}
			if e > 0 {
				l.Over = math.Exp2(float64(e - 1))
			}
			byLevel[e], last[e] = l, -2
		}
		l.Bins++
		bad[e], total[e] = bad[e]+c.bad[i], total[e]+c.total[i]
		if c.over(i) {
			if i > last[e]+2 { // bins next to each other are one stretch
				l.Incidents++
			}
			last[e] = i
		}
	}
	out := &InFlight{}
	var keys []int
	for e := range byLevel {
		keys = append(keys, e)
	}
	slices.Sort(keys)
	alpha := verdict.Alpha / float64(max(1, len(keys)))
	for _, e := range keys {
		l := byLevel[e]
		l.Requests = int64(math.Round(total[e]))
		l.Bad = min(l.Requests, int64(math.Round(bad[e])))
		k, n := float64(l.Bad), float64(l.Requests)
		switch {
		case l.Requests == 0 || l.Bins < leastBinsOfLevel:
			l.State = Undecided
		case verdict.AtLeast(k, n, allowance) <= alpha:
			l.State = Breach
		case verdict.AtMost(k, n, allowance) <= alpha:
			l.State = OK
		default:
			l.State = Undecided
		}
		out.Levels = append(out.Levels, *l)
	}
	out.conclude()
	return out
}

func (f *InFlight) conclude() {
	var decided []Level
	for _, l := range f.Levels {
		if l.State != Undecided {
			decided = append(decided, l)
		}
	}
	first := slices.IndexFunc(decided, func(l Level) bool { return l.State == Breach })
	switch {
	case len(decided) == 0:
		f.Text = "Not concluded: at no level were there requests enough."
	case first < 0 && slices.ContainsFunc(f.Levels, func(l Level) bool { return l.State == Undecided && l.Incidents > 0 }):
		f.Text = fmt.Sprintf("Not concluded: it held up to %s, and was over its allowance at numbers that too few bins or requests had.", number(decided[len(decided)-1].UpTo))
	case first < 0:
		f.Held = decided[len(decided)-1].UpTo
		f.Text = fmt.Sprintf("It broke at no number of requests in flight that was seen: it held up to %s.", number(f.Held))
	case first == 0 && len(decided) == 1:
		f.Text = "Not concluded: it broke, but the number of requests in flight hardly differed."
	case first == 0:
		f.Text = fmt.Sprintf("Not concluded: it was broken at the lowest number seen (up to %s) already.", number(decided[0].UpTo))
	case slices.ContainsFunc(decided[first:], func(l Level) bool { return l.State == OK }):
		f.Text = fmt.Sprintf("Not concluded: it broke at %s in flight and held with more, so that something else than the load broke it.", decided[first].words())
	case decided[first].Incidents < 2:
		f.Text = fmt.Sprintf("Not concluded: it broke at %s in flight in one stretch only, which can't be told from anything else that happened then.", decided[first].words())
	default:
		f.Concluded, f.Broke, f.Held = true, decided[first].UpTo, decided[first-1].UpTo
		f.Text = fmt.Sprintf("Production first broke with %s in flight, in %d separate stretches; it held up to %s.", decided[first].words(), decided[first].Incidents, number(f.Held))
	}
}

func (l Level) words() string {
	return fmt.Sprintf("%s to %s requests", number(l.Over), number(l.UpTo))
}

func number(v float64) string { return fmt.Sprintf("%g", v) }
