package query

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// reader is one question and what to do with each series of its answer.
type reader struct {
	question
	take func(s *step, m model.Metric, v float64)
	// required names the metric that every scraped step must have; "" where absence means none.
	required string
}

// total asks for the last raw sample of each series of a metric, kept apart by the step labels and
// those given. Series at zero are left out where absence can't mean anything else: the answer then
// grows with what happened, not with the number of outcomes.
func (l *loader) total(metric string, nonzero bool, take func(*step, model.Metric, float64), labels ...string) reader {
	e := promexpr.MaxBy(l.last(metric), stepLabels(labels...)...)
	if nonzero {
		e = promexpr.Above(e, 0)
	}
	return reader{question: question{name: metric, expr: e, at: l.until}, take: take}
}

// readers lists the totals of the steps.
func (l *loader) readers() []reader {
	const window = signal.LabelWindow
	in := func(f func(t *totals, m model.Metric, n int64)) func(*step, model.Metric, float64) {
		return func(s *step, m model.Metric, v float64) { f(s.window(string(m[window])), m, whole(v)) }
	}
	measure := func(f func(s *step, m model.Metric, v float64)) func(*step, model.Metric, float64) {
		return func(s *step, m model.Metric, v float64) {
			if isMeasure(m) {
				f(s, m, v)
			}
		}
	}
	required := func(r reader) reader { r.required = r.name; return r }

	requests := l.total(signal.LoadgenRequests, true, in(func(t *totals, m model.Metric, n int64) {
		t.outcomes[string(m[signal.LabelOutcome])] += n
	}), window, signal.LabelOutcome)
	// The series of ok requests are asked for at zero as well: they show that a window was scraped.
	requests.expr = promexpr.Or(requests.expr,
		promexpr.MaxBy(l.last(signal.LoadgenRequests, promexpr.Eq(signal.LabelOutcome, string(wire.OK))), stepLabels(window, signal.LabelOutcome)...))

	return []reader{
		requests,
		l.total(signal.LoadgenTimeouts, true, in(func(t *totals, m model.Metric, n int64) {
			t.timeouts[string(m[signal.LabelKind])] += n
		}), window, signal.LabelKind),
		required(l.total(signal.LoadgenGoodRequests, false, in(func(t *totals, _ model.Metric, n int64) { t.good += n }), window)),
		required(l.total(signal.LoadgenOutputTokens, false, in(func(t *totals, _ model.Metric, n int64) { t.output += n }), window)),
		l.total(signal.LoadgenPromptTokens, true, in(func(t *totals, _ model.Metric, n int64) { t.prompt += n }), window),
		l.total(signal.LoadgenCachedPromptTokens, true, in(func(t *totals, _ model.Metric, n int64) { t.cached += n }), window),
		l.total(signal.LoadgenUndefined, true, measure(func(s *step, m model.Metric, v float64) {
			s.undefined[string(m[signal.LabelObjective])] += whole(v)
		}), window, signal.LabelObjective),
		l.total(signal.LoadgenLateReads, true, in(func(t *totals, m model.Metric, n int64) {
			t.late[string(m[signal.LabelObjective])] += n
		}), window, signal.LabelObjective),
		required(l.total(signal.LoadgenInFlightSeconds, false, measure(func(s *step, _ model.Metric, v float64) { s.InFlightSeconds += v }), window)),
		required(l.total(signal.LoadgenOccupancySeconds, false, measure(func(s *step, _ model.Metric, v float64) { s.OccupancySeconds += v }), window)),
		l.total(signal.LoadgenClientLimited, true, func(s *step, m model.Metric, _ float64) {
			s.Limited = append(s.Limited, string(m[signal.LabelReason]))
		}, signal.LabelReason),
		{
			question: question{name: "resets of " + signal.LoadgenRequests, at: l.until, expr: promexpr.Above(promexpr.SumBy(promexpr.MaxBy(
				promexpr.Resets(promexpr.Range(l.own(signal.LoadgenRequests), l.span)), stepLabels(window, signal.LabelOutcome)...), oneStepLabels()...), 0)},
			take: func(s *step, _ model.Metric, v float64) { s.Resets = int(v) },
		},
	}
}

