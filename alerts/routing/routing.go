package routing

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"firstbreach/alerts/rules"
	"firstbreach/internal/slo"
	"firstbreach/internal/strictyaml"
)

// Config is an Alertmanager configuration.
type Config struct {
	Global       map[string]any `yaml:"global,omitempty"`
	Templates    []string       `yaml:"templates"`
	Route        Route          `yaml:"route"`
	InhibitRules []Inhibit      `yaml:"inhibit_rules"`
	Receivers    []any          `yaml:"receivers"`
}

// Route is one node of the routing tree.
type Route struct {
	Receiver       string   `yaml:"receiver"`
	Matchers       []string `yaml:"matchers,omitempty"`
	GroupBy        []string `yaml:"group_by,omitempty"`
	GroupWait      string   `yaml:"group_wait,omitempty"`
	GroupInterval  string   `yaml:"group_interval,omitempty"`
	RepeatInterval string   `yaml:"repeat_interval,omitempty"`
	Routes         []Route  `yaml:"routes,omitempty"`
}

// Inhibit silences targets while a source fires and all equal labels agree.
type Inhibit struct {
	Source []string `yaml:"source_matchers"`
	Target []string `yaml:"target_matchers"`
	Equal  []string `yaml:"equal"`
}

// Base is what stands in the Alertmanager's configuration already: receivers that a contact may name,
// and global settings such as the mail server.
type Base struct {
	Path      string
	Global    map[string]any
	Receivers []map[string]any
}

// Default is the receiver of alerts that have no owner here.
const Default = "default"

// Templates is where the generated message templates lie, seen from the configuration.
const Templates = "firstbreach.tmpl"

// Make makes the configuration for the owners of all files. The error is a *strictyaml.Error that
// lists every contact that can't be reached.
func Make(files []*slo.File, base Base) (*Config, error) {
	owners, err := merge(files)
	if err != nil {
		return nil, err
	}
	c := &Config{Global: base.Global, Templates: []string{Templates}, InhibitRules: inhibit()}
	c.Route = Route{
		Receiver: Default, GroupBy: []string{"alertname", rules.LabelService, rules.LabelSLO},
		GroupWait: "30s", GroupInterval: "5m", RepeatInterval: "4h",
	}
	known, problems := receivers(base)
	c.Receivers = known.list
	if !known.has(Default) {
		c.Receivers = append(c.Receivers, map[string]any{"name": Default})
	}
	for _, o := range owners {
		r, fix := o.receiver(known, base)
		if fix != "" {
			problems = append(problems, strictyaml.Problem{File: o.file.Path, Line: o.Line, Key: "owners." + o.name + ".contact",
				Message: fmt.Sprintf("%q can't be made a receiver", o.Contact), Fix: fix})
			continue
		}
		if r.config != nil {
			c.Receivers = append(c.Receivers, r.config)
		}
		c.Route.Routes = append(c.Route.Routes, o.route(r.name))
	}
	if len(problems) > 0 {
		return nil, &strictyaml.Error{Problems: problems}
	}
	return c, nil
}

// route is an owner's: pages are repeated every hour, tickets once a day.
func (o owner) route(receiver string) Route {
	return Route{
		Receiver: receiver, Matchers: []string{equal(rules.LabelOwner, o.name)}, RepeatInterval: "24h",
		Routes: []Route{{Receiver: receiver, Matchers: []string{equal(rules.LabelSeverity, rules.Page)}, GroupWait: "10s", RepeatInterval: "1h"}},
	}
}

// equal is a matcher. Its value is quoted as in Go, whatever YAML does with the whole afterwards.
func equal(label, value string) string { return label + "=" + strconv.Quote(value) }

func oneOf(label string, values ...string) string {
	return label + "=~" + strconv.Quote(strings.Join(values, "|"))
}

// inhibit: a page explains the tickets of its objective; a target that's gone explains everything
// that is read of its service. Sources and targets never overlap, and every alert has every label in
// equal: labels that both lack would count as equal.
func inhibit() []Inhibit {
	burn := equal("alertname", rules.AlertBurn)
	gone := oneOf("alertname", rules.AlertDown, rules.AlertAbsent)
	return []Inhibit{
		{[]string{burn, equal(rules.LabelSeverity, rules.Page)}, []string{burn, equal(rules.LabelSeverity, rules.Ticket)},
			[]string{rules.LabelOwner, rules.LabelService, rules.LabelSLO}},
		{[]string{gone, oneOf(rules.LabelSource, "engine", "probe")}, []string{oneOf("alertname", rules.AlertBurn, rules.AlertThreshold, rules.AlertCapacity, rules.AlertRecovery, rules.AlertUnknown)},
			[]string{rules.LabelService}},
	}
}

// owner is one owner over all files.
type owner struct {
	name string
	slo.Owner
	file *slo.File
}

// merge collects the owners that have an alert. One name with two contacts would be one receiver of
// two minds.
func merge(files []*slo.File) ([]owner, error) {
	all := map[string]owner{}
	for _, f := range files {
		for _, name := range f.OwnerNames() {
			uses := func(o slo.Objective) bool { return o.Owner == name }
			if !slices.ContainsFunc(f.Objectives, uses) {
				continue
			}
			this := f.Owners[name]
			if first, ok := all[name]; !ok {
				all[name] = owner{name, this, f}
			} else if first.Contact != this.Contact {
				return nil, &strictyaml.Error{Problems: []strictyaml.Problem{{File: f.Path, Line: this.Line, Key: "owners." + name + ".contact",
					Message: fmt.Sprintf("is %q here and %q in %s", this.Contact, first.Contact, first.file.Path),
					Fix:     "write the same contact in both, or give the owners different names"}}}
			}
		}
	}
	list := make([]owner, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list, nil
}
