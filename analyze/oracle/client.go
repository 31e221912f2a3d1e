package oracle

import (
	"context"
	"fmt"
	"math"
	"time"

	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// How a run is driven, as plans have it by default, but shorter where a virtual second costs real time.
const (
	minDuration  = 10.0 // seconds that a step measures at least
	cooldown     = 2.0
	stopRatio    = 0.5 // of failed requests, which ends a step
	stopAfter    = 20
	outputTokens = 16
)

// client drives a closed loop in virtual time and counts as loadgen does.
type client struct {
	*clock
	server *server
	begin  time.Time // the time at which the virtual clock is 0
	want   int       // measured requests of a step
	scrape func(step *record.Step, now time.Time) error
	every  float64 // seconds between scrapes
	next   float64 // when the next one is

	service float64 // mean time of a request in the step before
}

func (c *client) time(s float64) time.Time {
	return c.begin.Add(time.Duration(math.Round(s * float64(time.Second))))
}

// loop is one step under way.
type loop struct {
	*client
	step        *record.Step
	clients     int
	window      record.Window
	closed      bool
	flight      int
	finished    int
	sent        int // measured
	outstanding int // measured, in flight
	failed      int // measured
	served      float64
	answered    int
	from, to    float64
	stopped     string
}

// drive runs one step and returns it as the manifest has it.
func (c *client) drive(id record.StepID, run string, objectives []slo.Objective) (record.ManifestStep, error) {
	page := record.NewPage(record.PageOptions{Run: run, Objectives: objectives})
	step, _, err := page.Begin(context.Background(), id)
	if err != nil {
		return record.ManifestStep{}, err
	}
	l := &loop{client: c, step: step, clients: id.Concurrency, window: record.Warmup}
	started := c.now
	step.Enter(record.Warmup, c.time(started))
	for i := range l.clients {
		c.at(started+c.service*float64(i)/float64(l.clients), func() { l.send(i) })
	}
	for !l.closed || l.flight > 0 {
		if err := c.scrapeUntil(step, c.due[0].at); err != nil {
			return record.ManifestStep{}, err
		}
		c.clock.step()
	}
	step.End(c.time(c.now))
	if l.answered > 0 {
		c.service = l.served / float64(l.answered)
	}
	m := record.ManifestStep{
		Phase: id.Phase, Round: id.Round, Step: id.Step, Concurrency: id.Concurrency,
		StartedAt: c.time(started).UTC(), MeasureFrom: c.moment(l.from), MeasureTo: c.moment(l.to), EndedAt: c.moment(c.now),
		Stopped: l.stopped, Totals: step.Totals(),
	}
	rest := c.now + max(cooldown, 2*c.every) // until the final values were scraped twice
	if err := c.scrapeUntil(step, rest); err != nil {
		return record.ManifestStep{}, err
	}
	c.now = rest
	return m, nil
}

// scrapeUntil makes the scrapes that are due before a time.
func (c *client) scrapeUntil(step *record.Step, t float64) error {
	for ; c.next <= t; c.next += c.every {
		if err := c.scrape(step, c.time(c.next)); err != nil {
			return fmt.Errorf("scrape: %w", err)
		}
	}
	return nil
}

func (c *client) moment(s float64) *time.Time {
	t := c.time(s).UTC()
	return &t
}

// send sends the next request of a slot, unless the step sends no more.
func (l *loop) send(slot int) {
	now := l.now
	if l.window == record.Warmup && l.finished >= l.clients && !l.closed {
		l.enter(record.Measure)
		l.from = now
	}
	if l.window == record.Measure && l.sent >= l.want && now-l.from >= minDuration {
		l.endMeasure()
	}
	if l.closed {
		return
	}
	w := l.window
	if w == record.Measure {
		l.sent++
		l.outstanding++
	}
	l.flight++
	l.step.Sent(l.time(now))
	l.server.ask(func(a answer) {
		l.returned(slot, w, now, a)
		l.send(slot)
	})
}

// returned takes note of an answer.
func (l *loop) returned(slot int, w record.Window, sent float64, a answer) {
	l.flight--
	l.finished++
	start, end := l.time(sent), l.time(a.last)
	l.step.Returned(end)
	l.step.Observe(record.Request{Slot: slot, Window: w, Scheduled: start, Started: start, Returned: end, Result: result(start, end, l.time(a.first), a)})
	if w != record.Measure {
		return
	}
	l.outstanding--
	if a.outcome == wire.OK {
		l.served += a.last - sent
		l.answered++
	} else {
		l.failed++
	}
	if done := l.sent - l.outstanding; done >= stopAfter && float64(l.failed) >= stopRatio*float64(done) && !l.closed {
		l.stopped = fmt.Sprintf("error_ratio: %d of %d measured requests failed", l.failed, done)
		if l.window == record.Measure {
			l.endMeasure()
		}
		l.closed = true
	}
	if l.window == record.Drain && l.outstanding == 0 {
		l.closed = true
	}
}

func result(start, end, first time.Time, a answer) wire.Result {
	r := wire.Result{SentAt: start, End: end.Sub(start), Outcome: a.outcome, StampSource: "read"}
	if a.outcome == wire.OK {
		head, whole, n := first.Sub(start), end.Sub(start), outputTokens
		each := (whole - head) / (outputTokens - 1)
		r.TTFT, r.FirstText, r.E2E, r.TPOT, r.OutputTokens, r.Chunks, r.HTTPStatus = &head, &head, &whole, &each, &n, n, 200
	}
	return r
}

func (l *loop) enter(w record.Window) {
	l.window = w
	l.step.Enter(w, l.time(l.now))
}

func (l *loop) endMeasure() {
	l.to = l.now
	l.enter(record.Drain)
	if l.outstanding == 0 {
		l.closed = true
	}
}
