package sim

import (
	"context"
	"sync"
	"time"
)

// Failure is how a request ends when it doesn't end well.
type Failure int

// The failures.
const (
	FailNone     Failure = iota
	FailStatus           // an error status, before the first token
	FailError            // an error event in the stream, then [DONE]
	FailReset            // the connection is reset
	FailTruncate         // the stream ends without a terminal marker
	FailNoFinish         // [DONE] without a finish reason
)

// Timings are the parts of a request's time, as the engine sees them.
type Timings struct {
	Total   time.Duration // arrival to latest token
	Queue   time.Duration // arrival to slot
	Prefill time.Duration // slot to first token
	Decode  time.Duration // first to latest token
}

// Progress is how far a request has come.
type Progress struct {
	Tokens  int
	Done    bool
	Failure Failure // when Done
	Timings Timings
}

// Stream is the answer to one request. It holds counts, not tokens, so that a slow reader costs the
// engine neither memory nor time. It has one reader.
type Stream struct {
	number  int  // of the request
	prompt  int  // its tokens
	natural bool // ends by itself rather than at the request's limit
	hold    bool // an error status may still come: the headers have to wait for the first token
	seq     *sequence

	mu     sync.Mutex
	latest Progress
	notify chan struct{}
}

func newStream(s *sequence) *Stream {
	return &Stream{
		number: s.number, prompt: s.prompt, natural: s.natural, hold: s.doubtful, seq: s,
		notify: make(chan struct{}, 1),
	}
}

// Number is the request's number in order of arrival, from 1.
func (s *Stream) Number() int { return s.number }

// publish stores the latest progress and wakes the reader. It never blocks.
func (s *Stream) publish(p Progress) {
	s.mu.Lock()
	s.latest = p
	s.mu.Unlock()
	select {
	case s.notify <- struct{}{}:
	default:
	}
}

// Next waits until more than seen tokens are there or the answer has ended. It returns ctx's error if
// ctx ends first; the request then still runs until Engine.Cancel.
func (s *Stream) Next(ctx context.Context, seen int) (Progress, error) {
	for {
		s.mu.Lock()
		p := s.latest
		s.mu.Unlock()
		if p.Tokens > seen || p.Done {
			return p, nil
		}
		select {
		case <-s.notify:
		case <-ctx.Done():
			return Progress{}, ctx.Err()
		}
	}
}
