package query

import (
	"fmt"
	"sort"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/slo"
)

// minScrapes is how many scrapes a step must have for its service and resource readings to count.
const minScrapes = 5

// series is a signal over the whole run, ready to be cut into steps.
type series struct {
	name, layer, unit string
	line              []verdict.Point
	times             []float64 // of the scrapes, also of those without a value
	missing           string    // why there is nothing at all

	// mean is the signal's mean between two scrapes, for rates; nil where it is the mean of the values.
	mean func(t0, t1 float64) (float64, bool)
}

// cut reads the signal in one step.
func (r series) cut(s *step, o *slo.Objective) verdict.Reading {
	out := verdict.Reading{Layer: r.layer, Unit: r.unit}
	switch {
	case r.missing != "":
		out.Missing = r.missing
		return out
	case s.Start == nil || s.End == nil || s.MeasureFrom == nil || s.MeasureTo == nil:
		out.Missing = "Prometheus doesn't have the times of this step"
		return out
	}
	if n := between(r.times, *s.Start, *s.End); n < minScrapes {
		out.Missing = fmt.Sprintf("only %d scrapes in this step; a reading needs %d: make the steps longer or scrape more often", n, minScrapes)
		return out
	}
	from, to := *s.MeasureFrom, *s.MeasureTo
	if r.mean != nil {
		var ok bool
		if from, to, ok = edges(r.times, from, to); !ok {
			out.Missing = "fewer than two scrapes while this step was measured: make the steps longer or scrape more often"
			return out
		}
	}
	r.fill(&out, from, to, o)
	if out.Samples == 0 {
		out.Missing = "nothing to read while this step was measured"
	}
	return out
}

// fill takes the values between two times. Of a rate, the value at the first time belongs to what
// was before.
func (r series) fill(out *verdict.Reading, from, to float64, o *slo.Objective) {
	i, j := window(r.line, from, to)
	if r.mean != nil && i < j && r.line[i].T == from {
		i++
	}
	var sum, highest float64
	for n, p := range r.line[i:j] {
		sum += p.V
		if n == 0 || p.V > highest {
			highest = p.V
		}
		if o != nil && (o.Max != nil && p.V > *o.Max || o.Min != nil && p.V < *o.Min) {
			out.Over++
		}
	}
	out.Samples = j - i
	if out.Samples == 0 {
		return
	}
	mean := sum / float64(out.Samples)
	if r.mean != nil {
		if v, ok := r.mean(from, to); ok {
			mean = v
		}
	}
	out.Mean, out.Max = &mean, &highest
}

// between counts the times in [from, to].
func between(times []float64, from, to float64) int {
	return max(0, sort.Search(len(times), func(n int) bool { return times[n] > to })-sort.SearchFloat64s(times, from))
}

// edges returns the first and the last of the times in [from, to]; ok is false when there aren't two.
func edges(times []float64, from, to float64) (first, last float64, ok bool) {
	i := sort.SearchFloat64s(times, from)
	j := sort.Search(len(times), func(n int) bool { return times[n] > to }) - 1
	if i >= j {
		return 0, 0, false
	}
	return times[i], times[j], true
}
