package drive

import (
	"context"
	"errors"
	"time"
)

// Replay is an open loop whose requests are due at given times: those of a recorded load. It ends with
// the last of them, however long the step's Bounds are.
type Replay struct {
	Times       []time.Duration // since the beginning, rising
	MaxInFlight int             // bounds connections and memory
}

// bodiesAhead bounds how many bodies are made before they are due. Those of a long prompt take a
// millisecond, and traces have many requests at one moment: made one by one then, they would be late.
const bodiesAhead = 64

// Drive implements Shape.
func (r Replay) Drive(ctx context.Context, step Step) (Summary, error) {
	if len(r.Times) == 0 || r.MaxInFlight < 1 {
		return Summary{}, errors.New("a replay needs requests, and a limit on those in flight that is above zero")
	}
	if err := step.validate(); err != nil {
		return Summary{}, err
	}
	over := make(chan struct{})
	defer close(over)
	step.Body = r.ahead(step.Body, over)
	return arrive(ctx, step, r.MaxInFlight, r.schedule)
}

// ahead makes the bodies before they are asked for, until over is closed. Arrive asks for each once, in
// their order.
func (r Replay) ahead(body func(int) []byte, over <-chan struct{}) func(int) []byte {
	made := make(chan []byte, bodiesAhead)
	go func() {
		for n := range r.Times {
			select {
			case made <- body(n):
			case <-over:
				return
			}
		}
	}()
	return func(int) []byte { return <-made }
}

func (r Replay) schedule(*session, time.Time) func() (time.Duration, bool) {
	n := -1
	return func() (time.Duration, bool) {
		if n++; n == len(r.Times) {
			return 0, false
		}
		return r.Times[n], true
	}
}
