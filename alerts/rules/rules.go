package rules

import (
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"golang.org/x/sync/errgroup"

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
	var errs []error
	var watched watch
	for i, p := range m.parts() {
		o := f.Objectives[i]
		if o.Kind == slo.Recovery && o.Alerts() { // looks at the alerts before it
			p.err = m.recovery(o)
		}
		m.set.add(p.set)
		errs = append(errs, p.err)
		if o.Alerts() {
			watched.add(p.source, o)
		}
	}
	if err := strictyaml.Join(errs...); err != nil {
		return nil, err
	}
	m.timeoutsAreFailures()
	m.engine(&watched)
	m.targets(watched)
	return m.set, nil
}

// part is what is made of one objective by itself.
type part struct {
	set    *Set
	source sli.Source
	err    error
}

// parts makes the objectives side by side: none but a recovery looks at another.
func (m maker) parts() []part {
	parts := make([]part, len(m.file.Objectives))
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i, o := range m.file.Objectives {
		work.Go(func() error {
			p := part{set: &Set{}}
			p.source, p.err = maker{Options: m.Options, file: m.file, set: p.set}.objective(o)
			parts[i] = p
			return nil // errors are listed in the order of the file
		})
	}
	work.Wait() //nolint:errcheck // there is none
	return parts
}

// add appends what was made of a further objective.
func (s *Set) add(more *Set) {
	s.Groups = append(s.Groups, more.Groups...)
	s.Notes = append(s.Notes, more.Notes...)
	s.Alerts = append(s.Alerts, more.Alerts...)
	s.Scenarios = append(s.Scenarios, more.Scenarios...)
}

// objective makes the group of one objective and returns where it is read from. That of a recovery is
// made when all before it are there.
func (m maker) objective(o slo.Objective) (sli.Source, error) {
	if !o.Alerts() && !o.Kind.PerRequest() {
		m.notef("%s: analysis only, no alert: it has no owner and no action", o.Name)
		return sli.Source{}, nil
	}
	switch o.Kind {
	case slo.Recovery:
		return sli.Source{}, nil
	case slo.Capacity:
		return m.capacity(o)
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
