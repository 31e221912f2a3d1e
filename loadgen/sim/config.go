package sim

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Ways to turn a request away when the engine is full.
const (
	Reject429    = "429"     // status 429 Too Many Requests
	Reject503    = "503"     // status 503 Service Unavailable
	RejectInBand = "in-band" // status 200 and an error event, where the request asked for a stream; else 503
)

// When a streamed answer's response headers are sent.
const (
	HeadersAuto       = "auto"        // at once on /v1, with the first token on /api
	HeadersAtOnce     = "at-once"     // before the request is queued, as vLLM does
	HeadersFirstToken = "first-token" // with the first token, as Ollama does
)

// Config holds the engine's parameters. Default gives a usable set; the zero value does not validate.
type Config struct {
	// Model is the only model there is; a request for another gets 404. It is also the model_name label.
	Model string

	// Slots is the greatest number of requests in prefill and decode together.
	Slots int
	// PrefillTime is the part of a prefill that doesn't depend on the prompt and is spent by each
	// request on its own, in parallel with all others.
	PrefillTime time.Duration
	// PrefillRate is the speed of the engine's one prefill unit in prompt tokens per second. Prompts
	// pass through it one after another. 0: it takes no time.
	PrefillRate float64
	// StepBase and StepPerSequence give the time of one decode step for a batch of b sequences:
	// StepBase + b·StepPerSequence. A step yields one token for each of them.
	StepBase        time.Duration
	StepPerSequence time.Duration
	// KVTokens is the capacity of the KV cache in tokens, prompt and output together. When it runs
	// out, the request admitted last is preempted: it returns to the head of the queue, and its
	// prompt and output so far are prefilled anew. 0: no limit.
	KVTokens int

	// MaxRequests is the greatest number of requests in the engine, queued ones included; one more is
	// turned away. 0: no limit.
	MaxRequests int
	// Reject says how: Reject429, Reject503 or RejectInBand.
	Reject string
	// RejectDelay is how long it takes to turn a request away.
	RejectDelay time.Duration
	// RetryAfter is sent with a rejection in whole seconds, rounded up. 0: no Retry-After header.
	RetryAfter time.Duration

	// DefaultTokens is the length of an answer to a request that names no limit.
	DefaultTokens int

	// Jitter is the sigma of the lognormal factor, of mean 1, on each request's prefill and on each
	// decode step. 0: none.
	Jitter float64
	// Seed fixes every random draw: a request's factor depends on Seed and its number, a step's on
	// Seed and its number, so that the same arrivals give the same service times.
	Seed uint64

	// ErrorShare is the share of requests that fail, 0–1, spread evenly over the request numbers.
	ErrorShare float64
	// ErrorAbove lets them fail only if more than so many requests are in the engine when the prefill
	// ends. 0: always.
	ErrorAbove int
	// ErrorStatus is the status of a failure, 500–599, sent before the first token; 200 sends an
	// error event in the stream, then [DONE], after ErrorTokens tokens.
	ErrorStatus int
	ErrorTokens int

	// LoadTime is how long every API call is answered 503 "Loading model" after the start.
	LoadTime time.Duration

	// Headers says when the response headers of a stream go out.
	Headers string
	// Stamp adds "sim_sent_ns" to every streamed event: the time just before it was written, in
	// nanoseconds of the machine's CLOCK_MONOTONIC.
	Stamp bool

	// Faults happen in this run; more can be posted to /sim/fault while it runs.
	Faults []Fault
}

// Default returns the parameters that the flags default to: 4 slots, 30 ms to the first token,
// 50 tokens per second, nothing limited, nothing failing.
func Default() Config {
	return Config{
		Model:         "sim",
		Slots:         4,
		PrefillTime:   30 * time.Millisecond,
		StepBase:      20 * time.Millisecond,
		Reject:        Reject503,
		DefaultTokens: 16,
		Seed:          1,
		ErrorStatus:   500,
		Headers:       HeadersAuto,
	}
}

