package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"firstbreach/exporter/gpu"
	"firstbreach/exporter/host"
	"firstbreach/internal/signal"

	"github.com/prometheus/client_golang/prometheus"
)

// DefaultTimeout is how long a scrape waits for one collector when it doesn't say how long it has.
const DefaultTimeout = 5 * time.Second

// Collector reads one part of the machine.
type Collector interface {
	// Update sends what it reads to ch. What was sent before an error is valid. An error that
	// wraps host.ErrUnsupported says that there is nothing to read on this system.
	Update(ch chan<- prometheus.Metric) error
}

// Options say what is collected. The zero value collects everything from the usual places but
// processes.
type Options struct {
	ProcFS, SysFS string // mount points; "" is the usual one
	NoHost, NoGPU bool
	Off           []string      // names of collectors that are left out
	Timeout       time.Duration // for one collector in a scrape; DefaultTimeout when zero
	GPUInterval   time.Duration // between two samples of the GPUs; 1 s when zero
	Logger        *slog.Logger  // nil: none

	// Disks and Processes are regular expressions; see host.Options.
	DiskInclude, DiskExclude, Processes string
	// GPU is how they are sampled; its interval and logger are the ones above.
	GPU gpu.Options

	pageSize int // for tests
}

// Names returns the names of the collectors.
func Names() []string {
	return []string{"cpu", "memory", "paging", "disk", "pressure", "load", "info", "process", "gpu"}
}

// Set is all collectors together. It is a prometheus.Collector, and safe for concurrent scrapes.
type Set struct {
	parts   []*part
	timeout time.Duration
	log     *slog.Logger
	sampler *gpu.Sampler

	success, duration *prometheus.Desc
}

// New prepares the collectors and begins to sample the GPUs. Call Close to end that. A machine
// without a GPU or a driver is no error.
func New(o Options) (*Set, error) {
	s := &Set{timeout: o.Timeout, log: o.Logger,
		success:  newDesc(signal.ScrapeCollectorOK, "Whether the collector could read everything in this scrape.", "collector"),
		duration: newDesc(signal.ScrapeCollectorTime, "How long the collector took in this scrape.", "collector"),
	}
	if s.timeout <= 0 {
		s.timeout = DefaultTimeout
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	reader, err := o.host()
	if err != nil {
		return nil, err
	}
	if !o.NoHost {
		s.addHost(reader, o)
	}
	if !o.NoGPU && !slices.Contains(o.Off, "gpu") {
		o.GPU.Interval, o.GPU.Logger = o.GPUInterval, s.log
		s.sampler = gpu.Start(o.GPU)
		name := func(uint32) string { return "" }
		if reader != nil {
			name = reader.ProcessName
		}
		s.add("gpu", newGPU(s.sampler.Snapshot, name))
	}
	return s, nil
}

// host opens the machine. Without host metrics it only tells the names of processes, and does
// without where it can't.
func (o Options) host() (*host.Reader, error) {
	h := host.Options{ProcFS: o.ProcFS, SysFS: o.SysFS, PageSize: o.pageSize}
	for _, e := range []struct {
		what, text string
		into       **regexp.Regexp
		whole      bool
	}{
		{"disks to include", o.DiskInclude, &h.Include, true},
		{"disks to exclude", o.DiskExclude, &h.Exclude, true},
		{"processes", o.Processes, &h.Processes, false},
	} {
		if e.text == "" {
			continue
		}
		text := e.text
		if e.whole {
			text = "^(?:" + text + ")$"
		}
		compiled, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %q: %w", ErrOptions, e.what, e.text, err)
		}
		*e.into = compiled
	}
	if h.Include != nil && h.Exclude != nil {
		return nil, fmt.Errorf("%w: disks to include and disks to exclude: give one of them", ErrOptions)
	}
	for _, name := range o.Off {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("%w: no collector is called %q; there are %s", ErrOptions, name, strings.Join(Names(), ", "))
		}
	}
	reader, err := host.New(h)
	if err != nil && !o.NoHost {
		return nil, fmt.Errorf("host metrics: %w", err)
	}
	return reader, nil
}

// ErrOptions is wrapped by errors of Options that can't be used.
var ErrOptions = errors.New("options")

func (s *Set) addHost(r *host.Reader, o Options) {
	if r.Contained() {
		s.log.Warn("This is a container that reads its own /proc: processes, and perhaps more, are the container's; mount the machine's /proc and give its place in --path.procfs")
	}
	for _, part := range []struct {
		name      string
		collector Collector
	}{
		{"cpu", newCPU(r)},
		{"memory", newMemory(r)},
		{"paging", newPaging(r)},
		{"disk", newDisk(r)},
		{"pressure", newPressure(r)},
		{"load", newLoad(r)},
		{"info", newInfo(r)},
		{"process", newProcess(r)},
	} {
		if slices.Contains(o.Off, part.name) || part.name == "process" && o.Processes == "" {
			continue
		}
		s.add(part.name, part.collector)
	}
}

// Release lets go of the GPUs for a minute; see gpu.Sampler.
func (s *Set) Release() {
	if s.sampler != nil {
		s.sampler.Release()
	}
}

