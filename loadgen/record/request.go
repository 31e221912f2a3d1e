package record

import (
	"cmp"
	"fmt"
	"time"

	"firstbreach/internal/level"
	"firstbreach/loadgen/wire"
)

// Window is the part of a step in which a request started.
type Window string

// The windows of a step, in the order in which they come.
const (
	Warmup  Window = "warmup"  // until as many requests as the step has slots have finished
	Measure Window = "measure" // the requests that count
	Drain   Window = "drain"   // keeps the load up until the last measured request has ended
)

// Windows lists every window.
func Windows() []Window { return []Window{Warmup, Measure, Drain} }

// index is the window's place in Windows.
func (w Window) index() int {
	switch w {
	case Measure:
		return 1
	case Drain:
		return 2
	default:
		return 0
	}
}

// StepID names one step of one round; where a plan has classes of requests, one class of it.
type StepID struct {
	Phase       string
	Round       int
	Step        int
	Concurrency int     // 0 in an open loop
	Rate        float64 // 0 in a closed loop
	Class       string  // "" where a plan has no classes
	Shard       string  // which load generator of several; "" where there is one
}

// Level is the load of the step.
func (id StepID) Level() level.Level { return level.Level{Concurrency: id.Concurrency, Rate: id.Rate} }

func (id StepID) String() string {
	text := fmt.Sprintf("%s round %d step %d", id.Phase, id.Round, id.Step)
	if id.Class != "" {
		text += " class " + id.Class
	}
	return text
}

// Request is one finished request of a step.
type Request struct {
	Slot      int
	Class     int // its place among the classes of the step; 0 where there are none
	Window    Window
	Scheduled time.Time // when it was due: in a closed loop when its slot became free
	Open      bool      // in an open loop: the user has waited since Scheduled, not since it was sent
	Started   time.Time // when it was handed to the client
	Returned  time.Time // when the client was done with it
	Result    wire.Result
}

// Occupancy is how long the request held its slot: from when it was handed to the client, dialling
// included, until the connection was free.
func (q Request) Occupancy() time.Duration {
	if q.Result.SentAt.IsZero() {
		return q.Returned.Sub(q.Started)
	}
	return max(0, q.Result.SentAt.Add(q.Result.End).Sub(q.Started))
}

// DispatchDelay is how late the client itself was: from when the request was due until it was
// being sent, without dialling, which isn't the client's doing.
func (q Request) DispatchDelay() time.Duration {
	sent := q.Result.SentAt.Add(-q.Result.Dial)
	if sent.Before(q.Started) { // it never got as far as a connection
		sent = q.Started
	}
	return max(0, sent.Sub(q.Scheduled))
}

// Measured is the request's result as its user saw it. In an open loop the user has waited since
// the request was due: however late it was sent, and whatever kept it, the wait is part of the
// latency (what leaving it out does is known as coordinated omission). The earliest possible values
// leave out what the client alone was late: a verdict that hangs on that isn't one on the service.
func (q Request) Measured() wire.Result {
	r := q.Result
	if !q.Open || r.SentAt.IsZero() {
		return r
	}
	late := max(0, r.SentAt.Sub(q.Scheduled))
	notOurs := max(0, late-q.DispatchDelay()) // dialling
	r.TTFTMin, r.E2EMin = later(cmp.Or(r.TTFTMin, r.TTFT), notOurs), later(cmp.Or(r.E2EMin, r.E2E), notOurs)
	r.TTFT, r.E2E = later(r.TTFT, late), later(r.E2E, late)
	return r
}

func later(d *time.Duration, by time.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	sum := *d + by
	return &sum
}

// Entry is the request's ledger line.
func (q Request) Entry(id int64, step StepID) Entry {
	r := q.Measured()
	e := Entry{
		ID: id, Phase: step.Phase, Round: step.Round, Step: step.Step, Concurrency: step.Concurrency,
		Rate: step.Rate, Class: step.Class, Shard: step.Shard,
		Slot: q.Slot, Window: string(q.Window), ScheduledAt: q.Scheduled.UTC().Round(0),
		TTFT: seconds(r.TTFT), E2E: seconds(r.E2E), TPOT: seconds(r.TPOT), Chunks: r.Chunks,
		TTFTMin: seconds(r.TTFTMin), E2EMin: seconds(r.E2EMin), TPOTMin: seconds(r.TPOTMin),
		PromptTokens: r.PromptTokens, CachedPromptTokens: r.CachedPromptTokens,
		OutputTokens: r.OutputTokens, TokenSource: string(r.TokenSource),
		Outcome: string(r.Outcome), TimeoutKind: string(r.TimeoutKind), HTTPStatus: r.HTTPStatus,
		Error: r.Error, Warnings: r.Warnings, DialS: r.Dial.Seconds(),
		HeaderS: seconds(r.Header), FirstEventS: seconds(r.FirstEvent), FirstTextS: seconds(r.FirstText),
		EndS: r.End.Seconds(), QueueWaitS: seconds(r.QueueWait), StampSource: r.StampSource,
		ReadStamped: r.ReadStamped, LateChunks: r.LateChunks,
	}
	if !r.SentAt.IsZero() {
		sent := r.SentAt.UTC().Round(0)
		e.SentAt = &sent
	}
	return e
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := d.Seconds()
	return &s
}
