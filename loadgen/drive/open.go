package drive

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// Open is the open loop: requests arrive by a schedule of their own, however many are in flight.
// The schedule never waits for an answer: a request that the client sends late counts from when it
// was due, and one that is due while MaxInFlight others are under way is dropped, which counts as
// failed.
type Open struct {
	Rate        float64   // mean number of requests that are due in a second
	Poisson     bool      // exponential times between two requests; else all are equal
	MaxInFlight int       // bounds connections and memory
	Seed        [2]uint64 // of the Poisson schedule: the same seed gives the same times
}

// Drive implements Shape.
func (o Open) Drive(ctx context.Context, step Step) (Summary, error) {
	if o.Rate <= 0 || o.MaxInFlight < 1 {
		return Summary{}, fmt.Errorf("rate %v with at most %d in flight: an open loop needs both above zero", o.Rate, o.MaxInFlight)
	}
	if err := step.validate(); err != nil {
		return Summary{}, err
	}
	return arrive(ctx, step, o.MaxInFlight, o.schedule)
}

// schedule returns a function that gives the time of each request since the beginning, one after the
// other. The times are computed from the beginning, so that nothing adds up.
func (o Open) schedule(*session, time.Time) func() (time.Duration, bool) {
	if !o.Poisson {
		n := -1.0
		return func() (time.Duration, bool) {
			n++
			return inSeconds(n / o.Rate), true
		}
	}
	random := rand.New(rand.NewPCG(o.Seed[0], o.Seed[1]))
	sum := 0.0
	return func() (time.Duration, bool) {
		sum += random.ExpFloat64() / o.Rate
		return inSeconds(sum), true
	}
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// arrive sends requests at the times of a schedule, until the step or the schedule is over. The schedule
// is made for a session and its beginning, and gives the times since then as long as there are any.
func arrive(ctx context.Context, step Step, maxInFlight int, schedule func(s *session, start time.Time) func() (time.Duration, bool)) (Summary, error) {
	s := open(ctx, step, maxInFlight)
	start := time.Now()
	next := schedule(s, start)
	var inFlight atomic.Int64 // raised here alone, so that it never passes the limit
	var flying sync.WaitGroup
	for n := 0; ; n++ {
		at, more := next()
		if !more {
			s.gate.exhausted()
			break
		}
		class, body := step.class(n), step.Body(n)
		due := start.Add(at)
		if !s.waitUntil(due) {
			break
		}
		w, started, ok := s.gate.admit(class)
		if !ok {
			break
		}
		q := record.Request{Slot: n, Class: class, Window: w, Scheduled: due, Started: started, Open: true}
		if inFlight.Load() >= int64(step.limit(class, maxInFlight)) {
			q.Result = wire.Result{Outcome: wire.Dropped, Error: "the cap on requests in flight was reached"}
			q.Returned = s.gate.settle(q)
			s.results <- q
			continue
		}
		inFlight.Add(1)
		flying.Go(func() {
			q.Result = s.do(class, body)
			q.Returned = s.gate.settle(q)
			inFlight.Add(-1)
			s.results <- q
		})
	}
	flying.Wait()
	return s.close()
}
