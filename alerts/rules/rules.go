package rules

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/sli"
	"firstbreach/internal/slo"
	"firstbreach/internal/strictyaml"
)

// maker holds what the rules of one file are made from.
type maker struct {
	Options
	file *slo.File
	set  *Set
}

// Make makes the rules of an SLO file. The error is a *strictyaml.Error that lists every objective
// that production can't answer.
func Make(f *slo.File, opts Options) (*Set, error) {
	m := maker{Options: opts, file: f, set: &Set{Service: f.Service}}
	var problems []strictyaml.Problem
	var watched watch
	for _, o := range f.Objectives {
		if !o.Alerts() && !o.Kind.PerRequest() {
			m.notef("%s: analysis only, no alert: it has no owner and no action", o.Name)
			continue
		}
		src, err := m.objective(o)
		var listed *strictyaml.Error
		switch {
		case errors.As(err, &listed):
			problems = append(problems, listed.Problems...)
		case err != nil:
			return nil, err
		case o.Alerts():
			watched.add(src, o)
		}
	}
	if len(problems) > 0 {
		return nil, &strictyaml.Error{Problems: problems}
	}
	m.timeoutsAreFailures()
	m.engine(&watched)
	m.targets(watched)
	return m.set, nil
}

// objective makes the group of one objective and returns where it is read from.
func (m maker) objective(o slo.Objective) (sli.Source, error) {
	switch o.Kind {
	case slo.Capacity:
		return m.capacity(o)
	case slo.Recovery:
		return sli.Source{}, m.recovery(o)
	case slo.Gauge, slo.Expression:
		return m.gauge(o)
	}
	return m.ratio(o)
}

func (m maker) notef(format string, args ...any) {
	m.set.Notes = append(m.set.Notes, fmt.Sprintf(format, args...))
}

// group adds the rules of one objective; recording rules stand before the alerts that read them,
// because a group is evaluated in order.
func (m maker) group(name string, rules []rulefmt.Rule, alerts ...Alert) {
	for _, a := range alerts {
		rules = append(rules, a.Rule)
	}
	if len(rules) == 0 {
		return
	}
	m.set.Groups = append(m.set.Groups, rulefmt.RuleGroup{Name: m.file.Service + "/" + name, Rules: rules})
	m.set.Alerts = append(m.set.Alerts, alerts...)
}

// alert is a rule with the labels and annotations that every alert has.
func (m maker) alert(name string, o slo.Objective, severity string, e promexpr.Expr, wait time.Duration, more map[string]string, summary, description string) Alert {
	return Alert{
		Rule: rulefmt.Rule{
			Alert: name, Expr: text(e), For: model.Duration(wait),
			Labels: alertLabels(m.file.Service, o, severity, more), Annotations: m.annotations(o, summary, description),
		},
		Objective: o.Name,
	}
}

// text prints an expression for a person to read.
func text(e promexpr.Expr) string { return parser.Prettify(e) }
