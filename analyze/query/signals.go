package query

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
)

// maxPoints bounds a range query and a subquery. Prometheus refuses more than 11,000 points.
const maxPoints = 10_000

// staleAfter is how many scrapes long a sample counts where the next doesn't come. By default Prometheus
// carries it on for five minutes: an engine that is gone without a staleness marker would still read as idle.
const staleAfter = 3

// labelCPU is the label that is added up in Prometheus rather than here: a machine has hundreds of
// series of it.
const labelCPU = "cpu"

// sampleQuestions ask for the samples of everything that is there: once for each source, and once
// for each metric that is added up over CPUs.
func (l *loader) sampleQuestions() []question {
	l.samples = map[string]map[string][]track{}
	var qs []question
	for _, s := range l.sources {
		l.samples[s.name] = map[string][]track{}
		raw, summed := s.wanted()
		if len(raw) > 0 {
			qs = append(qs, question{
				name: "samples of the " + s.name, at: l.nearEnd(),
				expr: promexpr.Range(promexpr.SelectNames(raw, s.matchers()...), l.nearSpan()),
				take: func(a answer) error { return l.takeSamples(a, s.name, "") },
			})
		}
		for _, name := range summed {
			qs = append(qs, question{
				name: name + " over all CPUs", at: l.nearEnd(), lenient: true,
				expr: promexpr.Subquery(promexpr.SumWithout(promexpr.Select(name, s.matchers()...), labelCPU), l.nearSpan(), l.resolution(l.nearSpan())),
				take: func(a answer) error { return l.takeSamples(a, s.name, name) },
			})
		}
	}
	return qs
}

// wanted lists the metrics of a source that are there and read: as they are, or added up over CPUs.
func (s *source) wanted() (raw, summed []string) {
	if s.reason != "" {
		return nil, nil
	}
	for _, sig := range s.entry.Signals() {
		m, missing := s.choose(sig.Name)
		if missing != "" {
			continue
		}
		for _, t := range termsOf(m) {
			switch {
			case s.names[t.Name] == 0:
			case slices.Contains(m.Labels, labelCPU):
				summed = append(summed, t.Name)
			default:
				raw = append(raw, t.Name)
			}
		}
	}
	if s.name == signal.SourceEngine {
		raw = append(raw, signal.ProcessStart)
	}
	slices.Sort(raw)
	slices.Sort(summed)
	return slices.Compact(raw), slices.Compact(summed)
}

// takeSamples keeps the samples of a source; metric is their name where Prometheus dropped it.
func (l *loader) takeSamples(a answer, source, metric string) error {
	if a.err != nil {
		return nil // the log has it, and the readings will say that there is nothing
	}
	m, err := a.matrix()
	if err != nil {
		return err
	}
	if metric != "" {
		for _, s := range m {
			s.Metric[model.MetricNameLabel] = model.LabelValue(metric)
		}
	}
	maps.Copy(l.samples[source], tracks(m))
	return nil
}

// resolution is the scrape interval, or more where a run is too long for it.
func (l *loader) resolution(d time.Duration) time.Duration {
	every := seconds(l.run.ScrapeInterval)
	if every <= 0 {
		every = 15 * time.Second
	}
	least := (d / maxPoints).Truncate(time.Millisecond) + time.Millisecond
	if d/every > maxPoints {
		return least
	}
	return every
}

// signalSeries computes every service and resource signal over the run.
func (l *loader) signalSeries() []series {
	var out []series
	for _, sig := range signal.Signals() {
		if sig.Layer == signal.LayerUser {
			continue // loadgen's own numbers are better
		}
		i := slices.IndexFunc(l.sources, func(s *source) bool { return s.name == sig.Source })
		s := l.sources[i]
		r := series{name: sig.Name, layer: sig.Layer, unit: sig.Unit}
		var m signal.Metric
		if m, r.missing = s.choose(sig.Name); r.missing == "" {
			f := newFormula(m, l.samples[s.name])
			r.line, r.times = f.line(), f.times
			if f.rate() {
				r.mean = f.value
			}
			if len(r.times) == 0 {
				r.missing = fmt.Sprintf("no samples of %s during this run", m.Name)
			}
		}
		out = append(out, r)
	}
	return out
}

