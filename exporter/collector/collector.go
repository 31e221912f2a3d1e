package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// Options say what is collected. The zero value collects everything from the usual places.
type Options struct {
	ProcFS, SysFS string // mount points; "" is the usual one
	NoHost, NoGPU bool
	Timeout       time.Duration // for one collector in a scrape; DefaultTimeout when zero
	GPUInterval   time.Duration // between two samples of the GPUs; 1 s when zero
	Logger        *slog.Logger  // nil: none
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
	if !o.NoHost {
		reader, err := host.New(o.ProcFS, o.SysFS)
		if err != nil {
			return nil, fmt.Errorf("host metrics: %w", err)
		}
		s.add("cpu", newCPU(reader))
		s.add("memory", newMemory(reader))
		s.add("paging", newPaging(reader))
		s.add("disk", newDisk(reader))
		s.add("host", newInfo(reader))
	}
	if !o.NoGPU {
		s.sampler = gpu.Start(gpu.Options{Interval: o.GPUInterval, Logger: s.log})
		s.add("gpu", newGPU(s.sampler.Snapshot))
	}
	return s, nil
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
	ch := make(chan prometheus.Metric)
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
