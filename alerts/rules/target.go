package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/sli"
	"firstbreach/internal/slo"
)

// watch collects the sources that alerts are read from, each with the first objective that reads it:
// its owner is told when the source is gone.
type watch struct {
	sources []sli.Source
	first   map[string]slo.Objective
}

func (w *watch) add(s sli.Source, o slo.Objective) {
	if s.Name == "" {
		return
	}
	if w.first == nil {
		w.first = map[string]slo.Objective{}
	}
	if _, ok := w.first[s.Name]; ok {
		return
	}
	w.first[s.Name] = o
	w.sources = append(w.sources, s)
}

// engine watches the engine that the file selects, also where no objective is read from it by name: users
// may be judged through the probe, and an expression doesn't say where its series come from. Its owner
// is that of the first service objective, or of the first objective of all.
func (m maker) engine(w *watch) {
	if len(m.file.Selectors.Engine) == 0 {
		return
	}
	owned := slices.DeleteFunc(slices.Clone(m.file.Objectives), func(o slo.Objective) bool { return !o.Alerts() })
	if len(owned) == 0 {
		return
	}
	first := max(0, slices.IndexFunc(owned, func(o slo.Objective) bool { return o.Layer == slo.Service }))
	w.add(sli.Source{Name: signal.SourceEngine, Matchers: m.file.Selectors.Engine}, owned[first])
}

// Waits before a source counts as gone: longer than a restart's scrape that fails.
const (
	downFor   = 2 * time.Minute
	absentFor = 5 * time.Minute
)

// targets makes the alerts for sources that don't answer. They look at up, which is there while a
// service is idle; request counters need not be.
func (m maker) targets(w watch) {
	for _, s := range w.sources {
		o := w.first[s.Name]
		severity := Page
		if s.Name == signal.SourceHost || s.Name == signal.SourceGPU {
			severity = Ticket
		}
		o.Layer, o.Runbook = layerOf(s.Name), ""
		where := selectorText(s)
		source := map[string]string{LabelSource: s.Name}
		o.Action = fmt.Sprintf("Look at the target on Prometheus's page /targets: it names the error. Start the %s again, or correct its scrape configuration.", s.Name)
		down := m.alert(AlertDown, o, severity, promexpr.Equals(s.Up(), 0), downFor, source,
			fmt.Sprintf("%s: %s does not answer", m.file.Service, s.Name),
			fmt.Sprintf("The scrape of {{ $labels.instance }} has failed for %s. What is read from it, %s and others, can't be judged meanwhile.", span(downFor), o.Name))
		absent := m.alert(AlertAbsent, o, severity, promexpr.Absent(s.Up()), absentFor, source,
			fmt.Sprintf("%s: Prometheus has no target for the %s", m.file.Service, s.Name),
			fmt.Sprintf("No target has matched %s for %s: the job was renamed, or discovery finds nothing. What is read from it, %s and others, can't be judged.", where, span(absentFor), o.Name))
		absent.Objective, down.Objective = "", ""
		absent.Source, down.Source = s.Name, s.Name
		m.group("target:"+s.Name, nil, down, absent)
	}
	m.sourceScenarios(w.sources)
}

func layerOf(source string) slo.Layer {
	switch source {
	case signal.Probe:
		return slo.User
	case signal.SourceEngine:
		return slo.Service
	}
	return slo.Resource
}

func selectorText(s sli.Source) string {
	ms := promexpr.Labels(s.Matchers)
	list := make([]string, len(ms))
	for i, x := range ms {
		list[i] = x.String()
	}
	return literal("{" + strings.Join(list, ", ") + "}")
}
