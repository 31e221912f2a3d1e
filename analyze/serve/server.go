package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"firstbreach/analyze/window"
	"firstbreach/internal/atomicfile"
	"firstbreach/internal/slo"
)

// How soon what failed is tried again: doubled each time.
const (
	retryFirst = time.Minute
	retryLast  = 15 * time.Minute
	lookOften  = 30 * time.Second // how often the schedules are looked at
)

// Options are what a server is made of.
type Options struct {
	Load   func() (*Config, error) // reads the configuration, at the start and at each reload
	Logger *slog.Logger

	// For tests; the real ones when nil.
	Analyze func(context.Context, window.Options) (*window.Result, error)
	Write   func(dir string, r *window.Result) error
	Now     func() time.Time
	Client  *http.Client
}

// Server makes the reports and serves them.
type Server struct {
	Options
	client  *http.Client
	metrics *metrics
	redo    chan struct{} // the configuration changed

	mu      sync.Mutex
	config  *Config
	reports []Report // the newest first

	// Of the loop alone.
	last  map[string]time.Time // due time of each schedule that was dealt with last
	retry map[string]attempt
}

type attempt struct {
	after time.Time
	pause time.Duration
}

// New reads the configuration and the reports of before. It is an error when either can't be used.
func New(o Options) (*Server, error) {
	if o.Analyze == nil {
		o.Analyze = window.Analyze
	}
	if o.Write == nil {
		o.Write = window.WriteFiles
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Client == nil {
		o.Client = &http.Client{}
	}
	c, err := o.Load()
	if err != nil {
		return nil, err
	}
	s := &Server{Options: o, client: o.Client, metrics: newMetrics(), redo: make(chan struct{}, 1), last: map[string]time.Time{}, retry: map[string]attempt{}}
	if err := s.use(c); err != nil {
		return nil, err
	}
	s.metrics.reloadOK.Set(1)
	text, err := os.ReadFile(filepath.Join(c.Reports, stateFile))
	if err == nil {
		err = json.Unmarshal(text, &s.last)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		o.Logger.Warn("when reports were made last can't be read; schedules begin anew", "err", err)
		s.last = map[string]time.Time{}
	}
	return s, nil
}

func (s *Server) use(c *Config) error {
	if err := shelf(c.Reports).check(); err != nil {
		return err
	}
	list, err := shelf(c.Reports).all()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, s.reports = c, list
	s.metrics.show(list)
	return nil
}

// Reload reads the configuration again. With an error the old one stays in force.
func (s *Server) Reload() error {
	c, err := s.Load()
	if err == nil {
		err = s.use(c)
	}
	if err != nil {
		s.metrics.reloadOK.Set(0)
		return err
	}
	s.metrics.reloadOK.Set(1)
	select {
	case s.redo <- struct{}{}:
	default:
	}
	return nil
}

func (s *Server) current() (*Config, []Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config, s.reports
}

// Run makes reports when they are due, one at a time, until the context ends.
func (s *Server) Run(ctx context.Context) {
	tick := time.NewTicker(lookOften)
	defer tick.Stop()
	for {
		s.Look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.redo:
		}
	}
}

// Look makes the reports that are due now.
func (s *Server) Look(ctx context.Context) {
	c, _ := s.current()
	for _, sched := range c.Schedules {
		if ctx.Err() != nil {
			return
		}
		now := s.Now()
		last, known := s.last[sched.Name]
		if !known {
			s.last[sched.Name] = now // the first report is the next one due
			s.save(c)
			continue
		}
		due, missed := sched.due(last, now)
		if due.IsZero() || now.Before(s.retry[sched.Name].after) {
			continue
		}
		if missed > 0 {
			s.metrics.missed.WithLabelValues(sched.Name).Add(float64(missed))
			s.Logger.Warn("reports were missed; only the last is made", "schedule", sched.Name, "missed", missed)
			s.last[sched.Name] = sched.before(due) // counted once
		}
		if err := s.make(ctx, c, sched, due); err != nil {
			if ctx.Err() != nil {
				return
			}
			a := s.retry[sched.Name]
			a.pause = min(retryLast, max(retryFirst, 2*a.pause))
			a.after = now.Add(a.pause)
			s.retry[sched.Name] = a
			s.Logger.Error("not all of a report could be made; it is tried again", "schedule", sched.Name, "due", due, "in", a.pause, "err", err)
			continue
		}
		delete(s.retry, sched.Name)
		s.last[sched.Name] = due
		s.save(c)
	}
}

