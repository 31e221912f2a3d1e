package record

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firstbreach/loadgen/wire"
)

// Step collects what one step of one round measured. Everything of one request is counted under
// one lock and a scrape copies the step under the same lock, so that a scrape never sees half a
// request, and the totals in the manifest are the counters of the page.
type Step struct {
	id    StepID
	descs *descs
	judge judge

	mu      sync.Mutex
	windows [3]*tally
	window  Window // of the step's clock
	edges   [3]span
	flight  int       // requests in flight
	backing int       // slots that back off
	since   time.Time // until when these two have been integrated
	ended   bool
	ttft    sketch // measured ok requests, for the progress line

	limited  map[Limit]bool
	warnings []string // of the client about itself, each once

}

// span is a window's start and end; zero where it hasn't come yet.
type span struct{ from, to time.Time }

// tally is what was counted in one window.
type tally struct {
	outcomes  map[wire.Outcome]int
	timeouts  map[wire.TimeoutKind]int
	undefined map[string]int
	late      map[string]int
	good      int

	promptTokens, cachedTokens, outputTokens int

	inFlight  time.Duration // integral of requests in flight over time; request-seconds
	backoff   time.Duration // integral of slots that back off; slot-seconds
	occupancy time.Duration // sum over the requests of the window

	ttft, duration, tpot, icl, rejection, dispatch prometheus.Histogram
	queueWait                                      map[string]prometheus.Histogram
}

func newStep(id StepID, d *descs, j judge) *Step {
	s := &Step{id: id, descs: d, judge: j, window: Warmup, limited: map[Limit]bool{}}
	for i, w := range Windows() {
		s.windows[i] = newTally(d, j, w)
	}
	return s
}

// newTally is a tally with every outcome, every timeout kind and every objective at zero.
func newTally(d *descs, j judge, w Window) *tally {
	t := &tally{
		outcomes: map[wire.Outcome]int{}, timeouts: map[wire.TimeoutKind]int{}, undefined: map[string]int{}, late: map[string]int{},
		ttft: d.ttft.histogram(w), duration: d.duration.histogram(w), tpot: d.tpot.histogram(w), icl: d.icl.histogram(w),
		rejection: d.rejection.histogram(w), dispatch: d.dispatch.histogram(w),
		queueWait: map[string]prometheus.Histogram{},
	}
	for _, o := range wire.Outcomes() {
		t.outcomes[o] = 0
	}
	for _, k := range wire.TimeoutKinds() {
		t.timeouts[k] = 0
	}
	for _, name := range j.latencyNames() {
		t.undefined[name], t.late[name] = 0, 0
	}
	return t
}

// ID names the step.
func (s *Step) ID() StepID { return s.id }

// Enter moves the step's clock into a window: Warmup when the step starts, Measure with the first
// measured request, Drain once no further measured request will be sent.
func (s *Step) Enter(w Window, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.integrate(now)
	if w != Warmup {
		s.edges[s.window.index()].to = now
	}
	s.window = w
	s.edges[w.index()].from = now
}

// Sent counts a request that was handed to the client.
func (s *Step) Sent(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.integrate(now)
	s.flight++
}

// Returned counts a request that the client is done with.
func (s *Step) Returned(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.integrate(now)
	s.flight--
}

// BackingOff counts slots of a closed loop that begin (above 0) or end (below) to wait because their
// requests failed fast.
func (s *Step) BackingOff(slots int, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.integrate(now)
	s.backing += slots
}

// End marks the step's values as final.
func (s *Step) End(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.integrate(now)
	if !s.edges[s.window.index()].from.IsZero() {
		s.edges[s.window.index()].to = now
	}
	s.ended = true
}

// integrate adds the time since the last change to the window of the step's clock. A scrape may
// have integrated a little beyond an event's own time; the event then adds nothing, because a
// counter must not go back.
func (s *Step) integrate(now time.Time) {
	if dt := now.Sub(s.since); !s.since.IsZero() && dt > 0 {
		t := s.windows[s.window.index()]
		t.inFlight += dt * time.Duration(s.flight)
		t.backoff += dt * time.Duration(s.backing)
	}
	if now.After(s.since) {
		s.since = now
	}
}