// Demo returns the parameters of the engine that the standalone demo runs against. With prompts of 32
// words and answers of 10 tokens in a closed loop they imply:
//
//	clients  TTFT    time per request  requests per second
//	1         33 ms  107 ms             9.3
//	2         33 ms  112 ms            18
//	4         33 ms  117 ms            34
//	8        149 ms  232 ms            34
//
// so that "95 % of requests have a TTFT of at most 80 ms" breaks first at 8 clients and last holds at 4.
// The jitter spreads the prefill by 8 %: its 95th percentile is 38 ms. At 8 clients 5 % of the TTFTs
// are below 141 ms. 40 requests of one client after the other take 4.3 s.
func Demo() Config {
	c := Default()
	c.PrefillTime = 32 * time.Millisecond
	c.PrefillRate = 32000
	c.StepBase = 8 * time.Millisecond
	c.StepPerSequence = 250 * time.Microsecond
	c.Jitter = 0.08
	return c
}

// Validate returns every impossible value at once, each naming the flag that sets it.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Model != "", "--model is empty: give the name that requests ask for")
	check(c.Slots >= 1, "--slots=%d: at least 1", c.Slots)
	check(c.PrefillTime >= 0, "--prefill-time=%s: not below 0", c.PrefillTime)
	check(finite(c.PrefillRate) && c.PrefillRate >= 0, "--prefill-rate=%g: tokens per second, or 0 for no time at all", c.PrefillRate)
	check(c.StepBase >= 0 && c.StepPerSequence >= 0 && c.StepBase+c.StepPerSequence > 0,
		"--step-base=%s --step-per-sequence=%s: neither below 0, and one of them above", c.StepBase, c.StepPerSequence)
	check(c.KVTokens >= 0, "--kv-tokens=%d: a number of tokens, or 0 for no limit", c.KVTokens)
	check(c.MaxRequests >= 0, "--max-requests=%d: a number of requests, or 0 for no limit", c.MaxRequests)
	check(c.Reject == Reject429 || c.Reject == Reject503 || c.Reject == RejectInBand, "--reject=%q: one of 429, 503, in-band", c.Reject)
	check(c.RejectDelay >= 0, "--reject-delay=%s: not below 0", c.RejectDelay)
	check(c.RetryAfter >= 0, "--retry-after=%s: not below 0", c.RetryAfter)
	check(c.DefaultTokens >= 1, "--default-tokens=%d: at least 1", c.DefaultTokens)
	check(finite(c.Jitter) && c.Jitter >= 0 && c.Jitter <= 2, "--jitter=%g: between 0 and 2", c.Jitter)
	check(c.ErrorShare >= 0 && c.ErrorShare <= 1, "--error-share=%g: between 0 and 1", c.ErrorShare)
	check(c.ErrorAbove >= 0, "--error-above=%d: a number of requests, or 0 for always", c.ErrorAbove)
	check(c.ErrorStatus == 200 || c.ErrorStatus >= 500 && c.ErrorStatus <= 599, "--error-status=%d: 200 for an error in the stream, or 500 to 599", c.ErrorStatus)
	check(c.ErrorTokens >= 0, "--error-tokens=%d: not below 0", c.ErrorTokens)
	check(c.LoadTime >= 0, "--load-time=%s: not below 0", c.LoadTime)
	check(c.Headers == HeadersAuto || c.Headers == HeadersAtOnce || c.Headers == HeadersFirstToken, "--headers=%q: one of auto, at-once, first-token", c.Headers)
	for _, f := range c.Faults {
		if err := f.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("--fault=%s: %w", f, err))
		}
	}
	return errors.Join(errs...)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Step returns the time of one decode step of a batch of b sequences, without jitter.
func (c Config) Step(b int) time.Duration {
	return c.StepBase + time.Duration(b)*c.StepPerSequence
}

// PrefillWork returns how long a prompt of so many tokens occupies the prefill unit, without jitter.
func (c Config) PrefillWork(tokens int) time.Duration {
	if c.PrefillRate == 0 {
		return 0
	}
	return time.Duration(float64(tokens) / c.PrefillRate * float64(time.Second))
}
