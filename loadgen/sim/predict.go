package sim

import (
	"math"
	"time"
)

// Load is a closed loop: every client sends its next request as soon as its last one has ended.
type Load struct {
	Clients      int
	PromptTokens int
	OutputTokens int
}

// Latency bounds one latency of the requests of a load, in steady state and without jitter: every
// value lies in [Least, Most] and the mean in [Low, High].
type Latency struct {
	Least, Low, High, Most time.Duration
}

// Expectation is what the parameters imply for one load. docs/simulator.md derives the formulas.
type Expectation struct {
	Served     int     // clients less those that are always turned away
	Slots      int     // requests that can hold a slot at once
	SafeSlots  int     // of those, how many can never run out of KV cache
	Throughput float64 // answers per second, at most
	TTFT       Latency
	E2E        Latency
	TPOT       Latency // zero for answers of one token

	// The share of requests that fail or are turned away lies in [FailedLow, FailedHigh].
	FailedLow, FailedHigh float64
	RejectedLow           float64 // of FailedLow, those turned away
}

// What a client is taken to need at most between a rejection and its next request, where the share of
// rejections is bounded: loadgen backs off from a target that refuses at once, for at most a second, and
// not from one that takes its time for it.
const (
	turnaround     = 10 * time.Millisecond
	backingOff     = time.Second
	refusedQuickly = 100 * time.Millisecond
)

// Expect computes what the parameters imply for a load.
func (c Config) Expect(l Load) Expectation {
	x := Expectation{Served: l.Clients}
	if c.MaxRequests > 0 {
		x.Served = min(l.Clients, c.MaxRequests)
	}
	x.Slots = min(x.Served, c.Slots)
	x.SafeSlots = x.Slots
	if c.KVTokens > 0 {
		if l.PromptTokens+l.OutputTokens > c.KVTokens { // each is refused as too long
			x.FailedLow, x.FailedHigh = 1, 1
			return x
		}
		x.Slots = min(x.Slots, c.KVTokens/(l.PromptTokens+1))
		x.SafeSlots = min(x.SafeSlots, c.KVTokens/(l.PromptTokens+l.OutputTokens))
	}
	c.latencies(&x, l)
	c.failures(&x, l)
	return x
}

// latencies fills in TTFT, E2E, TPOT and throughput.
func (c Config) latencies(x *Expectation, l Load) {
	work := c.PrefillWork(l.PromptTokens)
	prefill := work + c.PrefillTime
	steps := time.Duration(l.OutputTokens - 1)
	fast, slow := c.meanStep(x.Slots, l), c.Step(x.Slots) // bounds of the mean step
	join := time.Duration(0)                              // the longest wait for a step under way to end
	if x.Slots > 1 && l.OutputTokens > 1 {
		join = slow
	}
	burst := time.Duration(x.Slots-1) * work // wait for the prefill unit when all arrive at once

	// A slot is held for this long; the prefill unit may take longer to come round.
	held := max(prefill+steps*fast, time.Duration(x.Slots)*work)
	heldHigh := max(prefill+join+steps*slow, time.Duration(x.Slots)*work)
	heldMost := prefill + burst + join + steps*slow
	x.Throughput = float64(x.Slots) / held.Seconds()

	lots := (x.Served - 1) / x.SafeSlots // lots of requests that can be ahead in the queue
	failing := c.errorShare(x.Served)    // these leave their slot when the prefill ends
	decodeLow := time.Duration((1 - failing) * float64(steps*fast))
	heldLow := max(prefill+decodeLow, time.Duration(x.Slots)*work)
	cycleLow := mulDiv(heldLow, x.Served, x.Slots)
	cycleHigh := mulDiv(heldHigh, x.Served, x.SafeSlots)

	x.TTFT = Latency{
		Least: prefill,
		Low:   max(prefill, cycleLow-decodeLow),
		// Where the prefill unit sets the pace, a shorter decode makes a longer wait.
		High: max(prefill, cycleHigh-steps*slow-join, mulDiv(held, x.Served, x.SafeSlots)-steps*fast),
		Most: prefill + burst + time.Duration(lots)*heldMost,
	}
	x.E2E = Latency{
		Least: prefill + steps*c.Step(1),
		Low:   x.TTFT.Low + steps*fast,
		High:  cycleHigh,
		Most:  x.TTFT.Most + join + steps*slow,
	}
	if steps > 0 {
		x.TPOT = Latency{Least: c.Step(1), Low: fast, High: slow + join/steps, Most: slow + join/steps}
	}
	if x.Slots > x.SafeSlots { // preemptions: any latency may grow by a wait for room and a second prefill
		x.TTFT.High, x.E2E.High = x.TTFT.Most, x.E2E.Most
		x.E2E.Most += time.Duration(lots+1) * heldMost
		x.E2E.High = x.E2E.Most
		if steps > 0 {
			x.TPOT.Most = x.E2E.Most / steps
			x.TPOT.High = x.TPOT.Most
		}
	}
}

