package query

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
)

// source is where the readings of engine, host or GPU come from.
type source struct {
	name     string
	entry    *signal.Engine
	selector map[string]string
	target   bool   // whether its series need role="target"
	reason   string // why nothing can be read; "" when it can

	names map[string]int // metrics that are there, with how many series
}

// newSources are the engine, the host and the GPU of the SLO file.
func (l *loader) newSources() []*source {
	sel := l.SLO.Selectors
	engine := &source{name: signal.SourceEngine, selector: sel.Engine}
	entry, err := signal.Lookup(l.SLO.Engine)
	switch {
	case l.SLO.Engine == "":
		engine.reason = "the SLO file names no engine, so there are no metrics of its own to read: set `engine` and `selectors.engine`"
	case err != nil:
		engine.reason = err.Error()
	default:
		engine.entry = entry
	}
	all := []*source{
		engine,
		{name: signal.SourceHost, entry: signal.Host(), selector: sel.Host, target: true},
		{name: signal.SourceGPU, entry: signal.GPU(), selector: sel.GPU, target: true},
	}
	for _, s := range all {
		if s.reason == "" && len(s.selector) == 0 {
			s.reason = fmt.Sprintf("the SLO file doesn't say which series are of the %s: set `selectors.%s`", s.name, s.name)
		}
	}
	return all
}

// matchers pick the source's series.
func (s *source) matchers() []promexpr.Matcher {
	ms := promexpr.Labels(s.selector)
	if s.target && s.selector[signal.LabelRole] == "" {
		ms = append(ms, promexpr.Eq(signal.LabelRole, signal.RoleTarget))
	}
	return ms
}

// presenceQuestions ask of every source that can be read what is there.
func (l *loader) presenceQuestions() []question {
	var qs []question
	for _, s := range l.sources {
		if s.reason == "" {
			qs = append(qs, l.presenceQuestion(s))
		}
	}
	return qs
}

// presenceQuestion asks which of the catalogue's names are there, under which role.
func (l *loader) presenceQuestion(s *source) question {
	wanted := map[string]bool{}
	for _, sig := range s.entry.Signals() {
		for _, m := range s.entry.Candidates(sig.Name) {
			for _, t := range termsOf(m) {
				wanted[t.Name] = true
			}
		}
	}
	sel := promexpr.SelectNames(slices.Sorted(maps.Keys(wanted)), promexpr.Labels(s.selector)...)
	return question{
		name: "metrics of the " + s.name, at: l.nearEnd(), lenient: true, take: s.takePresence,
		expr: promexpr.CountBy(promexpr.LastOverTime(promexpr.Range(sel, l.nearSpan())), model.MetricNameLabel, signal.LabelRole),
	}
}

// termsOf lists the series that a metric is read from.
func termsOf(m signal.Metric) []signal.Term {
	if m.Reading == signal.ReadMean {
		sum, count := m.Term, m.Term
		sum.Name, count.Name = m.Name+suffixSum, m.Name+suffixCount
		return []signal.Term{sum, count}
	}
	return append([]signal.Term{m.Term}, m.Of...)
}

// takePresence notes what is there, or why it can't be used.
func (s *source) takePresence(a answer) error {
	if a.err != nil {
		s.reason = a.err.Error()
		return nil
	}
	v, err := a.vector()
	if err != nil {
		return err
	}
	s.names = map[string]int{}
	roles := map[string]bool{}
	for _, sample := range v {
		role := string(sample.Metric[signal.LabelRole])
		roles[role] = true
		if !s.target || role == signal.RoleTarget || s.selector[signal.LabelRole] != "" {
			s.names[string(sample.Metric[model.MetricNameLabel])] += int(sample.Value)
		}
	}
	if len(s.names) == 0 {
		s.reason = s.nothing(roles)
	}
	return nil
}

// nothing says why a source has no series.
func (s *source) nothing(roles map[string]bool) string {
	sel := promexpr.Labels(s.selector)
	text := make([]string, len(sel))
	for i, m := range sel {
		text[i] = m.String()
	}
	where := "{" + strings.Join(text, ", ") + "}"
	switch {
	case roles[""]:
		return fmt.Sprintf("the %s series %s have no label `role`, so it isn't known whose they are: set role: target, or client, in the labels of their scrape configuration", s.name, where)
	case len(roles) > 0:
		return fmt.Sprintf("the %s series %s are those of another machine (role %s): scrape an exporter on the target's machine with role: target",
			s.name, where, strings.Join(slices.Sorted(maps.Keys(roles)), ", "))
	case s.entry.Enable != "":
		return fmt.Sprintf("no series of %s with %s during this run: %s, and scrape it with these labels", s.entry.Title, where, s.entry.Enable)
	}
	return fmt.Sprintf("no series of %s with %s during this run: is it scraped with these labels?", s.entry.Title, where)
}

// choose returns the first candidate for a signal of which every series that must be there is.
func (s *source) choose(sig string) (signal.Metric, string) {
	if s.reason != "" {
		return signal.Metric{}, s.reason
	}
	if r := s.entry.Reason(sig); r != "" {
		return signal.Metric{}, r
	}
	var tried []string
	for _, m := range s.entry.Candidates(sig) {
		lacking := ""
		for _, t := range termsOf(m) {
			if s.names[t.Name] == 0 && !t.MayBeAbsent {
				lacking = t.Name
				break
			}
		}
		if lacking == "" {
			return m, ""
		}
		tried = append(tried, lacking)
	}
	return signal.Metric{}, fmt.Sprintf("%s doesn't have %s during this run", s.entry.Title, strings.Join(slices.Compact(tried), " or "))
}

// nearEnd and nearSpan are when and how far back the samples of engine and machine are read.
func (l *loader) nearEnd() time.Time { return earlier(ceilSecond(l.end.Add(margin)), l.now) }

func (l *loader) nearSpan() time.Duration {
	return max(l.nearEnd().Sub(l.begin), 0).Truncate(time.Second) + margin
}
