package drive

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"firstbreach/internal/level"
)

// Fluctuate is a load that follows a curve: a closed loop whose slots come and go, or an open loop
// whose rate rises and falls. The curve begins when measuring does; the warm-up is at its low level.
type Fluctuate struct {
	Curve       level.Curve
	Poisson     bool      // of an open loop
	MaxInFlight int       // of an open loop
	Seed        [2]uint64 // of Poisson arrivals, and of the pauses of slots that back off
}

// curveStep is how finely a curve is followed.
const curveStep = 5 * time.Millisecond

// Drive implements Shape.
func (f Fluctuate) Drive(ctx context.Context, step Step) (Summary, error) {
	low, high := f.Curve.Levels()
	if low.IsZero() || high.Compare(low) <= 0 {
		return Summary{}, fmt.Errorf("a load that goes from %s to %s: the lower level comes first, and is above zero", low, high)
	}
	if step.Bounds.Duration <= 0 {
		return Summary{}, fmt.Errorf("a fluctuating load needs a duration")
	}
	if f.Curve.PerSecond {
		return arrive(ctx, step, f.MaxInFlight, f.schedule)
	}
	s := open(ctx, step, high.Concurrency)
	start := time.Now()
	var slots sync.WaitGroup
	for i := range high.Concurrency {
		slots.Go(func() {
			due, ok, b := start, true, newBackoff(f.Seed, i)
			for ok && f.slotDue(s, i, &due) {
				due, ok = s.send(i, due, b)
			}
		})
	}
	slots.Wait()
	return s.close()
}

// slotDue waits until it is a slot's turn. due is when it became free, and then when its turn came; it
// is false when the step sends nothing more.
func (f Fluctuate) slotDue(s *session, slot int, due *time.Time) bool {
	if slot < int(f.Curve.Low) {
		return s.waitUntil(*due)
	}
	select {
	case <-s.gate.done:
		return false
	case <-s.gate.begun:
	}
	begun := s.gate.measureFrom()
	at := max(0, due.Sub(begun))
	for end := s.step.Bounds.Duration; f.Curve.Slots(at.Seconds()) <= slot; at += curveStep {
		if at > end { // not once more: what is left of the step is the drain
			<-s.gate.done
			return false
		}
	}
	if turn := begun.Add(at); turn.After(*due) {
		*due = turn
	}
	return s.waitUntil(*due)
}

// schedule gives the times at which requests are due: one for each unit of the rate's integral, or, for
// Poisson arrivals, for each exponential draw of it.
func (f Fluctuate) schedule(s *session, start time.Time) func() (time.Duration, bool) {
	random := rand.New(rand.NewPCG(f.Seed[0], f.Seed[1]))
	at, first := time.Duration(0), true
	return func() (time.Duration, bool) {
		need := 1.0
		if f.Poisson {
			need = random.ExpFloat64()
		} else if first {
			need = 0
		}
		first = false
		for need > 0 {
			since := -1.0
			if begun := s.gate.measureFrom(); !begun.IsZero() {
				since = start.Add(at).Sub(begun).Seconds()
			}
			rate := f.Curve.Value(since)
			if part := rate * curveStep.Seconds(); part < need {
				need, at = need-part, at+curveStep
				continue
			}
			at += inSeconds(need / rate)
			need = 0
		}
		return at, true
	}
}