// readSteps reads everything that loadgen itself measured.
func (l *loader) readSteps(ctx context.Context) error {
	readers := l.readers()
	metrics, edgeQs := l.edgeQuestions()
	qs := make([]question, 0, len(readers)+len(edgeQs)+3)
	for _, r := range readers {
		qs = append(qs, r.question)
	}
	qs = append(qs, edgeQs...)
	n := len(qs)
	qs = append(qs, l.formsQuestion(),
		question{name: "scrapes", expr: promexpr.Range(l.own(signal.LoadgenInFlight), l.span), at: l.until},
		question{name: signal.LoadgenRunInfo, expr: l.last(signal.LoadgenRunInfo), at: l.until})
	as, err := l.ask(ctx, qs...)
	if err != nil {
		return err
	}
	for i, r := range readers {
		if err := l.takeTotal(r, as[i]); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	l.spread()
	if l.forms, err = takeForms(as[n]); err != nil {
		return err
	}
	if err := l.takeScrapes(as[n+1]); err != nil {
		return err
	}
	if err := l.takeRunInfo(as[n+2]); err != nil {
		return err
	}
	var edges []edge
	for _, o := range l.latencyObjectives() {
		i := slices.Index(metrics, latencyMetric(o.Signal))
		edges = append(edges, findEdge(o, as[len(readers)+i].values))
	}
	if err := l.readCounts(ctx, edges); err != nil {
		return err
	}
	return l.readQuantiles(ctx)
}

// takeTotal hands each series of an answer to its reader, and warns where a step has none of a
// metric that it must have.
func (l *loader) takeTotal(r reader, a answer) error {
	seen := map[*step]bool{}
	err := l.each(a, func(s *step, m model.Metric, v float64) {
		seen[s] = true
		r.take(s, m, v)
	})
	if err != nil || r.required == "" {
		return err
	}
	missing := 0
	for _, s := range l.steps {
		if len(s.windows) > 0 && !seen[s] {
			missing++
		}
	}
	if missing > 0 {
		l.run.Warnings = append(l.run.Warnings, fmt.Sprintf("no samples of %s for %d of %d steps: it reads as 0 there", r.required, missing, len(l.steps)))
	}
	return nil
}

// spread copies the totals of the measure window into the steps.
func (l *loader) spread() {
	for _, s := range l.steps {
		slices.Sort(s.Limited)
		s.Limited = slices.Compact(s.Limited)
		t := s.windows[string(record.Measure)]
		if t == nil || len(t.outcomes) == 0 {
			continue // not scraped: its counts are unknown, not zero
		}
		s.Outcomes, s.Timeouts = map[string]int64{}, map[string]int64{}
		for _, o := range wire.Outcomes() {
			s.Outcomes[string(o)] = 0
		}
		for _, k := range wire.TimeoutKinds() {
			s.Timeouts[string(k)] = 0
		}
		for o, n := range t.outcomes {
			s.Outcomes[o] = n
		}
		for k, n := range t.timeouts {
			s.Timeouts[k] = n
		}
		s.Good, s.OutputTokens, s.PromptTokens, s.CachedPromptTokens = t.good, t.output, t.prompt, t.cached
	}
}

// takeRunInfo fills the conditions where no manifest has them.
func (l *loader) takeRunInfo(a answer) error {
	v, err := a.vector()
	if err != nil {
		return fmt.Errorf("%s: %w", signal.LoadgenRunInfo, err)
	}
	if l.Manifest != nil || len(v) == 0 {
		return nil
	}
	conditions := map[string]string{}
	for _, s := range v {
		for name, value := range s.Metric {
			if name == model.MetricNameLabel || name == signal.LabelRun || name == labelShard || scrapeLabel(string(name)) {
				continue
			}
			if old, ok := conditions[string(name)]; ok && old != string(value) {
				return fmt.Errorf("more than one %s for run %q: its %s is %q and %q, so two load generators used one run ID",
					signal.LoadgenRunInfo, l.RunID, name, old, value)
			}
			conditions[string(name)] = string(value)
		}
	}
	l.run.Conditions = conditions
	return nil
}

// scrapeLabel reports whether a label was put on by whoever scraped, so that it tells copies apart
// and not things.
func scrapeLabel(name string) bool {
	switch name {
	case "instance", "job", signal.LabelRole:
		return true
	}
	return slices.Contains(replicaLabels(), name)
}

// replicaLabels are the labels by which people tell the replicas of one Prometheus apart.
func replicaLabels() []string {
	return []string{"prometheus", "prometheus_replica", "replica", "__replica__", "monitor"}
}

// takeScrapes finds out how often the page was scraped, and how many scrapes each step got.
func (l *loader) takeScrapes(a answer) error {
	m, err := a.matrix()
	if err != nil {
		return fmt.Errorf("scrapes: %w", err)
	}
	type copyKey struct {
		stepKey
		shard string
	}
	best := map[copyKey][]model.SamplePair{}
	for _, series := range m {
		k, err := keyOf(series.Metric)
		if err != nil {
			return err
		}
		c := copyKey{k, string(series.Metric[labelShard])}
		if len(series.Values) > len(best[c]) {
			best[c] = series.Values
		}
	}
	l.run.ScrapeInterval = interval(best)
	scrapes := map[*step][]int{}
	for c, samples := range best {
		s := l.stepOf(c.stepKey)
		l.inFlight = append(l.inFlight, line{c.shard, points(samples)})
		if s.Start == nil || s.End == nil {
			continue
		}
		from, to := window(points(samples), *s.Start, *s.End)
		scrapes[s] = append(scrapes[s], to-from)
	}
	for _, s := range l.steps {
		if s.Start == nil || s.End == nil || l.run.ScrapeInterval == 0 {
			continue
		}
		s.ScrapesExpected = int((*s.End - *s.Start) / l.run.ScrapeInterval)
		if n := scrapes[s]; len(n) > 0 {
			s.Scrapes = slices.Min(n) // of the shards, the one that was scraped least
		}
	}
	return nil
}

// interval is the median time between two scrapes of one series, in seconds; 0 when none was
// scraped twice.
func interval[K comparable](series map[K][]model.SamplePair) float64 {
	var gaps []model.Time
	for _, samples := range series {
		for i := 1; i < len(samples); i++ {
			gaps = append(gaps, samples[i].Timestamp-samples[i-1].Timestamp)
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return time.Duration(int64(gaps[len(gaps)/2]) * int64(time.Millisecond)).Seconds()
}
