package sim

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Engine runs the scheduler in real time, or in the virtual time of a testing/synctest bubble: it uses
// package time and no clock of its own. It always sleeps until an absolute time, so that a late
// wake-up delays what was due then and nothing after it.
type Engine struct {
	start time.Time
	wake  chan struct{}

	mu      sync.Mutex
	core    *core
	crashes int    // crashes reported to onCrash
	onCrash func() // set before Run
}

// New returns an engine with valid parameters. Its time starts now; nothing moves until Run.
func New(cfg Config) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Engine{start: time.Now(), wake: make(chan struct{}, 1), core: newCore(cfg), onCrash: func() {}}, nil
}

// Run moves the engine until ctx ends. Requests still in it are then reset.
func (e *Engine) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			e.stop()
			return
		case <-timer.C:
		case <-e.wake:
		}
		var due time.Duration
		var any bool
		e.locked(func(c *core) { due, any = c.next() })
		if any {
			timer.Reset(time.Until(e.start.Add(due)))
		} else {
			timer.Stop()
		}
	}
}

// locked runs f on the core, brought to the present time, and reports a crash that happened on the way.
func (e *Engine) locked(f func(*core)) {
	e.mu.Lock()
	e.core.advance(time.Since(e.start))
	f(e.core)
	crashed := e.core.crashes > e.crashes
	e.crashes = e.core.crashes
	e.mu.Unlock()
	if crashed {
		e.onCrash()
	}
}

// rouse makes Run look again at what is due next.
func (e *Engine) rouse() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Submit hands in a request of so many prompt tokens for so many output tokens; natural says that the
// answer ends by itself there rather than at a limit of the request.
func (e *Engine) Submit(prompt, tokens int, natural bool) (*Stream, error) {
	var s *sequence
	var err error
	e.locked(func(c *core) { s, err = c.arrive(prompt, tokens, natural) })
	e.rouse()
	if err != nil {
		return nil, err
	}
	return s.out, nil
}

// Cancel takes a request out of the engine, wherever it is; its stream says no more.
func (e *Engine) Cancel(s *Stream) {
	e.locked(func(c *core) { c.cancel(s.seq) })
	e.rouse()
}

// Inject arms a fault. One without At and Request strikes now, or befalls the next requests.
func (e *Engine) Inject(f Fault) error {
	if err := f.Validate(); err != nil {
		return err
	}
	e.locked(func(c *core) { c.arm(f) })
	e.rouse()
	return nil
}

// Faults returns the faults that have not run their course.
func (e *Engine) Faults() []Fault {
	var faults []Fault
	e.locked(func(c *core) {
		for _, f := range c.faults {
			faults = append(faults, f.Fault)
		}
	})
	return faults
}

// ClearFaults disarms every fault and ends a stall. A crash runs its course.
func (e *Engine) ClearFaults() {
	e.locked(func(c *core) { c.faults = nil; c.unstall() })
	e.rouse()
}

// availability is whether the engine answers.
type availability int

const (
	up availability = iota
	loading
	down
)

func (e *Engine) available() availability {
	a := up
	e.locked(func(c *core) {
		switch {
		case c.now < c.downUntil:
			a = down
		case c.now < c.loadingUntil:
			a = loading
		}
	})
	return a
}

// stop ends every request with a reset.
func (e *Engine) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range slices.Concat(e.core.waiting, e.core.active) {
		e.core.end(s, FailReset)
	}
}
