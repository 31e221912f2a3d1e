package gpu

import (
	"context"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"
)

// Options configure a sampler. The zero value samples the real NVML once a second.
type Options struct {
	Driver   Driver        // nil: NVML
	Interval time.Duration // between two samples; 1 s when zero
	Logger   *slog.Logger  // nil: none
}

const (
	defaultInterval = time.Second
	// staleAfter is how old a snapshot may be before its values are withheld.
	staleAfter = 10 * time.Second
	// retryAfter is the wait after an Init that failed: loading the library again and again costs.
	retryAfter = 30 * time.Second
	// closeWait bounds Close when a call into the driver hangs.
	closeWait = 2 * time.Second
)

// Sampler samples the GPUs in the background.
type Sampler struct {
	last   atomic.Pointer[Snapshot]
	stop   context.CancelFunc
	done   chan struct{}
	maxAge time.Duration
}

// Start begins to sample. Call Close to end it.
func Start(o Options) *Sampler {
	if o.Driver == nil {
		o.Driver = newNVML("")
	}
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Sampler{stop: stop, done: make(chan struct{}), maxAge: max(staleAfter, 3*o.Interval)}
	s.last.Store(&Snapshot{Reason: ReasonStarting, Taken: time.Now()})
	if o.Driver == nil {
		s.last.Store(&Snapshot{Reason: ReasonNotBuilt})
		stop()
		close(s.done)
		return s
	}
	w := &worker{driver: o.Driver, log: o.Logger, errors: map[Failure]uint64{}, logged: map[string]bool{}, known: map[string]GPU{}}
	go func() {
		defer close(s.done)
		w.run(ctx, o.Interval, func(snap *Snapshot) { s.last.Store(snap) })
	}()
	return s
}

// Snapshot returns the last sample. One that is too old, because the driver hangs, is returned
// without its values.
func (s *Sampler) Snapshot() Snapshot {
	snap := *s.last.Load()
	if snap.Reason != ReasonNotBuilt && snap.Reason != ReasonStopped && time.Since(snap.Taken) > s.maxAge {
		return Snapshot{Reason: ReasonStale, Taken: snap.Taken, Errors: snap.Errors}
	}
	return snap
}

// Close ends the sampling and releases NVML. It returns after two seconds at most, also when a
// call into the driver hangs.
func (s *Sampler) Close() {
	s.stop()
	t := time.NewTimer(closeWait)
	defer t.Stop()
	select {
	case <-s.done:
	case <-t.C:
	}
}

// worker is the only goroutine that calls the driver.
type worker struct {
	driver Driver
	log    *slog.Logger
	errors map[Failure]uint64
	logged map[string]bool // one line for each kind of failure of each GPU
	known  map[string]GPU  // every GPU seen so far, without its values
}

func (w *worker) run(ctx context.Context, interval time.Duration, publish func(*Snapshot)) {
	defer func() { publish(&Snapshot{Reason: ReasonStopped, Taken: time.Now(), Errors: maps.Clone(w.errors)}) }()
	for {
		ret := w.driver.Init()
		if ret == Success {
			ret = w.sample(ctx, interval, publish)
			w.driver.Shutdown()
		} else {
			w.fail("nvmlInit", "", ret)
		}
		if ctx.Err() != nil {
			return
		}
		publish(w.down(ret))
		if ret == LibVersionMismatch {
			// This process is bound to the library that it loaded first: only a restart helps.
			w.log.Error("The NVIDIA driver was replaced while this process held the old library; restart the exporter to read GPUs again")
			w.hold(ctx, interval, ret, publish)
			return
		}
		if !w.wait(ctx, interval, ret, publish) {
			return
		}
	}
}

// sample takes samples until the driver is lost or ctx ends.
func (w *worker) sample(ctx context.Context, interval time.Duration, publish func(*Snapshot)) Return {
	version, _ := w.driver.Version()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		gpus, ret := w.read()
		if ret != Success {
			return ret
		}
		publish(&Snapshot{Up: true, Driver: version, GPUs: gpus, Taken: time.Now(), Errors: maps.Clone(w.errors)})
		select {
		case <-ctx.Done():
			return Success
		case <-tick.C:
		}
	}
}

// wait passes the time to the next Init and keeps the snapshot fresh meanwhile.
func (w *worker) wait(ctx context.Context, interval time.Duration, ret Return, publish func(*Snapshot)) bool {
	short, cancel := context.WithTimeout(ctx, retryAfter)
	defer cancel()
	w.hold(short, interval, ret, publish)
	return ctx.Err() == nil
}

// hold says that NVML is down until ctx ends.
func (w *worker) hold(ctx context.Context, interval time.Duration, ret Return, publish func(*Snapshot)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			publish(w.down(ret))
		}
	}
}

func (w *worker) down(ret Return) *Snapshot {
	reason := ret.String()
	if ret == FunctionNotFound {
		reason = ReasonNoSymbols
	}
	return &Snapshot{Reason: reason, Taken: time.Now(), Errors: maps.Clone(w.errors)}
}

// fail counts a failed call, and logs it the first time. A machine without a driver is no failure.
func (w *worker) fail(function, uuid string, ret Return) {
	if ret.unavailable() && function != "nvmlInit" {
		return
	}
	if ret != LibraryNotFound {
		w.errors[Failure{function, ret}]++
	}
	key := function + uuid + ret.String()
	if w.logged[key] {
		return
	}
	w.logged[key] = true
	if ret == LibraryNotFound {
		w.log.Info("No NVIDIA driver on this machine: GPUs are not read", "reason", ret.String())
		return
	}
	w.log.Warn("A call to the NVIDIA driver failed; further failures of the kind are only counted",
		"function", function, "gpu", uuid, "return", ret.String())
}