// due is the last time after last at which a report was due, and how many before it were passed over;
// zero when none is due.
func (s Schedule) due(last, now time.Time) (due time.Time, missed int) {
	wait := s.delay()
	for t := s.times.Next(last); !t.IsZero() && !t.Add(wait).After(now); t = s.times.Next(t) {
		if !due.IsZero() {
			missed++
		}
		due = t
	}
	return due, missed
}

// before is a moment from which a due time is the next one.
func (s Schedule) before(due time.Time) time.Time { return due.Add(-time.Second) }

// delay is the schedule's own part of its jitter.
func (s Schedule) delay() time.Duration {
	if s.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.Name + "\x00" + s.Cron))
	return time.Duration(h.Sum64() % uint64(s.Jitter)).Truncate(time.Second)
}

// make makes what isn't there yet of the reports that were due at a time, and delivers them.
func (s *Server) make(ctx context.Context, c *Config, sched Schedule, due time.Time) error {
	var errs []error
	for _, f := range c.SLO {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = append(errs, s.one(ctx, c, sched, f, due))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list, err := shelf(c.Reports).prune(s.reports, sched, s.Now())
	if err != nil {
		s.metrics.failures.WithLabelValues("write").Inc()
		s.Logger.Warn("an old report can't be removed", "err", err)
	}
	s.reports = list
	return errors.Join(errs...)
}

func (s *Server) one(ctx context.Context, c *Config, sched Schedule, f *slo.File, due time.Time) error {
	r := Report{Service: f.Service, Schedule: sched.Name, To: due.UTC()}
	dir := shelf(c.Reports).dir(r)
	res, err := readResult(dir)
	if err != nil {
		res, err = s.Analyze(ctx, window.Options{SLO: f, URL: c.Prometheus, From: due.Add(-sched.Window), To: due, Now: s.Now()})
		var option *window.OptionError
		switch {
		case errors.As(err, &option):
			s.metrics.failures.WithLabelValues("configuration").Inc()
			s.Logger.Error("no report can be made of this service", "service", f.Service, "err", err)
			return nil // it would fail each time
		case err != nil:
			s.metrics.failures.WithLabelValues("prometheus").Inc()
			return fmt.Errorf("%s: %w", f.Service, err)
		}
		if err := s.Write(dir, res); err != nil {
			s.metrics.failures.WithLabelValues("write").Inc()
			return fmt.Errorf("%s: %w", f.Service, err)
		}
	}
	r = summary(res, sched.Name, due.UTC())
	s.add(r)
	return s.deliver(ctx, c, r, res)
}

func readResult(dir string) (*window.Result, error) {
	text, err := os.ReadFile(filepath.Join(dir, window.JSONFile))
	if err != nil {
		return nil, err
	}
	var res window.Result
	if err := json.Unmarshal(text, &res); err != nil {
		return nil, err
	}
	return &res, nil
}

func (s *Server) add(r Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Report{r}
	for _, o := range s.reports {
		if o.Service != r.Service || o.Name() != r.Name() {
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(a, b Report) int { return b.To.Compare(a.To) })
	s.reports = list
	s.metrics.show(list)
}

// save notes what was dealt with, so that a restart makes what was missed, once.
func (s *Server) save(c *Config) {
	text, err := json.MarshalIndent(s.last, "", "  ")
	if err == nil {
		err = atomicfile.Write(filepath.Join(c.Reports, stateFile), append(text, '\n'))
	}
	if err != nil {
		s.metrics.failures.WithLabelValues("write").Inc()
		s.Logger.Error("what was done can't be noted: after a restart the last report may be made again", "err", err)
	}
}

// latest is the newest report of a service.
func latest(list []Report, service string) (Report, bool) {
	i := slices.IndexFunc(list, func(r Report) bool { return r.Service == service })
	if i < 0 {
		return Report{}, false
	}
	return list[i], true
}

func safe(part string) bool {
	return part != "" && part != "." && part != ".." && !strings.ContainsAny(part, `/\`)
}
