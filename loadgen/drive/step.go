package drive

import (
	"context"
	"errors"
	"time"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// Shape is a load shape: it decides when the requests of a step are sent.
type Shape interface {
	// Drive runs one step to its end. When ctx ends it sends nothing more, lets what is in flight
	// end within the step's Grace and aborts the rest. The error is the Recorder's, or says what
	// the step lacks; how the endpoint behaved is never one.
	Drive(ctx context.Context, step Step) (Summary, error)
}

// Sender sends one request and returns when its connection is done with.
type Sender interface {
	Do(ctx context.Context, body []byte) wire.Result
}

// Recorder is told what happens in a step. All but Record come in order of time, and Record from
// one goroutine, once for each request. The class of a request is 0 where there are none.
type Recorder interface {
	Enter(w record.Window, now time.Time) // the step's clock enters a window
	Sent(class int, now time.Time)
	Returned(class int, now time.Time)
	// BackingOff is told of slots that begin (1) or end (-1) to back off after a request.
	BackingOff(class, slots int, now time.Time)
	Record(q record.Request) error // an error ends the step
}

// Class is one kind of request of a mix.
type Class struct {
	Sender Sender
	// MaxInFlight, in an open loop: a request of the class is dropped while so many of all classes are
	// in flight. Of two classes the one with the lower limit is shed first. 0: the step's own.
	MaxInFlight int
}

// Step is what is sent, and until when.
type Step struct {
	Bounds   plan.Step
	Stop     plan.Stop
	Warmup   int                // requests that have to finish before measuring begins
	Body     func(n int) []byte // the body of the step's n-th request, counted from 0; called concurrently
	Sender   Sender
	Recorder Recorder
	Classes  []Class         // nil: all requests are alike
	ClassOf  func(n int) int // the class of the step's n-th request, by its place in Classes
	Grace    time.Duration   // how long requests in flight may go on after an interruption
	Abort    <-chan struct{} // closed: end at once; nil: never
	// Edges are moments at which the windows begin and the sending ends, whatever was sent until
	// then; nil: the step's own clock decides. Bounds then only say that there is an end.
	Edges *plan.Edges
}

// validate refuses a step that would never measure or never end.
func (s Step) validate() error {
	if s.Bounds.Requests <= 0 && s.Bounds.Duration <= 0 && s.Edges == nil {
		return errors.New("a step needs a number of measured requests or a duration")
	}
	return nil
}

// Summary says how a step went.
type Summary struct {
	Started     time.Time
	MeasureFrom time.Time // zero when measuring never began
	MeasureTo   time.Time
	Ended       time.Time
	// Stopped says what cut the step short; "" when it ran its course.
	Stopped string
	// StopRule is true when it was the plan's stop rule.
	StopRule bool
	// Service is the mean time that a measured ok request held its slot; 0 without one.
	Service time.Duration
	// Cold is true when measuring began at its edge before the warm-up was over; Undrained counts
	// the measured requests that were in flight still when the load ended at its edge.
	Cold      bool
	Undrained int
}

// Interrupted is the Stopped text of a step that was interrupted from outside.
const Interrupted = "interrupted"

// class is the class of the n-th request.
func (s Step) class(n int) int {
	if s.Classes == nil {
		return 0
	}
	return s.ClassOf(n)
}

// sender sends the requests of a class.
func (s Step) sender(class int) Sender {
	if s.Classes == nil {
		return s.Sender
	}
	return s.Classes[class].Sender
}

// limit is how many requests may be in flight for one more of a class to be sent.
func (s Step) limit(class, maxInFlight int) int {
	if s.Classes == nil || s.Classes[class].MaxInFlight == 0 {
		return maxInFlight
	}
	return min(maxInFlight, s.Classes[class].MaxInFlight)
}
