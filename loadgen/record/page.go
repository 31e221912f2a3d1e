package record

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"firstbreach/internal/slo"
)

const (
	// maxLive bounds the label sets on the page: two steps.
	maxLive = 2
	// carries is how often every scraper has to have carried a step's final values.
	carries = 2
	// maxScrapers bounds what is remembered of those who ask. More of them than this is no
	// monitoring setup; the rest are served and not waited for.
	maxScrapers = 32
	// scrapeHeader is sent by Prometheus and what behaves like it. A person with curl doesn't
	// send it, and is not waited for.
	scrapeHeader = "X-Prometheus-Scrape-Timeout-Seconds"
)

// scraper is one who scrapes, told apart by where it comes from and what it calls itself.
type scraper struct{ host, agent string }

// PageOptions make a Page.
type PageOptions struct {
	Run        string
	Objectives []slo.Objective
	ScrapeWait time.Duration // how long a third step waits for the older two
	Logger     *slog.Logger
}

// Page is the metrics page of one run. It holds the label sets of at most two steps at a time: a
// step stays until every scraper seen in this run has carried its final values twice.
type Page struct {
	opts PageOptions
	base *prometheus.Registry

	mu       sync.Mutex
	live     []liveStep // oldest first
	scrapers map[scraper]bool
	gaveUp   bool          // a wait ended and there was nobody to wait for
	warned   bool          // that nobody scrapes
	changed  chan struct{} // closed and replaced when a step leaves or a scraper comes
}

// liveStep is one step, or the classes of one step, which come and go together.
type liveStep struct {
	parts    []*Step
	registry *prometheus.Registry
	carried  map[scraper]int // scrapes that had the final values
}

// Class is one kind of request of a step, with the objectives that it is held to.
type Class struct {
	Name       string
	Objectives []slo.Objective
}

// NewPage makes an empty page.
func NewPage(opts PageOptions) *Page {
	return &Page{
		opts: opts, base: prometheus.NewRegistry(),
		scrapers: map[scraper]bool{}, changed: make(chan struct{}),
	}
}

// Register adds series that don't belong to a step, such as those of the process.
func (p *Page) Register(cs ...prometheus.Collector) error {
	for _, c := range cs {
		if err := p.base.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// Begin puts a new step on the page, with all its series at 0. With two steps there already it
// waits until one has left; after ScrapeWait it drops the older and returns its ID, and forgets
// the scrapers that didn't come for it. It ends early with ctx's error.
func (p *Page) Begin(ctx context.Context, id StepID) (s *Step, dropped []StepID, err error) {
	parts, dropped, err := p.BeginClasses(ctx, id, []Class{{Objectives: p.opts.Objectives}})
	if err != nil {
		return nil, dropped, err
	}
	return parts[0], dropped, nil
}

// BeginClasses is Begin for a step of several classes of requests: each has series of its own, and they
// leave the page together. The steps come in the order of the classes.
func (p *Page) BeginClasses(ctx context.Context, id StepID, classes []Class) (parts []*Step, dropped []StepID, err error) {
	if err := p.wait(ctx, maxLive-1, p.opts.ScrapeWait); err != nil {
		return nil, nil, err
	}
	live := liveStep{registry: prometheus.NewRegistry(), carried: map[scraper]int{}}
	for _, c := range classes {
		of := id
		of.Class = c.Name
		// The edges of the histograms are those of every class: one that only some series of a metric had
		// couldn't be told from one that is missing.
		step := newStep(of, newDescs(p.opts.Run, of, p.opts.Objectives), newJudge(p.opts.Objectives, c.Objectives))
		if err := live.registry.Register(step); err != nil {
			return nil, nil, fmt.Errorf("metrics of %+v: %w", of, err)
		}
		live.parts = append(live.parts, step)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.live) >= maxLive {
		dropped = append(dropped, p.dropOldest()...)
	}
	p.live = append(p.live, live)
	return live.parts, dropped, nil
}

// Settle waits until every step has left the page, that is until its final values have been
// scraped twice by everybody, at most for the time given. It returns those that are still there.
func (p *Page) Settle(ctx context.Context, limit time.Duration) []StepID {
	_ = p.wait(ctx, 0, limit) // whoever interrupts it wants the list as it is
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []StepID
	for _, l := range p.live {
		left = append(left, l.ids()...)
	}
	return left
}

// Live is how many steps are on the page.
func (p *Page) Live() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.live)
}

