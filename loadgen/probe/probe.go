package probe

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// Sender sends one request and returns when its connection is done with.
type Sender interface {
	Do(ctx context.Context, body []byte) wire.Result
}

// Recorder is told what happens.
type Recorder interface {
	Sent(now time.Time)
	Returned(now time.Time)
	Observe(q record.Request)
}

// Probe is what is sent, and how often.
type Probe struct {
	Every       time.Duration      // between two requests, on average
	MaxInFlight int                // requests at once; one that is due beyond it is counted as dropped
	Body        func(n int) []byte // the body of the n-th request, counted from 0
	Sender      Sender
	Recorder    Recorder
	Log         *slog.Logger
	Seed        uint64 // of the jitter: probes with different seeds don't march in step
	Grace       time.Duration
}

// jitter is how far a request may be from its place in the schedule, as a share of the interval.
// Without it, something that happens every minute would be met each time, or never.
const jitter = 0.25

// validate refuses a probe that would send nothing, or too much.
func (p Probe) validate() error {
	if p.Every <= 0 || p.MaxInFlight <= 0 {
		return errors.New("a probe needs an interval and room for a request in flight")
	}
	return nil
}

// Run sends until ctx ends, then lets what is in flight end within Grace. The k-th request is due at
// k × Every and a little beside it, whatever became of those before: when the service hangs, and with
// it every request in flight, those that are due and can't be sent count as failed.
func (p Probe) Run(ctx context.Context) error {
	if err := p.validate(); err != nil {
		return err
	}
	s := &session{Probe: p, random: rand.New(rand.NewPCG(p.Seed, 1)), free: make(chan int, p.MaxInFlight)}
	for slot := range p.MaxInFlight {
		s.free <- slot
	}
	// Requests outlive ctx by Grace.
	sending, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	start := time.Now()
	for n := 0; s.waitUntil(ctx, s.due(start, n)); n++ {
		s.send(sending, n, s.due(start, n))
	}
	return s.drain(abort)
}

// session is a running probe.
type session struct {
	Probe
	random *rand.Rand
	free   chan int // slots
	wait   sync.WaitGroup

	dueOf int // the request that dueAt is of
	dueAt time.Time
}

// due is when a request is to be sent. It is asked for each in turn, more than once.
func (s *session) due(start time.Time, n int) time.Time {
	if s.dueAt.IsZero() || n != s.dueOf {
		aside := (2*s.random.Float64() - 1) * jitter
		s.dueOf, s.dueAt = n, start.Add(time.Duration((float64(n)+jitter+aside)*float64(s.Every)))
	}
	return s.dueAt
}

func (s *session) waitUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// send sends a request in a free slot. Without one the request is dropped: it was due, a user would
// have sent it, and it was not answered.
func (s *session) send(ctx context.Context, n int, due time.Time) {
	select {
	case slot := <-s.free:
		s.wait.Go(func() {
			s.observe(ctx, slot, n, due)
			s.free <- slot
		})
	default:
		now := time.Now()
		s.Recorder.Observe(record.Request{
			Slot: -1, Window: record.Measure, Scheduled: due, Open: true, Started: now, Returned: now,
			Result: wire.Result{Outcome: wire.Dropped, Error: "every request that may be in flight still is"},
		})
		s.Log.Warn("A probe was due and could not be sent: it counts as failed", "in_flight", s.MaxInFlight)
	}
}

func (s *session) observe(ctx context.Context, slot, n int, due time.Time) {
	started := time.Now()
	s.Recorder.Sent(started)
	r := s.Sender.Do(ctx, s.Body(n))
	ended := time.Now()
	s.Recorder.Returned(ended)
	s.Recorder.Observe(record.Request{
		Slot: slot, Window: record.Measure, Scheduled: due, Open: true, Started: started, Returned: ended, Result: r,
	})
	if r.Outcome != wire.OK && r.Outcome != wire.Aborted {
		s.Log.Warn("A probe failed", "outcome", r.Outcome, "status", r.HTTPStatus, "err", r.Error)
	}
}

// drain waits for what is in flight, and aborts what takes longer than Grace.
func (s *session) drain(abort context.CancelFunc) error {
	done := make(chan struct{})
	go func() {
		s.wait.Wait()
		close(done)
	}()
	timer := time.NewTimer(s.Grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		abort()
		<-done
	}
	return nil
}
