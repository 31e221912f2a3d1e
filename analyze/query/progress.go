package query

import (
	"maps"
	"slices"

	"github.com/prometheus/common/model"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/wire"
)

// counters are the raw counters of one step in its measure window, by what they count.
type counters map[string][]*track

// progressQuestions ask how many there were at each scrape, not only in the end: when a step broke,
// when the service was back, for the phases that are judged over their own time, and whether the last
// scrape is all there.
func (l *loader) progressQuestions() []question {
	ask := func(metric string, name func(model.Metric) string, more ...promexpr.Matcher) question {
		return question{
			name: metric + " at each scrape", at: l.until,
			expr: promexpr.Range(l.own(metric, append([]promexpr.Matcher{measured()}, more...)...), l.span),
			take: func(a answer) error { return l.takeCounters(a, name) },
		}
	}
	named := func(s string) func(model.Metric) string { return func(model.Metric) string { return s } }
	qs := []question{ask(signal.LoadgenRequests, func(m model.Metric) string { return string(m[signal.LabelOutcome]) },
		promexpr.OneOf(signal.LabelOutcome, l.outcomesSeen()...))}
	for _, e := range l.edges {
		if len(e.spellings) == 0 {
			continue
		}
		qs = append(qs, ask(e.metric+suffixBucket, named(withinOf(e)), promexpr.OneOf(labelLE, e.spellings...)))
		if count := ask(e.metric+suffixCount, named(e.metric)); !slices.ContainsFunc(qs, func(q question) bool { return q.name == count.name }) {
			qs = append(qs, count)
		}
	}
	return qs
}

// outcomesSeen are those that a request had, with ok: the counters of the others stand at zero.
func (l *loader) outcomesSeen() []string {
	seen := map[string]bool{string(wire.OK): true}
	for _, s := range l.steps {
		for _, w := range s.windows {
			for outcome, n := range w.outcomes {
				seen[outcome] = seen[outcome] || n > 0
			}
		}
	}
	maps.DeleteFunc(seen, func(_ string, there bool) bool { return !there })
	return slices.Sorted(maps.Keys(seen))
}

// refusalQuestion asks how long refusals took while admission limits were tried.
func (l *loader) refusalQuestion() question {
	sum, count, bucket := signal.LoadgenRejectionDuration+suffixSum, signal.LoadgenRejectionDuration+suffixCount, signal.LoadgenRejectionDuration+suffixBucket
	return question{
		name: "time of refusals behind the limits", at: l.until,
		expr: promexpr.Range(promexpr.SelectNames([]string{sum, count, bucket},
			promexpr.Eq(signal.LabelRun, l.RunID), measured(), promexpr.Eq(signal.LabelPhase, verdict.PhaseVerify), promexpr.OneOf(labelLE, "", "0.1")), l.span),
		take: func(a answer) error {
			m, err := a.matrix()
			if err != nil {
				return err
			}
			for name, ts := range tracks(m) {
				for _, t := range ts {
					if err := l.takeRefusals(name, t); err != nil {
						return err
					}
				}
			}
			for _, s := range l.steps {
				if r := s.Refusals; r != nil && r.Count > 0 {
					r.Mean /= float64(r.Count)
				} else {
					s.Refusals = nil
				}
			}
			return nil
		},
	}
}

// takeRefusals adds the last sample of one series; Mean holds the sum until all are there.
func (l *loader) takeRefusals(name string, t track) error {
	k, err := keyOf(t.labels)
	if err != nil || len(t.points) == 0 {
		return err
	}
	s := l.stepOf(k)
	if s.Refusals == nil {
		s.Refusals = &verdict.Refusals{}
	}
	switch last := t.points[len(t.points)-1].V; name {
	case signal.LoadgenRejectionDuration + suffixSum:
		s.Refusals.Mean += last
	case signal.LoadgenRejectionDuration + suffixCount:
		s.Refusals.Count += whole(last)
	default:
		s.Refusals.Within += whole(last)
	}
	return nil
}

func withinOf(e edge) string { return "within " + e.objective.Name }

func (l *loader) takeCounters(a answer, name func(model.Metric) string) error {
	m, err := a.matrix()
	if err != nil {
		return err
	}
	for _, ts := range tracks(m) {
		for _, t := range ts {
			k, err := keyOf(t.labels)
			if err != nil {
				return err
			}
			s := l.stepOf(k)
			if s.counters == nil {
				s.counters = counters{}
			}
			s.counters[name(t.labels)] = append(s.counters[name(t.labels)], &t)
		}
	}
	return nil
}

// fillProgress computes each objective's count at each scrape.
func (l *loader) fillProgress() {
	for _, s := range l.steps {
		if s.Phase == verdict.PhaseBaseline || s.Phase == verdict.PhaseConfirm {
			continue // nobody asks when
		}
		for _, t := range grid(s.counters[string(wire.OK)]) {
			s.Progress = append(s.Progress, verdict.Progress{T: t, Counts: s.countsAt(t, l)})
		}
	}
}

func (s *step) countsAt(t float64, l *loader) map[string]verdict.Count {
	at := func(name string) int64 {
		var sum float64
		for _, track := range s.counters[name] {
			if i := track.before(t); i >= 0 { // a counter keeps its value
				sum += track.points[i].V
			}
		}
		return whole(sum)
	}
	var failed int64
	for _, o := range wire.Outcomes() {
		if o.Failed() {
			failed += at(string(o))
		}
	}
	counts := map[string]verdict.Count{}
	for _, e := range l.edges {
		if len(e.spellings) > 0 && s.Counts[e.objective.Name].Missing == "" {
			all := at(e.metric)
			counts[e.objective.Name] = verdict.Count{Total: all + failed, Slow: all - at(withinOf(e)), Failed: failed}
		}
	}
	for _, o := range l.SLO.Objectives {
		c := verdict.Count{Total: failed + at(string(wire.OK)), Failed: failed}
		switch o.Kind {
		case slo.Success:
			counts[o.Name] = c
		case slo.Timeouts:
			c.Failed = at(string(wire.Timeout))
			counts[o.Name] = c
		}
	}
	return counts
}