// expressionQuestions ask for the values of the objectives that are PromQL, at each scrape.
func (l *loader) expressionQuestions() []question {
	var qs []question
	for _, o := range l.SLO.Objectives {
		if o.Kind != slo.Expression {
			continue
		}
		e, err := promexpr.ParseVector(o.PromQL)
		if err != nil {
			continue // refused at the start
		}
		qs = append(qs, question{
			name: "objective " + o.Name, expr: e, lenient: true,
			lookback: staleAfter * seconds(l.run.ScrapeInterval),
			span:     v1.Range{Start: l.begin, End: ceilSecond(l.end), Step: l.resolution(l.end.Sub(l.begin))},
			take: func(a answer) error {
				r := series{name: o.Name, layer: string(o.Layer)}
				err := r.take(a)
				l.expressions = append(l.expressions, r)
				return err
			},
		})
	}
	return qs
}

// take reads the values of an expression. It must give one series: of two, neither is the one that
// is meant.
func (r *series) take(a answer) error {
	if a.err != nil {
		r.missing = a.err.Error()
		return nil
	}
	m, err := a.matrix()
	if err != nil {
		return err
	}
	switch len(m) {
	case 0:
		r.missing = "the expression gives nothing during this run"
	case 1:
		r.line = points(m[0].Values)
		for _, s := range m[0].Values {
			r.times = append(r.times, float64(s.Timestamp)/1000)
		}
		if len(r.line) == 0 {
			r.missing = "the expression gives NaN throughout this run"
		}
	default:
		r.missing = fmt.Sprintf("the expression gives %d series where one is expected, such as %s and %s: aggregate them in the expression",
			len(m), m[0].Metric, m[1].Metric)
	}
	return nil
}

// cutAll reads every series in every step. A reading goes by the name of its signal, that of an
// expression by its objective's; where two objectives bound one signal differently, the second
// reading goes by its objective's name.
func (l *loader) cutAll(signals []series) {
	bounds := map[string]*slo.Objective{}
	named := map[string]series{}
	all := slices.Clone(signals)
	for _, s := range signals {
		named[s.name] = s
	}
	for i, o := range l.SLO.Objectives {
		switch {
		case o.Kind == slo.Expression:
			bounds[o.Name] = &l.SLO.Objectives[i]
		case o.Kind != slo.Gauge:
		case bounds[o.Signal] == nil:
			bounds[o.Signal] = &l.SLO.Objectives[i]
		default:
			if s, ok := named[o.Signal]; ok {
				s.name = o.Name
				bounds[o.Name] = &l.SLO.Objectives[i]
				all = append(all, s)
			}
		}
	}
	all = append(all, l.expressions...)
	for _, s := range l.steps {
		s.Readings = make(map[string]verdict.Reading, len(all))
		for _, r := range all {
			s.Readings[r.name] = r.cut(s, bounds[r.name])
		}
	}
}

// findRestarts notes when the engine's process was replaced during the run: what was measured
// before and after are two systems.
func (l *loader) findRestarts() {
	for _, t := range l.samples[signal.SourceEngine][signal.ProcessStart] {
		for i := 1; i < len(t.points); i++ {
			was, is := t.points[i-1].V, t.points[i].V
			if math.Abs(is-was) < 1 {
				continue // some libraries compute it anew each time
			}
			when := fromUnix(is).UTC().Format(time.RFC3339)
			if place := l.during(is, t.points[i].T); place != "" {
				l.run.ConditionsChanged = append(l.run.ConditionsChanged,
					fmt.Sprintf("the engine at %s restarted at %s, %s", t.labels[model.InstanceLabel], when, place))
			}
		}
	}
}

// during says in which step a moment lies, or between which; "" when it lies outside the run. Where
// the time that the process gives is of no use, the time at which it was seen counts.
func (l *loader) during(moment, seen float64) string {
	if moment < unix(l.begin) || moment > seen {
		moment = seen
	}
	if moment < unix(l.begin) || moment > unix(l.end) {
		return ""
	}
	for _, s := range l.ordered() {
		if s.Start != nil && s.End != nil && *s.Start <= moment && moment <= *s.End {
			return "during " + s.key().String()
		}
	}
	return "between two steps"
}
