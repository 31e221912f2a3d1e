package verdict

import (
	"fmt"
	"math"
	"strings"

	"firstbreach/internal/figures"
)

// What became of a hypothesis.
const (
	Supported    State = "supported"
	NotSupported State = "not_supported"
	NotTested    State = "not_tested"
)

// Hypothesis is one explanation of the first breach, with what speaks for and against it.
type Hypothesis struct {
	Name         string
	For, Against []string
	Untested     string // what would settle it
	Verdict      State  // supported, not_supported, undetermined, not_tested
}

// evidence is what the hypotheses look at: the step of the breach and the one to compare it with.
type evidence struct {
	at, before *StepResult
	a          *Attribution
	flat       string // in words, when throughput no longer grew towards the breach
}

func (r *Result) hypotheses(run Run, a *Attribution) []Hypothesis {
	e := evidence{at: r.At(PhaseRamp, r.FirstBreach.Level()), before: r.beforeBreach(), a: a}
	if e.before == nil {
		e.before = &StepResult{}
	}
	if r.Scaling != nil {
		for _, g := range r.Scaling.Throughput.Gains {
			if g.To == e.at.Level() && g.Grows == Breach && g.Change != nil {
				e.flat = fmt.Sprintf("throughput changed by %s from %s to %s", signed(*g.Change), g.From, g.To.Words())
			}
		}
	}
	return []Hypothesis{e.slots(), e.compute(), e.cache(), e.interference(), e.network(), e.neighbour(), e.client()}
}

func signed(share float64) string {
	s := percent(share)
	if share >= 0 {
		s = "+" + s
	}
	return s
}

// readings are the means of a signal at the breach and before it.
func (e evidence) readings(name string) (before, at *float64) {
	return e.before.Readings[name].Mean, e.at.Readings[name].Mean
}

// waits says in words that requests wait in the engine, "" when they don't or nobody knows.
func (e evidence) waits() (string, bool) {
	before, at := e.readings("requests_waiting")
	if at == nil {
		return "", false
	}
	was := 0.0
	if before != nil {
		was = *before
	}
	if *at < was+0.5 {
		return "", true
	}
	return fmt.Sprintf("requests waiting rose from %s to %s", figures.Write(was, 3), figures.Write(*at, 3)), true
}

// machine returns the busiest of CPU and GPU at the breach.
func (e evidence) machine() (name string, share *float64) {
	for _, n := range []string{"gpu_utilization", "cpu_utilization"} {
		if _, at := e.readings(n); at != nil && (share == nil || *at > *share) {
			name, share = words(n), at
		}
	}
	return name, share
}

// slots: the engine has no more places, by its configuration.
func (e evidence) slots() Hypothesis {
	h := Hypothesis{Name: "the engine's slots are full (a limit of its configuration)", Untested: "run again with twice the slots, and compare the two runs"}
	waits, known := e.waits()
	if !known {
		h.Verdict, h.Untested = NotTested, "the engine's number of waiting requests is not there: scrape its metrics"
		return h
	}
	if waits == "" {
		h.Verdict, h.Against = NotSupported, []string{"no more requests wait than before"}
		return h
	}
	h.For = append(h.For, waits)
	if before, at := e.readings("requests_running"); before != nil && at != nil {
		text := fmt.Sprintf("%s run at once, %s before", figures.Write(*at, 3), figures.Write(*before, 3))
		if *at <= float64(e.at.Concurrency)-0.5 || e.at.Rate > 0 {
			h.For = append(h.For, text+": fewer than are in flight")
		} else {
			h.Against = append(h.Against, text)
		}
	}
	name, share := e.machine()
	switch {
	case share == nil:
		h.Verdict = Undetermined
		h.Untested = "neither CPU nor GPU of the target was measured: give an exporter there; or " + h.Untested
	case *share >= ceiling:
		h.Verdict = Undetermined
		h.Against = append(h.Against, fmt.Sprintf("%s is %s: more slots might bring nothing", name, percent(*share)))
		if e.flat != "" {
			h.Against = append(h.Against, e.flat)
		}
	default:
		h.Verdict = Supported
		h.For = append(h.For, fmt.Sprintf("%s is %s: there is room for more", name, percent(*share)))
	}
	return h
}

// compute: the machine can't do more.
func (e evidence) compute() Hypothesis {
	h := Hypothesis{Name: "compute is exhausted", Untested: "run again with twice the slots: throughput that stays is compute, throughput that grows was slots"}
	name, share := e.machine()
	switch {
	case share == nil:
		h.Verdict, h.Untested = NotTested, "neither CPU nor GPU of the target was measured: give an exporter there"
		return h
	case *share < ceiling:
		h.Verdict, h.Against = NotSupported, []string{fmt.Sprintf("%s is %s at the breach, under %s", name, percent(*share), percent(ceiling))}
		return h
	}
	h.Verdict = Undetermined
	h.For = append(h.For, fmt.Sprintf("%s is %s at the breach", name, percent(*share)))
	if e.flat != "" {
		h.For = append(h.For, e.flat)
	}
	if b := e.before.Readings[strings.ReplaceAll(name, " ", "_")].Mean; b != nil && *b >= ceiling {
		h.Against = append(h.Against, fmt.Sprintf("it was %s at the step that held as well: by itself it broke nothing", percent(*b)))
	}
	return h
}