// Scrapers is how many scrapers are known at the moment.
func (p *Page) Scrapers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.scrapers)
}

// wait returns once at most n steps are on the page or the time is up, and with an error only when
// ctx ends. When nobody has scraped by the end of a wait, there is no later one until somebody does.
func (p *Page) wait(ctx context.Context, n int, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		p.mu.Lock()
		done := len(p.live) <= n || p.gaveUp && len(p.scrapers) == 0
		changed := p.changed
		p.mu.Unlock()
		if done {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-timer.C:
			p.mu.Lock()
			p.gaveUp = p.gaveUp || len(p.scrapers) == 0
			p.mu.Unlock()
			return nil
		}
	}
}

// dropOldest takes the older step off the page before everybody had it, and forgets who didn't
// come: it may never come back. The page's lock is held.
func (p *Page) dropOldest() []StepID {
	oldest := p.live[0]
	p.live = p.live[1:]
	known := len(p.scrapers)
	for who := range p.scrapers {
		if oldest.carried[who] < carries {
			delete(p.scrapers, who)
		}
	}
	p.warn(oldest.parts[0].id, known)
	p.gaveUp = p.gaveUp || len(p.scrapers) == 0
	p.retire()
	return oldest.ids()
}

// warn says that a step was lost, and how to keep the next one. That nobody scrapes is said once.
func (p *Page) warn(id StepID, known int) {
	missing := known - len(p.scrapers)
	switch {
	case missing > 0:
		p.opts.Logger.Warn("a step left the metrics page before everybody who scrapes had its final values twice, and will count as invalid: scrape more often, or raise --scrape.wait",
			"step", id, "scrapers", known, "missing", missing)
	case !p.warned:
		p.warned = true
		p.opts.Logger.Warn("nobody scrapes the metrics page, so no step will count: add it to the scrape configuration of Prometheus", "step", id)
	}
}

// retire takes off the page every step whose final values everybody has. The page's lock is held.
func (p *Page) retire() {
	before := len(p.live)
	p.live = slices.DeleteFunc(p.live, func(l liveStep) bool {
		if len(p.scrapers) == 0 || !l.final() {
			return false
		}
		for who := range p.scrapers {
			if l.carried[who] < carries {
				return false
			}
		}
		return true
	})
	if len(p.live) != before {
		p.wake()
	}
}

func (p *Page) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// final reports whether every part has its final values.
func (l liveStep) final() bool {
	for _, s := range l.parts {
		s.mu.Lock()
		ended := s.ended
		s.mu.Unlock()
		if !ended {
			return false
		}
	}
	return true
}

func (l liveStep) ids() []StepID {
	var ids []StepID
	for _, s := range l.parts {
		ids = append(ids, s.id)
	}
	return ids
}

// ServeHTTP serves the page in whatever format is asked for, and takes note of who has carried
// which final values.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	gatherers := prometheus.Gatherers{p.base}
	var finals []liveStep
	for _, l := range p.live {
		gatherers = append(gatherers, l.registry)
		if l.final() {
			finals = append(finals, l)
		}
	}
	p.mu.Unlock()

	watched := &watchedWriter{ResponseWriter: w}
	promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{
		EnableOpenMetrics: true,
		ErrorLog:          slog.NewLogLogger(p.opts.Logger.Handler(), slog.LevelError),
	}).ServeHTTP(watched, r)
	if watched.failed || r.Context().Err() != nil || r.Header.Get(scrapeHeader) == "" {
		return
	}
	p.carriedBy(whoIs(r), finals)
}

// carriedBy notes that a scraper got the whole page, with the final values of these steps on it.
func (p *Page) carriedBy(who scraper, finals []liveStep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.scrapers[who] {
		if len(p.scrapers) >= maxScrapers {
			return
		}
		p.scrapers[who] = true
		p.wake()
	}
	for _, s := range finals {
		s.carried[who]++
	}
	p.retire()
}

func whoIs(r *http.Request) scraper {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return scraper{host, r.UserAgent()}
}

// watchedWriter remembers whether the page could be written whole.
type watchedWriter struct {
	http.ResponseWriter
	failed bool
}

func (w *watchedWriter) WriteHeader(status int) {
	w.failed = w.failed || status != http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.failed = w.failed || err != nil
	return n, err
}
