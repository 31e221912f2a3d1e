package gpu

import (
	"context"
	"fmt"
	"time"
)

// lane runs calls into the driver one after the other on a goroutine of its own, so that one that
// never returns can be left behind. A lane that was left behind ends when its call returns.
type lane struct {
	jobs chan func()
}

func newLane() *lane {
	l := &lane{jobs: make(chan func())}
	go func() {
		for job := range l.jobs {
			job()
		}
	}()
	return l
}

// outcome is how a job ended: nil, or the panic that it ended with.
type outcome chan error

// start begins a job; the lane must be free.
func (l *lane) start(job func()) outcome {
	done := make(outcome, 1)
	l.jobs <- func() {
		var err error
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
			done <- err
		}()
		job()
	}
	return done
}

// leave ends the lane once its job has returned.
func (l *lane) leave() { close(l.jobs) }

// wait waits for a job until the time is over (never, when it is 0) or ctx ends.
func (o outcome) wait(ctx context.Context, limit time.Duration) (ended bool, err error) {
	var over <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		over = t.C
	}
	select {
	case err := <-o:
		return true, err
	case <-over:
	case <-ctx.Done():
	}
	return false, nil
}

// returned reports whether the job has ended by now. It receives the outcome, and so may be asked
// until it says yes, and not again: what the job wrote may be read from then on.
func (o outcome) returned() bool {
	select {
	case <-o:
		return true
	default:
		return false
	}
}
