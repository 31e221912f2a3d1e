package query

import (
	"math"
	"slices"

	"github.com/prometheus/common/model"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/signal"
)

// formula computes a signal from the samples of its metric, as the catalogue says.
type formula struct {
	metric signal.Metric
	top    [1]operand
	bottom []operand // the terms that a ratio or remainder is taken of
	times  []float64 // of the scrapes
	stale  float64   // seconds after which a sample counts no more
}

// operand is the series of one term.
type operand struct {
	tracks []*track
	zero   bool // absent reads as 0
}

// newFormula picks the series of a metric's terms. A histogram is read by its sum and count.
func newFormula(m signal.Metric, samples map[string][]track) formula {
	f := formula{metric: m}
	rates := f.rate()
	if m.Reading == signal.ReadMean {
		sum, count := m.Term, m.Term
		sum.Name, count.Name = m.Name+suffixSum, m.Name+suffixCount
		f.top[0] = pick(sum, samples, rates)
		f.bottom = []operand{pick(count, samples, rates)}
	} else {
		f.top[0] = pick(m.Term, samples, rates)
		for _, t := range m.Of {
			f.bottom = append(f.bottom, pick(t, samples, rates))
		}
	}
	all := slices.Clone(f.top[0].tracks)
	for _, o := range f.bottom {
		all = append(all, o.tracks...)
	}
	f.times = grid(all)
	f.stale = staleAfter * gap(all)
	return f
}

// pick selects the series of a term.
func pick(t signal.Term, samples map[string][]track, rates bool) operand {
	o := operand{zero: t.MayBeAbsent}
	for _, s := range samples[t.Name] {
		if !matches(t, s.labels) {
			continue
		}
		if rates {
			s = s.unwrapped()
		}
		o.tracks = append(o.tracks, &s)
	}
	return o
}

func matches(t signal.Term, m model.Metric) bool {
	for label, values := range t.Match {
		if !slices.Contains(values, string(m[model.LabelName(label)])) {
			return false
		}
	}
	for label, values := range t.Except {
		if slices.Contains(values, string(m[model.LabelName(label)])) {
			return false
		}
	}
	return true
}

// rate reports whether the formula looks at how counters grew, and so needs two scrapes.
func (f formula) rate() bool {
	switch f.metric.Reading {
	case signal.ReadRate, signal.ReadMean, signal.ReadRateRatio, signal.ReadRateRemainder:
		return true
	}
	return false
}

// value is the signal between two times, or at the later one when it isn't a rate; ok is false
// where there is none, such as a mean over nothing.
func (f formula) value(t0, t1 float64) (v float64, ok bool) {
	if f.metric.Aggregate == signal.Max {
		for _, t := range f.top[0].tracks {
			n, okN := f.read(t, t0, t1)
			d, okD := f.sum(f.bottom, t.key, t0, t1)
			if x, okX := f.combine(n, d, t1-t0); okN && okD && okX && (!ok || x > v) {
				v, ok = x, true
			}
		}
		return v, ok
	}
	n, okN := f.sum(f.top[:], "", t0, t1)
	d, okD := f.sum(f.bottom, "", t0, t1)
	if !okN || !okD {
		return 0, false
	}
	return f.combine(n, d, t1-t0)
}

// sum adds up the operands, of one series or, with key "", of all.
func (f formula) sum(os []operand, key string, t0, t1 float64) (total float64, ok bool) {
	for _, o := range os {
		there := o.zero
		for _, t := range o.tracks {
			if key != "" && t.key != key {
				continue
			}
			if v, ok := f.read(t, t0, t1); ok {
				total += v
				there = true
			}
		}
		if !there {
			return 0, false
		}
	}
	return total, true
}

func (f formula) read(t *track, t0, t1 float64) (float64, bool) {
	if f.rate() {
		return t.grown(t0, t1)
	}
	return t.at(t1, f.stale)
}

func (f formula) combine(n, d, dt float64) (float64, bool) {
	v := math.NaN()
	switch f.metric.Reading {
	case signal.ReadValue:
		v = n
	case signal.ReadRate:
		v = n / dt
	case signal.ReadMean, signal.ReadRatio, signal.ReadRateRatio:
		v = n / d
	case signal.ReadRemainder:
		v = d - n
	case signal.ReadRemainderRatio, signal.ReadRateRemainder:
		v = 1 - n/d
	}
	v *= f.metric.Scale
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

// line is the signal at each scrape. A rate is that since the scrape before.
func (f formula) line() []verdict.Point {
	var out []verdict.Point
	for i, t := range f.times {
		before := t
		if f.rate() {
			if i == 0 {
				continue
			}
			before = f.times[i-1]
		}
		if v, ok := f.value(before, t); ok {
			out = append(out, verdict.Point{T: t, V: v})
		}
	}
	return out
}