// Observe counts one finished request.
func (s *Step) Observe(q Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, r := s.windows[q.Window.index()], q.Measured()
	t.outcomes[r.Outcome]++
	if r.Outcome == wire.Timeout {
		t.timeouts[r.TimeoutKind]++
	}
	if s.judge.good(r) {
		t.good++
	}
	for _, name := range s.judge.undefined(r) {
		t.undefined[name]++
	}
	for name, n := range s.judge.late(r) {
		t.late[name] += n
	}
	if slices.Contains(r.Warnings, wire.WarnClientLimit) {
		s.limited[LimitSockets] = true
	}
	t.promptTokens += value(r.PromptTokens)
	t.cachedTokens += value(r.CachedPromptTokens)
	t.outputTokens += value(r.OutputTokens)
	t.occupancy += q.Occupancy()
	t.dispatch.Observe(q.DispatchDelay().Seconds())
	s.observeLatency(t, q.Window, r)
}

// observeLatency fills the histograms: those of latency with ok requests only, because a fast
// refusal must not look like a fast answer.
func (s *Step) observeLatency(t *tally, w Window, r wire.Result) {
	if r.QueueWait != nil {
		s.queueWait(t, w, r.QueueWaitSource).Observe(r.QueueWait.Seconds())
	}
	switch r.Outcome {
	case wire.OK:
		observe(t.ttft, r.TTFT)
		observe(t.duration, r.E2E)
		observe(t.tpot, r.TPOT)
		for _, g := range r.Gaps {
			t.icl.Observe(g.Seconds())
		}
		if r.TTFT != nil && w == Measure {
			s.ttft.add(*r.TTFT)
		}
	case wire.Rejected:
		t.rejection.Observe(r.End.Seconds())
	}
}

// queueWait is the histogram of one source, which only the first request with it names.
func (s *Step) queueWait(t *tally, w Window, source string) prometheus.Histogram {
	h, ok := t.queueWait[source]
	if !ok {
		h = s.descs.queueWait.histogram(w, source)
		t.queueWait[source] = h
	}
	return h
}

// Totals are the step's counts by window, as the manifest keeps them.
func (s *Step) Totals() map[string]Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Totals{}
	for i, w := range Windows() {
		t := s.windows[i]
		all[string(w)] = Totals{
			Outcomes: byName(t.outcomes), Timeouts: byName(t.timeouts),
			Good: t.good, OutputTokens: t.outputTokens, PromptTokens: t.promptTokens, LateReads: nonzero(t.late), Backoff: t.backoff.Seconds(),
		}
	}
	return all
}

// Limit marks the step as one in which the client itself was the bottleneck.
func (s *Step) Limit(l Limit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limited[l] = true
}

// Warn notes what the client says about itself that voids nothing, each sentence once.
func (s *Step) Warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

// Client is what the step's manifest entry says of the client: the reasons for which it was the
// bottleneck, and its warnings.
func (s *Step) Client() (limited, warnings []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range Limits() {
		if s.limited[l] {
			limited = append(limited, string(l))
		}
	}
	return limited, slices.Clone(s.warnings)
}

// Glance is what a progress line shows of the measured requests so far.
type Glance struct {
	Finished int           // measured requests, aborted ones left out
	OK       int           // of those
	TTFTP95  time.Duration // within 5 %; 0 where there is none yet
	Elapsed  time.Duration // since the first measured request was sent
	All      int           // finished requests of every window
	InFlight int
}

// Glance looks at the step as it is now.
func (s *Step) Glance(now time.Time) Glance {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := Glance{TTFTP95: s.ttft.quantile(0.95), InFlight: s.flight}
	for i, w := range Windows() {
		for o, n := range s.windows[i].outcomes {
			g.All += n
			if w == Measure && o != wire.Aborted {
				g.Finished += n
			}
		}
	}
	g.OK = s.windows[Measure.index()].outcomes[wire.OK]
	if from := s.edges[Measure.index()].from; !from.IsZero() {
		g.Elapsed = now.Sub(from)
	}
	return g
}

func observe(h prometheus.Histogram, d *time.Duration) {
	if d != nil {
		h.Observe(d.Seconds())
	}
}

func value(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// nonzero leaves out what was not counted; nil when nothing was.
func nonzero(m map[string]int) map[string]int {
	var out map[string]int
	for k, n := range m {
		if n != 0 {
			if out == nil {
				out = map[string]int{}
			}
			out[k] = n
		}
	}
	return out
}

func byName[K ~string](m map[K]int) map[string]int {
	out := make(map[string]int, len(m))
	for k, n := range m {
		out[string(k)] = n
	}
	return out
}

// sortedKeys makes the page's order independent of map order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
