package query

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/loadgen/record"
)

// settle is how long after a step's end its final values may still be scraped: loadgen keeps them
// on the page until every scraper has carried them twice.
const settle = 10 * time.Minute

// margin is added on both sides of a run to what is read of engine and machine.
const margin = time.Minute

// Load reads one run. The log lists every query that was sent, also beside an error.
//
// It fails when Prometheus can't be reached or refuses, when a run without a manifest isn't there,
// or when two load generators wrote under one run ID. With a manifest a run of which Prometheus has
// nothing is no error: every step is there, without a count.
//
// The number of queries depends on the SLO file and on what is scraped, not on the number of steps.
func Load(ctx context.Context, o Options) (*verdict.Run, *Log, error) {
	log := &Log{}
	o, err := o.withDefaults()
	if err != nil {
		return nil, log, err
	}
	api, err := connect(o)
	if err != nil {
		return nil, log, err
	}
	l := &loader{Options: o, prometheus: api, log: log, steps: map[stepKey]*step{}, lastEdge: map[string]float64{}}
	l.run = l.describe()
	for _, part := range []func(context.Context) error{l.readClock, l.readEdges} {
		if err := part(ctx); err != nil {
			return nil, log, err
		}
	}
	if len(l.steps) == 0 { // only possible with a manifest that has no step yet
		l.finish()
		return l.run, log, nil
	}
	for _, part := range []func(context.Context) error{l.readTotals, l.readRest} {
		if err := part(ctx); err != nil {
			return nil, log, err
		}
	}
	l.finish()
	return l.run, log, nil
}

// loader is the state of one Load.
type loader struct {
	Options
	*prometheus
	log *Log
	run *verdict.Run

	now   time.Time     // Prometheus's clock, the next whole second: some cut a query's time to it
	begin time.Time     // of the run
	end   time.Time     // of the run; now when a step hasn't ended
	until time.Time     // evaluation time of the queries for totals
	span  time.Duration // their range: since before the run

	steps map[stepKey]*step

	// What the second half of the queries depends on.
	forms   map[string]form // of the histograms
	edges   []edge          // of the latency objectives
	sources []*source       // of service and resource readings

	lastEdge map[string]float64 // the highest finite bucket edge of each histogram
	beyond   []beyond           // quantiles that lie beyond it

	// What the readings and the pictures are made of.
	inFlight    []line                        // requests in flight, of each step and shard
	samples     map[string]map[string][]track // by source and metric
	expressions []series
	ttft        series
}

// describe fills what the SLO file and the manifest say.
func (l *loader) describe() *verdict.Run {
	run := &verdict.Run{ID: l.RunID, Service: l.SLO.Service, Objectives: objectives(l.SLO)}
	if m := l.Manifest; m != nil {
		run.Manifest, run.State, run.Reason = true, string(m.State), m.Reason
		for _, c := range m.Classes {
			run.Classes = append(run.Classes, verdict.Class{Name: c.Name, Objectives: c.Objectives})
		}
		run.Ladder, run.Rates, run.Rounds, run.Conditions = slices.Clone(m.Ladder), slices.Clone(m.Rates), m.Rounds, m.Conditions
		run.ConditionsChanged = slices.Clone(m.Changed)
		run.Search = searchOf(m.Search)
	}
	return run
}

// searchOf is the search by which the levels were chosen; nil: they were planned.
func searchOf(s *record.Search) *verdict.Search {
	if s == nil {
		return nil
	}
	out := verdict.Search(*s)
	return &out
}

// readClock compares Prometheus's clock with ours. The time of the answer counts, not its value: in
// VictoriaMetrics time() is behind by -search.latencyOffset, 30 s unless set, however right its clock.
func (l *loader) readClock(ctx context.Context) error {
	before := l.Now()
	return l.ask(ctx, question{name: "clock of Prometheus", expr: promexpr.Time(), take: func(a answer) error {
		after := l.Now()
		theirs, err := a.askedAt()
		if err != nil {
			return err
		}
		skew := clockSkew(theirs, unix(before.Add(after.Sub(before)/2)))
		l.run.ClockSkew = &skew
		l.now = time.Unix(int64(theirs)+1, 0)
		return nil
	}})
}

// clockSkew is theirs less ours. VictoriaMetrics cuts the time to the second: then all of that second
// may be meant, and what is nearest to our clock counts.
func clockSkew(theirs, ours float64) float64 {
	if theirs == math.Trunc(theirs) && ours > theirs {
		return min(theirs+1-ours, 0)
	}
	return theirs - ours
}

