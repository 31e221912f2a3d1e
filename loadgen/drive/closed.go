package drive

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Closed is the closed loop: a fixed number of slots, each of which sends its next request as soon
// as the one before has ended. A slot whose requests fail fast, one after the other, backs off.
type Closed struct {
	Concurrency int
	// Spread is the time over which the slots start, evenly. Over one service time they begin out
	// of step with each other, as they would be after running for long; all at once they would
	// stay a burst that comes back with every answer.
	Spread time.Duration
	// Seed is that of the pauses of slots that back off: the same seed draws the same ones.
	Seed [2]uint64
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
		slots.Go(func() { s.slot(i, due, newBackoff(c.Seed, i)) })
	}
	slots.Wait()
	return s.close()
}

// slot sends one request after the other, the first at a given time.
func (s *session) slot(i int, due time.Time, b *backoff) {
	for ok := s.waitUntil(due); ok; {
		due, ok = s.send(i, due, b)
	}
}