// meanStep is the decode step at the mean number of sequences in decode, slots·D/(P+D) for a prefill P
// and a decode D: a lower bound of the mean step, since larger batches yield more of the tokens.
func (c Config) meanStep(slots int, l Load) time.Duration {
	prefill := float64(c.PrefillWork(l.PromptTokens) + c.PrefillTime)
	batch := 1.0
	for range 50 { // a contraction: far more turns than it needs
		step := float64(c.StepBase) + batch*float64(c.StepPerSequence)
		decode := float64(l.OutputTokens-1) * step
		if decode == 0 {
			break
		}
		batch = max(1, float64(slots)*decode/(prefill+decode))
	}
	return c.StepBase + time.Duration(batch*float64(c.StepPerSequence))
}

func mulDiv(d time.Duration, mul, div int) time.Duration {
	return time.Duration(float64(d) * float64(mul) / float64(div))
}

// errorShare is the share of the requests in an engine of that population that fail.
func (c Config) errorShare(population int) float64 {
	if c.ErrorAbove > 0 && population <= c.ErrorAbove {
		return 0
	}
	return c.ErrorShare
}

// failures fills in the shares of failed requests.
func (c Config) failures(x *Expectation, l Load) {
	high := c.errorShare(x.Served)
	low := high
	if x.Served == c.ErrorAbove+1 && c.ErrorAbove > 0 {
		low = 0 // one client between two requests, and the engine is below the limit
	}
	rejectedHigh := 0.0
	if out := l.Clients - x.Served; out > 0 {
		pause := turnaround
		if c.RejectDelay < refusedQuickly {
			pause = backingOff
		}
		rate := float64(out) / (c.RejectDelay + pause).Seconds()
		x.RejectedLow, rejectedHigh = rate/(rate+x.Throughput), 1
	}
	x.FailedLow = 1 - (1-low)*(1-x.RejectedLow)
	x.FailedHigh = 1 - (1-high)*(1-rejectedHigh)
}

// The signals of a Goal, named as in an SLO file.
const (
	SignalTTFT    = "time_to_first_token"
	SignalE2E     = "request_duration"
	SignalTPOT    = "time_per_output_token"
	SignalSuccess = "success_ratio"
)

// Goal is an objective to predict: at least the share Target of the requests succeeds and, for the
// latency signals, has at most Threshold.
type Goal struct {
	Signal    string
	Threshold time.Duration
	Target    float64
}

// Causes of a first breach.
const (
	CauseService    = "service"    // a request alone in its slot is too slow
	CauseSlots      = "slots"      // requests wait for a slot
	CauseKV         = "kv"         // requests wait for, or lose, their place in the KV cache
	CauseErrors     = "errors"     // too many fail
	CauseRejections = "rejections" // too many are turned away
)

// FirstBreach is what a ladder of concurrencies must find.
type FirstBreach struct {
	Concurrency int    // first level at which a goal is broken for certain; 0: none
	LastOK      int    // last level before it at which all goals hold for certain; 0: none
	Cause       string // of the breach
	// Decided is false if the parameters leave open whether a level below Concurrency breaks, because
	// that depends on how the requests happen to fall in with each other, or on chance.
	Decided bool
}

