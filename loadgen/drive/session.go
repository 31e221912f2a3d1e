package drive

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// session is one step being driven: what every load shape needs beside its timing.
type session struct {
	step     Step
	gate     *gate
	do       func(class int, body []byte) wire.Result // sends in the requests' own context, which outlives an interruption by Grace
	abort    context.CancelFunc
	next     atomic.Int64
	results  chan record.Request
	recorded chan error // the recorder's last word
	watched  chan struct{}
	over     chan struct{}
}

// open starts the step's clock, the goroutine that records and the one that heeds interruptions.
// In flight is at most inFlight requests; the queue to the recorder holds a few times as many, so
// that recording never delays the next request of a slot.
func open(ctx context.Context, step Step, inFlight int) *session {
	requests, abort := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{
		step: step, gate: newGate(step), abort: abort,
		do:       func(class int, body []byte) wire.Result { return step.sender(class).Do(requests, body) },
		results:  make(chan record.Request, 4*inFlight),
		recorded: make(chan error, 1),
		watched:  make(chan struct{}),
		over:     make(chan struct{}),
	}
	go s.record()
	go s.watch(ctx)
	return s
}

// record hands every finished request to the Recorder. Its first error ends the step: what can't
// be recorded isn't measured.
func (s *session) record() {
	var failed error
	for q := range s.results {
		if failed != nil {
			continue
		}
		if failed = s.step.Recorder.Record(q); failed != nil {
			s.gate.interrupt(fmt.Sprintf("recording failed: %v", failed))
			s.abort()
		}
	}
	s.recorded <- failed
}

// watch ends the sending when ctx ends, and the requests in flight after Grace or on Abort.
func (s *session) watch(ctx context.Context) {
	defer close(s.watched)
	defer s.abort()
	select {
	case <-s.over:
		return
	case <-s.step.Abort:
		s.gate.interrupt(Interrupted)
		return
	case <-ctx.Done():
		s.gate.interrupt(Interrupted)
	}
	grace := time.NewTimer(s.step.Grace)
	defer grace.Stop()
	select {
	case <-s.over:
	case <-s.step.Abort:
	case <-grace.C:
	}
}

// waitUntil sleeps until t; it is false when nothing more is to be sent.
func (s *session) waitUntil(t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.gate.done:
		return false
	case <-timer.C:
		return true
	}
}

// send sends one request of a slot that was due at a given time, and returns when the slot's next one
// is: when this one has ended, or after the pause of a slot that backs off. ok is false when the step
// sends nothing more.
func (s *session) send(slot int, due time.Time, b *backoff) (next time.Time, ok bool) {
	n := int(s.next.Add(1) - 1)
	class, body := s.step.class(n), s.step.Body(n)
	w, started, ok := s.gate.admit(class)
	if !ok {
		return started, false
	}
	q := record.Request{Slot: slot, Class: class, Window: w, Scheduled: due, Started: started, Result: s.do(class, body)}
	q.Returned = s.gate.settle(q)
	s.results <- q
	pause := b.after(q.Result.Outcome, q.Returned.Sub(started))
	if pause == 0 {
		return q.Returned, true
	}
	next = q.Returned.Add(pause)
	s.gate.backOff(class, 1)
	defer s.gate.backOff(class, -1)
	return next, s.waitUntil(next)
}

// close waits until everything is recorded; the slots have ended before.
func (s *session) close() (Summary, error) {
	close(s.results)
	err := <-s.recorded
	close(s.over)
	<-s.watched
	return s.gate.finish(), err
}
