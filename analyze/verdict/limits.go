package verdict

import (
	"fmt"
	"math"

	"firstbreach/internal/figures"

	"gonum.org/v1/gonum/stat/distuv"
)

// Where a limit comes from.
const (
	FromMeasured = "measured" // a step of this run
	FromModelled = "modelled" // a formula over measured values
	FromInferred = "inferred" // a rule of thumb
)

// productionShare is the share of a tested limit that is prudent in production.
const productionShare = 0.8

// Limits are what admission control should be given.
type Limits struct {
	Applies bool   // false: see Reason
	Reason  string // why there are none
	List    []Limit

	MaxConcurrency int     // the numbers of List again, for machines
	QueueCap       int     //
	QueueTimeout   float64 // seconds; 0 without a TTFT objective
	RetryAfter     float64 // seconds, with the queue full
	LowPriority    int     // of MaxConcurrency, for a class that may be shed
}

// Limit is one of them.
type Limit struct {
	Name, Value string
	From        string // measured, modelled, inferred
	Inputs      string
}

// limit works out admission limits from the last step that held. S is the time a request holds a slot
// there, so S/c is the time between two departures. Whoever finds q waiting waits for q+1 of them: at
// the 95th percentile, were service times exponential, S/2c·χ²(0.95, 2(q+1)).
func (r *Result) limit(run Run) {
	l := &Limits{}
	r.Limits = l
	held := r.highestHeld()
	switch {
	case r.State == Invalid || r.State == NoData:
		l.Reason = "the measurement is not good enough for limits"
		return
	case held.IsZero():
		l.Reason = "no step of the ladder held: any limit would be a guess"
		return
	case held.Rate > 0:
		l.Reason = "the ladder is one of rates: a limit on what is in flight needs a ladder of concurrencies"
		return
	}
	at := r.At(PhaseRamp, held)
	c := held.Concurrency
	tested := fmt.Sprintf("the highest step that held; %d at once is tested, nothing above it", c)
	if k := r.Scaling.Throughput.At; k != nil && k.Concurrency < c {
		c = k.Concurrency
		tested = fmt.Sprintf("throughput no longer grows above %d, so more at once only adds waiting; %d held", c, held.Concurrency)
		at = r.At(PhaseRamp, *k)
	}
	l.Applies, l.MaxConcurrency = true, c
	l.add("maximum concurrency", fmt.Sprint(c), FromMeasured, tested)
	if p := int(math.Floor(productionShare * float64(c))); p >= 1 && p < c {
		l.add("in production, to begin with", fmt.Sprint(p), FromInferred, fmt.Sprintf("%s of it: production's requests are less alike than the test's", percent(productionShare)))
	}
	law := lawOf(run, *at)
	if law.R == nil || !(*law.R > 0) || math.IsInf(*law.R, 0) {
		return
	}
	s := *law.R
	o, budget, text := r.waitBudget(run, at)
	switch {
	case o == nil:
		l.add("queue", "0", FromInferred, "no objective on the time to first token or the duration says how long a request may wait")
	default:
		l.QueueCap = queueCap(s, c, budget)
		l.QueueTimeout = budget
		l.add("queue cap", fmt.Sprint(l.QueueCap), FromModelled, fmt.Sprintf("the most for which the last in it waits at most %s s at P95: S = %s s a request, c = %d, exponential service", figures.Write(budget, 3), figures.Write(s, 3), c))
		l.add("queue timeout", fmt.Sprintf("%s s", figures.Write(budget, 3)), FromModelled, text)
	}
	l.RetryAfter = math.Max(1, math.Ceil(float64(l.QueueCap+1)*s/float64(c)))
	l.add("Retry-After", fmt.Sprintf("%g s and some jitter", l.RetryAfter), FromModelled, "(queue + 1)·S/c, at least 1 s: 429 for a caller over its own limit, 503 for a full server")
	l.LowPriority = max(1, c/2)
	l.add("low-priority class", fmt.Sprintf("at most %d of %d at once, queue 0", l.LowPriority, c), FromInferred, "half, so that it never fills the service, and no queue: it is shed first")
}

func (l *Limits) add(name, value, from, inputs string) {
	l.List = append(l.List, Limit{name, value, from, inputs})
}

// waitBudget is how long a request may wait and still keep its objective: the tightest of threshold
// less P95 at the step that held.
func (r *Result) waitBudget(run Run, at *StepResult) (o *Objective, budget float64, text string) {
	for i, x := range run.Objectives {
		var p95 *float64
		switch {
		case x.Kind != kindLatency:
			continue
		case x.Signal == "time_to_first_token":
			p95 = worstOf(*at, func(l RoundLatency) *float64 { return l.TTFT.P95 })
		case x.Signal == "request_duration":
			p95 = worstOf(*at, func(l RoundLatency) *float64 { return l.E2E.P95 })
		}
		if p95 == nil {
			continue
		}
		if b := math.Max(0, x.Threshold-*p95); o == nil || b < budget {
			o, budget = &run.Objectives[i], b
			text = fmt.Sprintf("%s: threshold %s s less its P95 of %s s at %s", x.Name, figures.Write(x.Threshold, 3), figures.Write(*p95, 3), at.Level().Words())
		}
	}
	return o, budget, text
}

// worstOf is the greatest of a quantile over the valid rounds.
func worstOf(s StepResult, of func(RoundLatency) *float64) *float64 {
	var worst *float64
	for _, r := range s.Rounds {
		if v := of(r.Latency); r.Valid && v != nil && finite(*v) && (worst == nil || *v > *worst) {
			worst = v
		}
	}
	return worst
}

// maxQueue bounds the search for a queue cap.
const maxQueue = 10_000

// queueCap is the greatest number of places from the last of which the wait is within the budget at
// its 95th percentile. The last place is found with one fewer waiting.
func queueCap(s float64, c int, budget float64) int {
	places := 0
	for places < maxQueue {
		wait := s / (2 * float64(c)) * distuv.ChiSquared{K: 2 * float64(places+1)}.Quantile(0.95)
		if wait > budget {
			break
		}
		places++
	}
	return places
}
