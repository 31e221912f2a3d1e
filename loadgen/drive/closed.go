package drive

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Closed is the closed loop: a fixed number of slots, each of which sends its next request as soon
// as the one before has ended.
type Closed struct {
	Concurrency int
	// Spread is the time over which the slots start, evenly. Over one service time they begin out
	// of step with each other, as they would be after running for long; all at once they would
	// stay a burst that comes back with every answer.
	Spread time.Duration
	// Pause is how long a slot waits after a request that failed in less time. 0: not at all.
	Pause time.Duration
}

// Drive implements Shape.
func (c Closed) Drive(ctx context.Context, step Step) (Summary, error) {
	if c.Concurrency < 1 {
		return Summary{}, fmt.Errorf("concurrency %d: a closed loop needs at least one slot", c.Concurrency)
	}
	if err := step.validate(); err != nil {
		return Summary{}, err
	}
	s := open(ctx, step, c.Concurrency)
	start := time.Now()
	var slots sync.WaitGroup
	for i := range c.Concurrency {
		due := start.Add(c.Spread * time.Duration(i) / time.Duration(c.Concurrency))
		slots.Go(func() { s.slot(i, due, c.Pause) })
	}
	slots.Wait()
	return s.close()
}

// slot sends one request after the other, the first at a given time.
func (s *session) slot(i int, due time.Time, pause time.Duration) {
	for s.waitUntil(due) {
		began := due
		ended, outcome, ok := s.send(i, due)
		if !ok {
			return
		}
		due = ended
		if outcome.Failed() && ended.Sub(began) < pause {
			due = began.Add(pause)
		}
	}
}