// surely is how far the share of bad requests has to be from the allowed one, as a factor, for a
// measurement of a few hundred requests to come out the same way every time.
const surely = 1.5

// FirstBreach computes the first breach on a ladder of closed-loop concurrencies, in ascending order.
func (c Config) FirstBreach(ladder []int, prompt, output int, goals ...Goal) FirstBreach {
	answer := FirstBreach{Decided: true}
	for _, clients := range ladder {
		x := c.Expect(Load{Clients: clients, PromptTokens: prompt, OutputTokens: output})
		broken, held := false, true
		for _, g := range goals {
			low, high := c.bad(x, g)
			breaks := low > surely*(1-g.Target)
			broken = broken || breaks
			held = held && high <= (1-g.Target)/surely
			if breaks && answer.Cause == "" {
				answer.Cause = c.cause(x, g)
			}
		}
		if broken {
			answer.Concurrency = clients
			return answer
		}
		if !held {
			answer.Decided = false
		} else if answer.Decided {
			answer.LastOK = clients
		}
	}
	return answer
}

// bad bounds the share of requests that miss the goal.
func (c Config) bad(x Expectation, g Goal) (low, high float64) {
	var l Latency
	switch g.Signal {
	case SignalTTFT:
		l = x.TTFT
	case SignalE2E:
		l = x.E2E
	case SignalTPOT:
		l = x.TPOT
	default:
		return x.FailedLow, x.FailedHigh
	}
	slowLow, slowHigh := c.slow(x, g.Signal, l, g.Threshold)
	return x.FailedLow + (1-x.FailedLow)*slowLow, x.FailedHigh + (1-x.FailedHigh)*slowHigh
}

// slow bounds the share of answers over the threshold. A TTFT without any wait is the prefill alone,
// so its jitter gives the share; elsewhere three sigmas of it widen the bounds.
func (c Config) slow(x Expectation, signal string, l Latency, threshold time.Duration) (low, high float64) {
	if signal == SignalTTFT && x.Served <= x.SafeSlots && l.Low == l.Least {
		return c.exceeds(l.Least, threshold), c.exceeds(l.Most, threshold)
	}
	margin := math.Exp(3 * c.Jitter)
	low, _ = l.over(time.Duration(float64(threshold) * margin))
	_, high = l.over(time.Duration(float64(threshold) / margin))
	return low, high
}

// exceeds is the probability that d times the jitter factor is over the threshold.
func (c Config) exceeds(d, threshold time.Duration) float64 {
	switch {
	case d <= 0:
		return 0
	case c.Jitter == 0 && d > threshold:
		return 1
	case c.Jitter == 0:
		return 0
	}
	z := (math.Log(float64(threshold)/float64(d)) + c.Jitter*c.Jitter/2) / c.Jitter
	return math.Erfc(z/math.Sqrt2) / 2
}

// over bounds the share of values over a threshold, given the bounds of value and mean: Markov's
// inequality from below and from above.
func (l Latency) over(threshold time.Duration) (low, high float64) {
	t, least, most := threshold.Seconds(), l.Least.Seconds(), l.Most.Seconds()
	if threshold < l.Least {
		return 1, 1
	}
	if threshold >= l.Most {
		return 0, 0
	}
	low = max(0, (l.Low.Seconds()-t)/(most-t))
	high = 1
	if t > least {
		high = min(1, (l.High.Seconds()-least)/(t-least))
	}
	return low, high
}

// cause says why the goal is broken.
func (c Config) cause(x Expectation, g Goal) string {
	failed := x.FailedLow > 1-g.Target
	switch {
	case failed && x.RejectedLow > 1-g.Target:
		return CauseRejections
	case failed:
		return CauseErrors
	case x.Served <= x.SafeSlots:
		return CauseService
	case x.SafeSlots < min(x.Served, c.Slots):
		return CauseKV
	default:
		return CauseSlots
	}
}