// cache: the KV cache is full.
func (e evidence) cache() Hypothesis {
	h := Hypothesis{Name: "the KV cache is full", Untested: "run again with a shorter context or a larger cache"}
	_, kv := e.readings("kv_cache_usage")
	_, pre := e.readings("preemptions")
	if kv == nil && pre == nil {
		h.Verdict, h.Untested = NotTested, "the engine shows neither the use of its KV cache nor preemptions"
		return h
	}
	h.Verdict = NotSupported
	if kv != nil {
		text := fmt.Sprintf("KV cache usage is %s at the breach", percent(*kv))
		if *kv >= ceiling {
			h.Verdict, h.For = Supported, append(h.For, text)
		} else {
			h.Against = append(h.Against, text+", under "+percent(ceiling))
		}
	}
	if pre != nil {
		text := fmt.Sprintf("%s preemptions a second", figures.Write(*pre, 3))
		if *pre > 0.01 {
			h.Verdict, h.For = Supported, append(h.For, text)
		} else {
			h.Against = append(h.Against, text)
		}
	}
	return h
}

// interference: requests in one batch slow each other down, without a queue.
func (e evidence) interference() Hypothesis {
	h := Hypothesis{Name: "requests in one batch slow each other down", Untested: "the time between tokens at neighbouring steps"}
	c, changed := changeOf(*e.before, *e.at, quantity{"time per output token", "seconds", func(x RoundResult) *float64 { return x.Latency.TPOT.P50 }, false})
	if c == (Change{}) {
		h.Verdict, h.Untested = NotTested, "no time per output token at both steps"
		return h
	}
	text := fmt.Sprintf("median time per output token %s ms, %s ms before", figures.Write(1000*c.After, 3), figures.Write(1000*c.Before, 3))
	waits, known := e.waits()
	if !changed || c.Ratio() < 1.2 {
		h.Verdict, h.Against = NotSupported, []string{text}
		return h
	}
	h.For, h.Verdict = append(h.For, text), Supported
	if waits != "" {
		h.Against, h.Verdict = append(h.Against, waits), Undetermined
	} else if !known {
		h.Verdict = Undetermined
	}
	return h
}

// network: what is between the client and the engine holds requests back. The wait in the engine's queue
// follows from Little's law: waiting ÷ throughput.
func (e evidence) network() Hypothesis {
	h := Hypothesis{Name: "a gateway or the network holds requests back", Untested: "the same run from the target's own host"}
	ttft := quantity{"TTFT", "seconds", func(x RoundResult) *float64 { return x.Latency.TTFT.P50 }, false}
	c, _ := changeOf(*e.before, *e.at, ttft)
	w0, w1 := e.readings("requests_waiting")
	x0, x1 := e.before.Measured.RequestsPerSecond, e.at.Measured.RequestsPerSecond
	if w1 == nil || x1 == nil || !(*x1 > 0) || c == (Change{}) {
		h.Verdict, h.Untested = NotTested, "the engine's queue is not known, so the wait before it can't be told from the wait in it"
		return h
	}
	wait := *w1 / *x1
	if w0 != nil && x0 != nil && *x0 > 0 {
		wait -= *w0 / *x0
	}
	rise := c.After - c.Before
	if rise < 0.005 {
		h.Verdict, h.Against = NotSupported, []string{"the median TTFT did not rise"}
		return h
	}
	text := fmt.Sprintf("the engine's own queue (waiting ÷ throughput) explains %s s of the %s s by which the median TTFT rose", figures.Write(wait, 3), figures.Write(rise, 3))
	if wait >= 0.6*rise {
		h.Verdict, h.Against = NotSupported, []string{text}
	} else {
		h.Verdict, h.For = Undetermined, []string{"only part of the wait is in the engine: " + text}
	}
	return h
}

// neighbour: something else on the machine takes what the service needs.
func (e evidence) neighbour() Hypothesis {
	h := Hypothesis{Name: "something else on the machine takes its resources", Untested: "the machine's processes during the step"}
	looked := false
	for _, s := range e.a.Onsets {
		if s.Layer != layerResource {
			continue
		}
		looked = true
		if n := s.insideRounds(e.at.Level()); 3*n >= 2*s.Of && n > 0 {
			h.For = append(h.For, fmt.Sprintf("%s rose while the load was held, in %d of %d rounds", words(s.Signal), n, s.Of))
		}
	}
	switch {
	case !looked:
		h.Verdict, h.Untested = NotTested, "no resource of the target was measured: give an exporter there"
	case len(h.For) > 0:
		h.Verdict = Supported
	default:
		h.Verdict, h.Against = NotSupported, []string{"no resource rose while the load of a step was held: 0 signals"}
	}
	return h
}

// client: the load generator was the bottleneck. The gate would have voided the step.
func (e evidence) client() Hypothesis {
	h := Hypothesis{Name: "the load generator was the bottleneck", Verdict: NotSupported}
	least := math.Inf(1)
	for _, r := range e.at.Rounds {
		if r.Valid && r.InFlight != nil && finite(*r.InFlight) && e.at.Concurrency > 0 {
			least = math.Min(least, *r.InFlight/float64(e.at.Concurrency))
		}
	}
	if math.IsInf(least, 1) {
		h.Against = []string{"it reported no limit of its own, and the requests that were due were sent"}
		return h
	}
	h.Against = []string{fmt.Sprintf("it held at least %s of the %d requests in flight in every round, and reported no limit of its own", percent(least), e.at.Concurrency)}
	return h
}