// GPUState tells whether GPUs are sampled and, if so, whether they can be read and why not.
func (s *Set) GPUState() (sampled, up bool, reason string) {
	if s.sampler == nil {
		return false, false, ""
	}
	snap := s.sampler.Snapshot()
	return true, snap.Up, snap.Reason
}

// Only returns the set reduced to the collectors of these names, less those of the others. No
// names mean all.
func (s *Set) Only(include, exclude []string) (*Set, error) {
	for _, name := range slices.Concat(include, exclude) {
		if !slices.ContainsFunc(s.parts, func(p *part) bool { return p.name == name }) {
			return nil, fmt.Errorf("%w: no collector %q is on", ErrOptions, name)
		}
	}
	only := *s
	only.parts = nil
	for _, p := range s.parts {
		if (len(include) == 0 || slices.Contains(include, p.name)) && !slices.Contains(exclude, p.name) {
			only.parts = append(only.parts, p)
		}
	}
	return &only, nil
}

// Close ends the sampling of the GPUs. The set must not be scraped afterwards.
func (s *Set) Close() {
	if s.sampler != nil {
		s.sampler.Close()
	}
}

func (s *Set) add(name string, c Collector) {
	s.parts = append(s.parts, &part{name: name, collector: c, log: s.log})
}

// Describe implements prometheus.Collector. Which series a machine has is known only in a scrape.
func (s *Set) Describe(ch chan<- *prometheus.Desc) {
	ch <- s.success
	ch <- s.duration
}

// Collect implements prometheus.Collector.
func (s *Set) Collect(ch chan<- prometheus.Metric) { s.collect(ch, s.timeout) }

// Within returns the set with another timeout, for a scrape that says how long it has.
func (s *Set) Within(timeout time.Duration) prometheus.Collector {
	return within{s, min(timeout, s.timeout)}
}

type within struct {
	*Set
	timeout time.Duration
}

func (w within) Collect(ch chan<- prometheus.Metric) { w.collect(ch, w.timeout) }

func (s *Set) collect(ch chan<- prometheus.Metric, timeout time.Duration) {
	var wait sync.WaitGroup
	for _, p := range s.parts {
		wait.Go(func() {
			begin := time.Now()
			metrics, err := p.read(timeout)
			for _, m := range metrics {
				ch <- m
			}
			if errors.Is(err, host.ErrUnsupported) {
				return // neither a success nor a failure
			}
			success := 1.0
			if err != nil {
				success = 0
			}
			ch <- prometheus.MustNewConstMetric(s.success, prometheus.GaugeValue, success, p.name)
			ch <- prometheus.MustNewConstMetric(s.duration, prometheus.GaugeValue, time.Since(begin).Seconds(), p.name)
		})
	}
	wait.Wait()
}

// part is one collector and its read in flight. Scrapes that overlap share one read; when a read
// hangs, later scrapes don't wait for it again and no second one is begun.
type part struct {
	name      string
	collector Collector
	log       *slog.Logger

	mu      sync.Mutex
	current *reading
	failing bool // the last read failed, which was logged
}

// reading is one call of Update. It is complete when done is closed.
type reading struct {
	begun   time.Time
	done    chan struct{}
	metrics []prometheus.Metric
	err     error
}

// read returns what the collector sent. A read that takes longer than timeout is abandoned: it
// goes on writing into a slice of its own, never into the scrape.
func (p *part) read(timeout time.Duration) ([]prometheus.Metric, error) {
	r, began := p.join()
	if wait := timeout - time.Since(r.begun); began || wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-r.done:
			return r.metrics, p.report(r.err)
		case <-t.C:
		}
	}
	return nil, p.report(fmt.Errorf("has not answered since %s", r.begun.UTC().Format(time.RFC3339)))
}

// join returns the read in flight, or begins one.
func (p *part) join() (r *reading, began bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		return p.current, false
	}
	r = &reading{begun: time.Now(), done: make(chan struct{})}
	p.current = r
	go func() {
		r.metrics, r.err = update(p.collector)
		p.mu.Lock()
		p.current = nil
		p.mu.Unlock()
		close(r.done)
	}()
	return r, true
}

// update calls Update and keeps what it sends. A panic is an error of this collector alone.
func update(c Collector) (metrics []prometheus.Metric, err error) {
	ch := make(chan prometheus.Metric, 64) // so that the two don't take turns for each metric
	go func() {
		defer close(ch)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		err = c.Update(ch)
	}()
	for m := range ch {
		metrics = append(metrics, m)
	}
	return metrics, err
}

// report logs the first error of a row of them; the further ones are for those who debug. What a
// system doesn't have is no warning.
func (p *part) report(err error) error {
	p.mu.Lock()
	again := p.failing
	p.failing = err != nil
	p.mu.Unlock()
	level := slog.LevelWarn
	switch {
	case err == nil:
		return nil
	case again:
		level = slog.LevelDebug
	case errors.Is(err, host.ErrUnsupported):
		level = slog.LevelInfo
	}
	p.log.Log(context.Background(), level, "Collector could not read everything", "collector", p.name, "err", err)
	return err
}

// newDesc describes one metric.
func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}
