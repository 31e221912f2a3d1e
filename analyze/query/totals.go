package query

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// total asks for the last raw sample of each series of a metric, kept apart by the step labels and
// those given. Series at zero are left out where absence can't mean anything else: the answer then
// grows with what happened, not with the number of outcomes.
func (l *loader) total(metric string, nonzero bool, which []promexpr.Matcher, take func(*step, model.Metric, float64), labels ...string) question {
	e := promexpr.MaxBy(l.last(metric, which...), stepLabels(labels...)...)
	if nonzero {
		e = promexpr.Above(e, 0)
	}
	return question{name: metric, expr: e, at: l.until, take: func(a answer) error { return l.each(a, take) }}
}

// required warns where a step that was scraped has none of a metric that it must have.
func (l *loader) required(q question) question {
	take := q.take
	q.take = func(a answer) error {
		if err := take(a); err != nil {
			return err
		}
		seen := map[*step]bool{}
		if err := l.each(a, func(s *step, _ model.Metric, _ float64) { seen[s] = true }); err != nil {
			return err
		}
		missing := 0
		for _, s := range l.steps {
			if len(s.windows) > 0 && !seen[s] {
				missing++
			}
		}
		if missing > 0 {
			l.run.Warnings = append(l.run.Warnings, fmt.Sprintf("no samples of %s for %d of %d steps: it reads as 0 there", q.name, missing, len(l.steps)))
		}
		return nil
	}
	return q
}

// totalQuestions ask for the totals of the steps. Windows other than that which counts are only read to be
// compared with the manifest.
func (l *loader) totalQuestions() []question {
	const window = signal.LabelWindow
	in := func(f func(t *totals, m model.Metric, n int64)) func(*step, model.Metric, float64) {
		return func(s *step, m model.Metric, v float64) { f(s.window(string(m[window])), m, whole(v)) }
	}
	measure := []promexpr.Matcher{measured()}
	compared := measure
	if l.Manifest != nil {
		compared = nil
	}

	requests := l.total(signal.LoadgenRequests, true, compared, in(func(t *totals, m model.Metric, n int64) {
		t.outcomes[string(m[signal.LabelOutcome])] += n
	}), window, signal.LabelOutcome)
	// The series of ok requests are asked for at zero as well: they show that a window was scraped.
	ok := append([]promexpr.Matcher{promexpr.Eq(signal.LabelOutcome, string(wire.OK))}, compared...)
	requests.expr = promexpr.Or(requests.expr,
		promexpr.MaxBy(l.last(signal.LoadgenRequests, ok...), stepLabels(window, signal.LabelOutcome)...))

	return []question{
		requests,
		l.total(signal.LoadgenTimeouts, true, compared, in(func(t *totals, m model.Metric, n int64) {
			t.timeouts[string(m[signal.LabelKind])] += n
		}), window, signal.LabelKind),
		l.required(l.total(signal.LoadgenGoodRequests, false, compared, in(func(t *totals, _ model.Metric, n int64) { t.good += n }), window)),
		l.required(l.total(signal.LoadgenOutputTokens, false, compared, in(func(t *totals, _ model.Metric, n int64) { t.output += n }), window)),
		l.total(signal.LoadgenPromptTokens, true, compared, in(func(t *totals, _ model.Metric, n int64) { t.prompt += n }), window),
		l.total(signal.LoadgenCachedPromptTokens, true, measure, func(s *step, _ model.Metric, v float64) { s.CachedPromptTokens += whole(v) }),
		l.total(signal.LoadgenUndefined, true, measure, func(s *step, m model.Metric, v float64) {
			s.undefined[string(m[signal.LabelObjective])] += whole(v)
		}, signal.LabelObjective),
		l.total(signal.LoadgenLateReads, true, compared, in(func(t *totals, m model.Metric, n int64) {
			t.late[string(m[signal.LabelObjective])] += n
		}), window, signal.LabelObjective),
		l.required(l.total(signal.LoadgenInFlightSeconds, false, measure, func(s *step, _ model.Metric, v float64) { s.InFlightSeconds += v })),
		l.required(l.total(signal.LoadgenOccupancySeconds, false, measure, func(s *step, _ model.Metric, v float64) { s.OccupancySeconds += v })),
		l.total(signal.LoadgenBackoffSeconds, true, measure, func(s *step, _ model.Metric, v float64) { s.BackoffSeconds += v }),
		l.total(signal.LoadgenClientLimited, true, nil, func(s *step, m model.Metric, _ float64) {
			s.Limited = append(s.Limited, string(m[signal.LabelReason]))
		}, signal.LabelReason),
		{
			name: "resets of " + signal.LoadgenRequests, at: l.until, expr: promexpr.Above(promexpr.SumBy(promexpr.MaxBy(
				promexpr.Resets(promexpr.Range(l.own(signal.LoadgenRequests), l.span)), stepLabels(window, signal.LabelOutcome)...), oneStepLabels()...), 0),
			take: func(a answer) error {
				return l.each(a, func(s *step, _ model.Metric, v float64) { s.Resets = int(v) })
			},
		},
	}
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
		s.Good, s.OutputTokens, s.PromptTokens = t.good, t.output, t.prompt
	}
}

// runInfoQuestion asks for the conditions of the run.
func (l *loader) runInfoQuestion() question {
	return question{name: signal.LoadgenRunInfo, expr: l.last(signal.LoadgenRunInfo), at: l.until, take: l.takeRunInfo}
}

// takeRunInfo fills the conditions where no manifest has them.
func (l *loader) takeRunInfo(a answer) error {
	v, err := a.vector()
	if err != nil {
		return err
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

// scrapesQuestion asks for raw samples of a gauge that is in every scrape of a step.
func (l *loader) scrapesQuestion() question {
	return question{name: "scrapes", expr: promexpr.Range(l.own(signal.LoadgenInFlight), l.span), at: l.until, take: l.takeScrapes}
}

// takeScrapes finds out how often the page was scraped, and how many scrapes each step got.
func (l *loader) takeScrapes(a answer) error {
	m, err := a.matrix()
	if err != nil {
		return err
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
		s.MostInFlight = mostInFlight(points(samples), s.Step)
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

// mostInFlight is the greatest number of requests in flight at a scrape of the measure window.
func mostInFlight(samples []verdict.Point, s verdict.Step) int {
	if s.MeasureFrom == nil || s.MeasureTo == nil {
		return 0
	}
	most := 0.0
	from, to := window(samples, *s.MeasureFrom, *s.MeasureTo)
	for _, p := range samples[from:to] {
		most = max(most, p.V)
	}
	return int(most)
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
