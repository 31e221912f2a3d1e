package gpu

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

// Options configure a sampler. The zero value samples the real NVML once a second.
type Options struct {
	Driver   Driver        // nil: NVML
	Library  string        // path of libnvidia-ml.so.1; "": where the linker finds it
	Interval time.Duration // between two samples; 1 s when zero
	Timeout  time.Duration // after which a GPU that doesn't answer is given up; 5 s when zero
	Logger   *slog.Logger  // nil: none

	PCIeThroughput bool     // also measure it, which takes 40 ms for each GPU
	Processes      bool     // also read the memory of each process
	Skip           []string // functions of NVML that are never called for a reading
	// Suspended reports whether a GPU sleeps now, and NVML should not be begun. nil: never.
	Suspended func() bool
}

const (
	defaultInterval = time.Second
	defaultTimeout  = 5 * time.Second
	// staleAfter is how old a snapshot may be before its values are withheld, unless interval and
	// time-out ask for more.
	staleAfter = 10 * time.Second
	// retryAfter is the wait after an Init that failed: loading the library again and again costs.
	retryAfter = 30 * time.Second
	// closeWait bounds Close when a call into the driver hangs.
	closeWait = time.Second
	// releaseTime is how long NVML stays released on demand.
	releaseTime = time.Minute
	// maxHung bounds the calls that are left behind, one for each GPU of the largest servers. With so
	// many, nothing more is begun. After the first of a cycle the others get so small a part of the
	// time-out that all of them together take less than another: the snapshot doesn't become stale.
	maxHung = 16
	// maxGPUs bounds the GPUs that are remembered, and with them the page.
	maxGPUs = 128
)

// Functions returns the functions of NVML that Options.Skip can name.
func Functions() []string {
	var names []string
	for _, r := range readers(Options{PCIeThroughput: true, Processes: true}) {
		names = append(names, r.function)
	}
	return names
}

func (o Options) skips(function string) bool { return slices.Contains(o.Skip, function) }

// Sampler samples the GPUs in the background.
type Sampler struct {
	last    atomic.Pointer[Snapshot]
	stop    context.CancelFunc
	done    chan struct{}
	release chan struct{}
	maxAge  time.Duration
}

// Start begins to sample. Call Close to end it.
func Start(o Options) *Sampler {
	if o.Driver == nil {
		o.Driver = newNVML(o.Library)
	}
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Sampler{stop: stop, done: make(chan struct{}), release: make(chan struct{}, 1)}
	s.maxAge = max(staleAfter, 3*o.Interval, 2*(o.Timeout+o.Interval))
	s.last.Store(&Snapshot{Reason: ReasonStarting, Taken: time.Now()})
	if o.Driver == nil {
		s.last.Store(&Snapshot{Reason: ReasonNotBuilt})
		stop()
		close(s.done)
		return s
	}
	w := newWorker(o, s.release, func(snap *Snapshot) { s.last.Store(snap) })
	go func() {
		defer close(s.done)
		w.run(ctx)
	}()
	return s
}

// Snapshot returns the last sample. One that is too old, because the driver hangs, is returned
// without its values.
func (s *Sampler) Snapshot() Snapshot {
	snap := *s.last.Load()
	if snap.Reason == ReasonNotBuilt || snap.Reason == ReasonStopped || time.Since(snap.Taken) <= s.maxAge {
		return snap
	}
	return Snapshot{Reason: ReasonStale, Driver: snap.Driver, GPUs: without(snap.GPUs, ReasonStale), Taken: snap.Taken, Calls: snap.Calls}
}

// without returns the GPUs as down, without values.
func without(gpus []GPU, reason string) []GPU {
	var down []GPU
	for _, g := range gpus {
		g.Up, g.Readings, g.MIG, g.Processes = false, nil, nil, nil
		if g.Reason == "" {
			g.Reason = reason
		}
		down = append(down, g)
	}
	return down
}

// Release lets go of NVML for a minute, so that a GPU can be reset, unbound or cut up anew.
func (s *Sampler) Release() {
	select {
	case s.release <- struct{}{}:
	default: // asked for already
	}
}

// Close ends the sampling and releases NVML. It returns after a second at most, also when a call
// into the driver hangs.
func (s *Sampler) Close() {
	s.stop()
	t := time.NewTimer(closeWait)
	defer t.Stop()
	select {
	case <-s.done:
	case <-t.C:
	}
}
