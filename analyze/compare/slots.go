package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"firstbreach/analyze/report"
	"firstbreach/internal/signal"
)

// moreSlots is how many times as many requests have to run at once in one run as in the other for a comparison of
// slots: they are read from what ran, since few engines tell how many they have.
const moreSlots = 1.5

// Slots is what another number of slots in the engine did: the one way to tell slots from compute.
type Slots struct {
	A          float64     `json:"a"` // most requests that ran at once
	B          float64     `json:"b"`
	Levels     []string    `json:"levels"` // with more requests in flight than the fewer slots
	Throughput *float64    `json:"requests_per_second"`
	CI         *[2]float64 `json:"ci"`      // 95 %
	Limit      string      `json:"limit"`   // slots, compute, or "" while undecided
	Finding    string      `json:"finding"` // in words
}

// The values of Slots.Limit.
const (
	LimitSlots   = "slots"
	LimitCompute = "compute"
)

// compareSlots is nil where the runs had about the same number of slots. It needs the measures with their margins.
func (r *Result) compareSlots(pairs []pair) *Slots {
	a := running(pairs, func(p pair) report.Step { return p.a })
	b := running(pairs, func(p pair) report.Step { return p.b })
	few, many := math.Min(a, b), math.Max(a, b)
	if few < 1 || many < moreSlots*few {
		return nil
	}
	s := &Slots{A: a, B: b, Levels: []string{}}
	queued := slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return float64(p.a.Concurrency) <= few })
	for _, p := range queued {
		s.Levels = append(s.Levels, p.name())
	}
	var margin float64
	for _, m := range r.Measures {
		if m.Name == requestRate.name {
			margin = m.Margin
		}
	}
	m, ok := ratio(requestRate, queued)
	other := slices.DeleteFunc(keys(r.Differences, true), func(key string) bool { return key == "engine_slots" })
	head := fmt.Sprintf("%g requests ran at once instead of %g", many, few)
	switch {
	case len(other) > 0:
		s.Finding = head + ", but the runs differ in " + strings.Join(other, ", ") + " too: nothing follows about slots or compute"
		return s
	case !ok || margin == 0:
		s.Finding = fmt.Sprintf("%s, and no level above %g has %d valid rounds in both runs: nothing follows about slots or compute", head, few, minRounds)
		return s
	}
	s.Throughput, s.CI = m.Effect, m.CI
	gain, low, high := *m.Effect, m.CI[0], m.CI[1]
	if a > b { // told as what more slots bring
		gain, low, high = 1/(1+gain)-1, 1/(1+high)-1, 1/(1+low)-1
	}
	found := fmt.Sprintf("%s, and at %s in flight that changed the throughput by %s (95 %% CI %s to %s)", head,
		strings.Join(s.Levels, ", "), m.percent(gain), m.percent(low), m.percent(high))
	switch {
	case low > margin:
		s.Limit, s.Finding = LimitSlots, found+": the slots were the limit"
	case high <= margin:
		s.Limit, s.Finding = LimitCompute, found+": more slots bring nothing, what they share is the limit (compute, or what lies behind it)"
	default:
		s.Finding = found + ": slots or compute is still undecided, more rounds are needed"
	}
	return s
}

// running is the most requests that ran at once in the engine at any of the levels.
func running(pairs []pair, of func(pair) report.Step) float64 {
	most := 0.0
	for _, p := range pairs {
		if v := of(p).ServiceSignals[signal.SignalRequestsRunning].Max; v != nil {
			most = math.Max(most, *v)
		}
	}
	return most
}
