package verdict

import (
	"math"
	"slices"
)

// The detector of an onset: a run of samples well outside the normal range, and a cumulative sum that
// says since when it drifted there (Page, Biometrika 41, 1954).
const (
	onsetRun    = 3   // consecutive samples outside
	onsetSigmas = 4.0 // how far outside
	cusumSlack  = 0.5 // σ a sample may be off before it counts
	cusumAlarm  = 5.0 // σ
	madToSigma  = 1.4826
)

// Normal is the normal range of a signal, from samples without load: median and a robust σ.
type Normal struct {
	Median, Sigma float64
	Samples       int
}

// NormalOf is the normal range of samples. σ is at least floor, the least difference that the signal
// can show.
func NormalOf(values []float64, floor float64) Normal {
	n := Normal{Samples: len(values)}
	if len(values) == 0 {
		return n
	}
	n.Median = median(values)
	off := make([]float64, len(values))
	for i, v := range values {
		off[i] = math.Abs(v - n.Median)
	}
	n.Sigma = math.Max(madToSigma*median(off), floor)
	return n
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return (s[m-1] + s[m]) / 2
}

// Detector says what leaving the normal range is for one signal.
type Detector struct {
	Effect float64 // least distance from the median that matters
	Least  float64 // a value under which nothing is wrong, such as 0.9 of a cache
	Delay  float64 // seconds by which a sample may show what was before it
}

// Onset finds when a signal first left its normal range upwards within (from, to]. The interval begins
// at the last sample that was normal, or that the cumulative sum began from, less the signal's delay,
// and ends at the first sample outside: no moment in it is more likely than another. ok is false when
// it did not leave, or there is no normal range.
func Onset(points []Point, n Normal, d Detector, from, to float64) (at Interval, ok bool) {
	if n.Samples < onsetRun {
		return at, false
	}
	limit := math.Max(n.Median+math.Max(onsetSigmas*n.Sigma, d.Effect), d.Least)
	sum, began, last, outside := 0.0, from, from, 0
	for _, p := range points {
		if p.T <= from || p.T > to || !finite(p.V) {
			continue
		}
		if n.Sigma > 0 {
			sum = math.Max(0, sum+(p.V-n.Median)/n.Sigma-cusumSlack)
		} else {
			sum = math.Inf(1)
		}
		if sum == 0 {
			began = p.T
		}
		if p.V <= limit {
			last, outside = p.T, 0
			continue
		}
		if outside++; outside == 1 {
			at = Interval{From: math.Max(from, math.Min(last, began)-d.Delay), To: p.T}
		}
		if outside >= onsetRun && sum >= cusumAlarm {
			return at, true
		}
	}
	return Interval{}, false
}

// Before reports whether one onset certainly came before another.
func (i Interval) Before(o Interval) bool { return i.To < o.From }

// userOnset finds from when on the counts of an objective in a step show a breach: the first scrape at
// which all that was counted so far is one by the exact test. It began no earlier than the scrape
// before the first miss, less the time such a request had been under way.
func (s Step) userOnset(o Objective) (Interval, bool) {
	exact, err := allowance(o.Target)
	if err != nil || s.MeasureFrom == nil || s.Start == nil {
		return Interval{}, false
	}
	a, _ := exact.Float64()
	under := 0.0
	if s.E2E.P99 != nil {
		under = *s.E2E.P99
	}
	if o.Kind == kindLatency && o.Signal == "time_to_first_token" && s.TTFT.P99 != nil {
		under = *s.TTFT.P99
	}
	from, missed := *s.MeasureFrom, false
	for _, p := range s.Progress {
		c, ok := p.Counts[o.Name]
		bad := c.Slow + c.Failed
		if !ok || c.Total == 0 || bad == 0 {
			if !missed {
				from = math.Max(from, p.T)
			}
			continue
		}
		missed = true
		if AtLeast(float64(bad), float64(c.Total), a) <= Alpha {
			return Interval{From: math.Max(*s.Start, from-under), To: p.T}, true
		}
	}
	return Interval{}, false
}
