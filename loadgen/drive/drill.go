package drive

import (
	"context"
	"sync"
	"time"

	"firstbreach/loadgen/record"
)

// Drill does something while a load is held, and undoes it.
type Drill struct {
	Load Shape         // what is held meanwhile
	At   time.Duration // since measuring began
	For  time.Duration // until Undo is run; 0: when the load has ended
	// Do is the drill. When it fails the load ends, because there is nothing to see.
	Do func(ctx context.Context) error
	// Undo is run on every exit: when its time has come, or the load ended, was interrupted or
	// aborted before it, or Do failed. Nil: there is nothing to undo. An interruption doesn't reach
	// it, so it has to bound itself.
	Undo func(ctx context.Context) error
	// Note is told when Do and Undo began and ended, one after the other.
	Note func(event string, from, to time.Time, err error)
}

// The events that a Drill notes.
const (
	EventDrill   = "drill"
	EventRestore = "restore"
)

// Drive implements Shape.
func (d Drill) Drive(ctx context.Context, step Step) (Summary, error) {
	load, end := context.WithCancel(ctx)
	defer end()
	begun := &begins{Recorder: step.Recorder, measuring: make(chan struct{})}
	step.Recorder = begun
	over := make(chan struct{})
	var failed error
	var acts sync.WaitGroup
	acts.Go(func() {
		done := false
		if d.wait(ctx, begun.measuring, over) && d.waitFor(ctx, d.At, over) {
			done = true
			if failed = d.act(ctx, EventDrill, d.Do); failed != nil {
				end()
			} else if d.For > 0 {
				d.waitFor(ctx, d.For, over)
			} else {
				<-over
			}
		}
		if done && d.Undo != nil {
			_ = d.act(context.WithoutCancel(ctx), EventRestore, d.Undo) // Note is told
		}
	})
	sum, err := d.Load.Drive(load, step)
	close(over)
	acts.Wait()
	if failed != nil && ctx.Err() == nil {
		sum.Stopped = "drill: " + failed.Error()
	}
	return sum, err
}

// act does one thing and notes it.
func (d Drill) act(ctx context.Context, event string, do func(context.Context) error) error {
	from := time.Now()
	err := do(ctx)
	d.Note(event, from, time.Now(), err)
	return err
}

func (d Drill) wait(ctx context.Context, for_, over <-chan struct{}) bool {
	select {
	case <-for_:
		return true
	case <-ctx.Done():
	case <-over:
	}
	return false
}

// waitFor waits a time; it is false when the load was over before.
func (d Drill) waitFor(ctx context.Context, t time.Duration, over <-chan struct{}) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-over:
	}
	return false
}

// begins tells when measuring begins.
type begins struct {
	Recorder
	measuring chan struct{}
}

// Enter implements Recorder.
func (b *begins) Enter(w record.Window, now time.Time) {
	b.Recorder.Enter(w, now)
	if w == record.Measure {
		close(b.measuring)
	}
}