// readEdges finds the steps and when they began and ended, and from that the time of the run.
func (l *loader) readEdges(ctx context.Context) error {
	back := l.Lookback
	if l.Manifest != nil && !l.Manifest.StartedAt.IsZero() {
		back = max(l.now.Sub(l.Manifest.StartedAt), 0) + settle
	}
	edge := func(metric string, of func(promexpr.Expr, ...string) promexpr.Expr) promexpr.Expr {
		return of(promexpr.LastOverTime(promexpr.Range(l.own(metric), back)), stepLabels(signal.LabelWindow)...)
	}
	starts := edge(signal.LoadgenStepStart, promexpr.MinBy)
	ends := edge(signal.LoadgenStepEnd, promexpr.MaxBy)
	from, to := windowTimes{}, windowTimes{}
	err := l.ask(ctx,
		question{name: "step starts", expr: starts, at: l.now, take: func(a answer) error { return l.takeTimes(a, from, math.Min) }},
		question{name: "step ends", expr: ends, at: l.now, take: func(a answer) error { return l.takeTimes(a, to, math.Max) }},
		question{name: "load generators with the same run ID", expr: promexpr.Differs(starts, edge(signal.LoadgenStepStart, promexpr.MaxBy)), at: l.now, take: l.oneGenerator},
	)
	if err != nil {
		return err
	}
	for _, s := range l.steps {
		s.setEdges(from[s], to[s])
	}
	if len(l.steps) == 0 {
		if err := l.notFound(ctx, back); err != nil {
			return err
		}
	}
	l.addManifestSteps()
	l.setTimes()
	return nil
}

// readTotals reads the totals of the steps, and what else the remaining queries depend on.
func (l *loader) readTotals(ctx context.Context) error {
	l.sources = l.newSources()
	qs := slices.Concat(l.totalQuestions(), l.edgeQuestions(), l.presenceQuestions())
	qs = append(qs, l.formsQuestion(), l.scrapesQuestion(), l.runInfoQuestion())
	if err := l.ask(ctx, qs...); err != nil {
		return err
	}
	l.spread()
	return nil
}

// readRest reads the values of the histograms, engine, machine and GPU, expressions, and what is
// only drawn.
func (l *loader) readRest(ctx context.Context) error {
	qs := slices.Concat([]question{l.refusalQuestion()}, l.histogramQuestions(), l.quantileQuestions(), l.sampleQuestions(), l.expressionQuestions(), l.ttftQuestions(), l.progressQuestions())
	if err := l.ask(ctx, qs...); err != nil {
		return err
	}
	l.fillCounts()
	l.fillProgress()
	signals := l.signalSeries()
	l.cutAll(signals)
	l.findRestarts()
	l.drawTimeline(signals)
	l.keepSignals(signals)
	return nil
}

// own selects the run's series of one of loadgen's metrics.
func (l *loader) own(metric string, more ...promexpr.Matcher) *parser.VectorSelector {
	return promexpr.Select(metric, append([]promexpr.Matcher{promexpr.Eq(signal.LabelRun, l.RunID)}, more...)...)
}

// last is the newest raw sample of each of the run's series of a metric.
func (l *loader) last(metric string, more ...promexpr.Matcher) promexpr.Expr {
	return promexpr.LastOverTime(promexpr.Range(l.own(metric, more...), l.span))
}

// setTimes derives the evaluation times from the edges and the manifest.
func (l *loader) setTimes() {
	l.end = l.now
	var first, last float64
	ended := true
	for _, s := range l.steps {
		if s.Start != nil && (first == 0 || *s.Start < first) {
			first = *s.Start
		}
		if s.End != nil {
			last = max(last, *s.End)
		}
		ended = ended && s.End != nil
	}
	if first > 0 {
		l.begin = fromUnix(first)
	}
	if m := l.Manifest; m != nil {
		if !m.StartedAt.IsZero() && (l.begin.IsZero() || m.StartedAt.Before(l.begin)) {
			l.begin = m.StartedAt
		}
		if m.EndedAt != nil {
			last, ended = max(last, unix(*m.EndedAt)), true
		}
	}
	if l.begin.IsZero() {
		l.begin = l.now
	}
	if ended && last > 0 {
		l.end = fromUnix(last)
	}
	l.until = earlier(ceilSecond(l.end.Add(settle)), l.now)
	l.span = max(ceilSecond(l.until).Sub(l.begin), 0).Truncate(time.Second) + settle
}

// finish orders everything, so that the same run always reads the same.
func (l *loader) finish() {
	l.compareManifest()
	for _, s := range l.ordered() {
		l.run.Steps = append(l.run.Steps, s.Step)
	}
	for _, q := range l.log.Queries {
		l.run.Warnings = append(l.run.Warnings, q.Warnings...)
		l.run.Warnings = append(l.run.Warnings, q.Infos...)
	}
	for _, b := range l.beyond {
		l.run.Warnings = append(l.run.Warnings, b.warning())
	}
	slices.Sort(l.run.Warnings)
	l.run.Warnings = slices.Compact(l.run.Warnings)
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func fromUnix(s float64) time.Time {
	whole, fraction := math.Modf(s)
	return time.Unix(int64(whole), int64(math.Round(fraction*1e6))*1000)
}

func ceilSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		return whole.Add(time.Second)
	}
	return t
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
