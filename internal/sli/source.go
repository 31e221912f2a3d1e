package sli

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
	"firstbreach/internal/strictyaml"
)

// Source is one of the places that series come from, as the SLO file's selectors pick it.
type Source struct {
	Name     string // engine, host, gpu or probe: the key under selectors
	Entry    *signal.Engine
	Matchers map[string]string
	// Variable are further matchers, whose values may be variables of a dashboard.
	Variable []promexpr.Matcher
}

// engineOf is the source of what the service says of itself. For engine: probe, which has no page of
// its own, that is the probe.
func engineOf(f *slo.File) (Source, error) {
	if f.Engine == signal.Probe {
		return probeOf(f)
	}
	entry, err := signal.Lookup(f.Engine)
	return Source{Name: signal.SourceEngine, Entry: entry, Matchers: f.Selectors.Engine}, err
}

func probeOf(f *slo.File) (Source, error) {
	entry, err := signal.Lookup(signal.Probe)
	return Source{Name: signal.Probe, Entry: entry, Matchers: f.Selectors.Probe}, err
}

// SourceOf is the source of a service or resource signal.
func SourceOf(f *slo.File, s signal.Signal) (Source, error) {
	switch s.Source {
	case signal.SourceHost:
		return Source{Name: signal.SourceHost, Entry: signal.Host(), Matchers: f.Selectors.Host}, nil
	case signal.SourceGPU:
		return Source{Name: signal.SourceGPU, Entry: signal.GPU(), Matchers: f.Selectors.GPU}, nil
	}
	return engineOf(f)
}

// Up is the scrape of the source's targets: 1 where it went well.
func (s Source) Up() *parser.VectorSelector { return promexpr.Select("up", s.matchers()...) }

func (s Source) matchers() []promexpr.Matcher {
	return append(promexpr.Labels(s.Matchers), s.Variable...)
}

// refuse is an error at an objective: its line, what is wrong and what to write instead.
func refuse(f *slo.File, o slo.Objective, key, fix, format string, args ...any) error {
	return &strictyaml.Error{Problems: []strictyaml.Problem{{
		File: f.Path, Line: o.Line, Key: "objective " + o.Name + ": " + key,
		Message: fmt.Sprintf(format, args...), Fix: fix,
	}}}
}

// requireSelector refuses an objective whose source has no selector: without one, the series of
// every service in Prometheus would be added up.
func requireSelector(f *slo.File, o slo.Objective, s Source) error {
	if len(s.Matchers) > 0 {
		return nil
	}
	return refuse(f, o, "signal", fmt.Sprintf("write selectors: {%s: {job: ...}} with the job's name in your Prometheus", s.Name),
		"is read from the %s in production, and the file has no selectors.%s", s.Name, s.Name)
}

// current leaves away names that releases of today no longer have, when there is none of today's.
func current(ms []signal.Metric) []signal.Metric {
	for _, m := range ms {
		if m.Until == "" {
			return ms
		}
	}
	return nil
}

// variants groups candidates: each group is one metric with the names that exporters give it.
func variants(ms []signal.Metric) [][]signal.Metric {
	var groups [][]signal.Metric
	for _, m := range ms {
		if m.Alias && len(groups) > 0 {
			groups[len(groups)-1] = append(groups[len(groups)-1], m)
			continue
		}
		groups = append(groups, []signal.Metric{m})
	}
	return groups
}

// selector picks the series of one term under all names of its group. Names that differ in their
// prefix only are in no Prometheus at once, so they may stand in one selector.
func (s Source) selector(terms []signal.Term, suffix string, more ...promexpr.Matcher) *parser.VectorSelector {
	t := terms[0]
	ms := s.matchers()
	for _, label := range sortedKeys(t.Match) {
		ms = append(ms, promexpr.OneOf(label, t.Match[label]...))
	}
	for _, label := range sortedKeys(t.Except) {
		ms = append(ms, promexpr.NoneOf(label, t.Except[label]...))
	}
	prefixes, rest := factor(terms)
	return promexpr.SelectPrefixed(prefixes, rest+suffix, append(ms, more...)...)
}

// factor splits names into their prefixes and what they have in common after them.
func factor(terms []signal.Term) (prefixes []string, rest string) {
	rest = terms[0].Name
	for _, t := range terms {
		for !strings.HasSuffix(t.Name, rest) {
			rest = rest[1:]
		}
	}
	for _, t := range terms {
		prefixes = append(prefixes, strings.TrimSuffix(t.Name, rest))
	}
	return unique(prefixes), rest
}

// own is each candidate's own term, of is the i-th of what it is taken of.
func own(group []signal.Metric) []signal.Term {
	terms := make([]signal.Term, len(group))
	for i, m := range group {
		terms[i] = m.Term
	}
	return terms
}

func of(group []signal.Metric, i int) []signal.Term {
	terms := make([]signal.Term, len(group))
	for j, m := range group {
		terms[j] = m.Of[i]
	}
	return terms
}
