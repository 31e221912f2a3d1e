package plan

import (
	"fmt"

	"firstbreach/internal/level"
	"firstbreach/internal/strictyaml"
)

const ladderFix = "write the ladder, such as ramp: {concurrency: [1, 2, 4, 8]}, or ramp: {rate: [0.5, 1, 2, 4], arrivals: poisson}"

// ramp reads the ladder: either of concurrencies or of rates.
func (r *reader) ramp(v strictyaml.Value) {
	if !v.Require(ladderFix) {
		return
	}
	m := v.Map("concurrency", "rate", "arrivals", "max_in_flight")
	if !v.IsMap() {
		return
	}
	concurrency, rate := m.Get("concurrency"), m.Get("rate")
	switch {
	case concurrency.Present() && rate.Present():
		rate.Reject("stands beside concurrency", "keep one: concurrency holds a number of requests in flight, rate lets them arrive whatever is in flight")
		r.closedRamp(concurrency)
	case rate.Present():
		r.rates(rate)
		r.arrivals(m.Get("arrivals"), &r.plan.Ramp.Arrivals)
		r.maxInFlight(m.Get("max_in_flight"), &r.plan.Ramp.MaxInFlight)
	case concurrency.Present():
		r.closedRamp(concurrency)
		for _, k := range []string{"arrivals", "max_in_flight"} {
			if w := m.Get(k); w.Present() {
				w.Reject("has no meaning beside concurrency", "remove it, or write rate instead of concurrency")
			}
		}
	default:
		v.Reject("names no level", ladderFix)
	}
}

func (r *reader) closedRamp(ladder strictyaml.Value) {
	rungs, ok := rungsOf(ladder, "[1, 2, 4, 8]")
	if !ok {
		return
	}
	last := 0
	for _, rung := range rungs {
		n := 0
		if !r.concurrency(rung, &n) {
			continue
		}
		if n <= last {
			rung.Reject(fmt.Sprintf("%d comes after %d", n, last), "write each level once, in rising order")
			continue
		}
		last = n
		r.plan.Ramp.Concurrency = append(r.plan.Ramp.Concurrency, n)
	}
}

// rates reads the levels of an open loop.
func (r *reader) rates(ladder strictyaml.Value) {
	rungs, ok := rungsOf(ladder, "[0.5, 1, 2, 4]")
	if !ok {
		return
	}
	last := 0.0
	for _, rung := range rungs {
		n := 0.0
		if !r.rate(rung, &n) {
			continue
		}
		if n <= last {
			rung.Reject(fmt.Sprintf("%s comes after %s", level.FormatRate(n), level.FormatRate(last)), "write each rate once, in rising order")
			continue
		}
		last = n
		r.plan.Ramp.Rate = append(r.plan.Ramp.Rate, n)
	}
}

// rungsOf are the levels of a ladder as they are written; ok is false when there are none, or too many.
func rungsOf(ladder strictyaml.Value, example string) (rungs []strictyaml.Value, ok bool) {
	rungs = ladder.List()
	switch {
	case !ladder.IsList():
		return nil, false
	case len(rungs) == 0:
		ladder.Reject("is empty", "write at least one level, such as "+example)
		return nil, false
	case len(rungs) > MaxSteps:
		ladder.Reject(fmt.Sprintf("has %d levels", len(rungs)), fmt.Sprintf("write at most %d", MaxSteps))
		return nil, false
	}
	return rungs, true
}

// rate reads one rate, in requests per second, within the environment's cap.
func (r *reader) rate(v strictyaml.Value, into *float64) bool {
	n, ok := v.Float()
	most := r.plan.Environment.maxRate()
	switch {
	case !ok:
		return false
	case n <= 0:
		v.Reject(fmt.Sprintf("%s is no load", level.FormatRate(n)), "write how many requests arrive in a second, such as 0.5")
		return false
	case n > most:
		v.Reject(fmt.Sprintf("%s requests per second is more than %s", level.FormatRate(n), r.allowed()), fmt.Sprintf("stay at or below %s", level.FormatRate(most)))
		return false
	}
	*into = n
	return true
}

// allowed says whose cap it is.
func (r *reader) allowed() string {
	if r.plan.Environment == Production {
		return "production allows"
	}
	return "one client may send"
}

func (r *reader) arrivals(v strictyaml.Value, into *Arrivals) {
	*into = Poisson
	if !v.Present() {
		return
	}
	if word, ok := v.OneOf(string(Poisson), string(Constant)); ok {
		*into = Arrivals(word)
	}
}

// maxInFlight reads the cap of an open loop, within that on concurrency.
func (r *reader) maxInFlight(v strictyaml.Value, into *int) {
	*into = min(DefaultInFlight, r.plan.Environment.maxConcurrency())
	if v.Present() {
		r.concurrency(v, into)
	}
}
