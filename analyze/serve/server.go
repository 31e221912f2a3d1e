package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"firstbreach/analyze/query"
	"firstbreach/analyze/window"
	"firstbreach/internal/slo"
)

// How soon what failed is tried again: doubled each time.
const (
	retryFirst = time.Minute
	retryLast  = 15 * time.Minute
	lookOften  = 30 * time.Second // how often the schedules are looked at
)

// Bounds of what is asked of Prometheus, so that one that never answers can't hold up everything.
const (
	reportLasts = 2 * time.Minute  // the queries of one report
	pingLasts   = 10 * time.Second // whether it answers at all
)

// Options are what a server is made of.
type Options struct {
	Load   func() (*Config, error) // reads the configuration, at the start and at each reload
	Logger *slog.Logger

	// For tests; the real ones when nil or 0.
	Analyze     func(context.Context, window.Options) (*window.Result, error)
	Ping        func(context.Context, *Config) error // an error when Prometheus doesn't answer
	Write       func(dir string, r *window.Result) error
	Note        func(path string, text []byte) error // writes a file of the server's own
	Now         func() time.Time
	Client      *http.Client
	ReportLasts time.Duration
}

// Server makes the reports and serves them.
type Server struct {
	Options
	metrics *metrics
	redo    chan struct{} // the configuration changed

	mu      sync.Mutex
	config  *Config
	reports []Report // the newest first
	done    progress

	// Of the loop alone.
	retry map[string]attempt
	sent  map[string]map[string]bool // by report, the deliveries that delivered.json couldn't be given
}

type attempt struct {
	after time.Time
	pause time.Duration
}

// New reads the configuration and the reports of before. It is an error when either can't be used.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	c, err := o.Load()
	if err != nil {
		return nil, err
	}
	s := &Server{Options: o, redo: make(chan struct{}, 1), retry: map[string]attempt{}, sent: map[string]map[string]bool{}}
	s.metrics = newMetrics(s.state)
	if s.done, err = readProgress(c.Reports); err != nil {
		o.Logger.Warn("when reports were made last can't be read; schedules begin anew", "err", err)
	}
	if err := s.use(c); err != nil {
		return nil, err
	}
	s.metrics.reloadOK.Set(1)
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Analyze == nil {
		o.Analyze = window.Analyze
	}
	if o.Ping == nil {
		o.Ping = func(ctx context.Context, c *Config) error { return query.Ping(ctx, c.Prometheus) }
	}
	if o.Write == nil {
		o.Write = window.WriteFiles
	}
	if o.Note == nil {
		o.Note = note
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Client == nil {
		o.Client = &http.Client{}
	}
	if o.ReportLasts == 0 {
		o.ReportLasts = reportLasts
	}
	return o
}

func (s *Server) use(c *Config) error {
	if err := os.MkdirAll(c.Reports, 0o755); err != nil {
		return err
	}
	list, err := shelf(c.Reports).all()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var old []Schedule
	if s.config != nil {
		old = s.config.Schedules
	}
	s.metrics.schedules(old, c.Schedules)
	s.config, s.reports = c, list
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

// state is what the metrics show.
func (s *Server) state() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := state{config: s.config, reports: s.reports, due: map[string]time.Time{}, now: s.Now()}
	for _, sched := range s.config.Schedules {
		if due := s.done.lastDue(sched, st.now); !due.IsZero() {
			st.due[sched.Name] = due
		}
	}
	return st
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
	l := &look{Server: s, config: c}
	for _, sched := range c.Schedules {
		if ctx.Err() != nil {
			return
		}
		now := s.Now()
		last, known := s.last(c, sched, now)
		if !known {
			continue // the first report is the next one due
		}
		a := s.retry[sched.Name]
		due, missed := sched.due(last, now)
		if due.IsZero() || now.Before(a.after) && a.after.Sub(now) <= a.pause { // a longer wait comes of a clock set back
			continue
		}
		if missed > 0 {
			s.metrics.missed.WithLabelValues(sched.Name).Add(float64(missed))
			s.Logger.Warn("reports were missed; only the last is made", "schedule", sched.Name, "missed", missed)
			s.reach(c, sched, sched.before(due)) // counted once
		}
		if err := l.make(ctx, sched, due); err != nil {
			if ctx.Err() != nil {
				return
			}
			a.pause = min(retryLast, max(retryFirst, 2*a.pause))
			a.after = now.Add(a.pause)
			s.retry[sched.Name] = a
			s.Logger.Error("not all of a report could be made; it is tried again", "schedule", sched.Name, "due", due, "in", a.pause, "err", err)
			continue
		}
		delete(s.retry, sched.Name)
		s.reach(c, sched, due)
	}
}

// look is one look at the schedules.
type look struct {
	*Server
	config *Config
	down   bool // Prometheus doesn't answer: no more is asked of it this time
}

// make makes what isn't there yet of the reports that were due at a time, and delivers them.
func (l *look) make(ctx context.Context, sched Schedule, due time.Time) error {
	var errs []error
	for _, f := range l.config.SLO {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = append(errs, l.one(ctx, sched, f, due))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	list, err := shelf(l.config.Reports).prune(l.reports, l.config, l.Now())
	if err != nil {
		l.metrics.failures.WithLabelValues("write").Inc()
		l.Logger.Warn("an old report can't be removed", "err", err)
	}
	l.reports = list
	return errors.Join(errs...)
}

func (l *look) one(ctx context.Context, sched Schedule, f *slo.File, due time.Time) error {
	r := Report{Service: f.Service, Schedule: sched.Name, To: due.UTC()}
	dir := shelf(l.config.Reports).dir(r)
	res, err := readResult(dir)
	if err != nil {
		if l.down {
			return fmt.Errorf("%s: waits for Prometheus", f.Service)
		}
		res, err = l.analyze(ctx, window.Options{SLO: f, Client: l.config.Prometheus, From: due.Add(-sched.Window), To: due, Now: l.Now()})
		var option *window.OptionError
		switch {
		case errors.As(err, &option):
			l.metrics.failures.WithLabelValues("configuration").Inc()
			l.Logger.Error("no report can be made of this service", "service", f.Service, "err", err)
			return nil // it would fail each time
		case err != nil:
			l.metrics.failures.WithLabelValues("prometheus").Inc()
			l.down = !l.answers(ctx)
			return fmt.Errorf("%s: %w", f.Service, err)
		}
		if err := l.Write(dir, res); err != nil {
			l.metrics.failures.WithLabelValues("write").Inc()
			return fmt.Errorf("%s: %w", f.Service, err)
		}
	}
	r = summary(res, sched.Name, due.UTC())
	l.add(r)
	return l.deliver(ctx, l.config, r, res)
}

func (l *look) analyze(ctx context.Context, o window.Options) (*window.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, l.ReportLasts)
	defer cancel()
	res, err := l.Analyze(ctx, o)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("Prometheus didn't answer all queries within %v: %w", l.ReportLasts, err) //nolint:staticcheck // a name
	}
	return res, err
}

// answers reports whether Prometheus still does: after one report that failed it decides whether the others
// are worth a try.
func (l *look) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pingLasts)
	defer cancel()
	return l.Ping(ctx, l.config) == nil
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
	s.reports = shelf(s.config.Reports).read(list)
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
