package slo

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/strictyaml"
)

// shorts are the quantile keys that stand for a threshold and a target in one line, as p95: 750ms.
var shorts = []string{"p50", "p90", "p95", "p99", "p99.9"}

// everyKind are the keys that any objective may have.
var everyKind = []string{"name", "layer", "signal", "promql", "owner", "action", "runbook"}

// userSignals are the signals a user objective may name.
var userSignals = []string{SignalTTFT, SignalDuration, SignalTPOT, SignalICL, SignalSuccess, SignalTimeouts, SignalCapacity, SignalRecovery}

// keysOf lists the keys that have a meaning for objectives of a kind, beside everyKind.
func keysOf(k Kind) []string {
	switch k {
	case Latency:
		return append([]string{"threshold", "target"}, shorts...)
	case Success, Timeouts:
		return []string{"target"}
	case Capacity:
		return []string{"min_concurrency"}
	case Recovery:
		return []string{"within"}
	}
	return []string{"max", "min", "for"}
}

// readObjective reads one entry of objectives. ok is false when it is wrong in a way that leaves its
// kind unknown.
func readObjective(v strictyaml.Value, owners map[string]Owner) (o Objective, ok bool) {
	known := slices.Concat(everyKind, keysOf(Latency), keysOf(Capacity), keysOf(Recovery), keysOf(Gauge))
	m := v.Map(known...)
	o.Line = v.Line()
	if len(m.Keys()) == 0 {
		return o, false
	}
	if n := m.Get("name"); n.Require("give the objective a short name, such as ttft") {
		o.Name = readName(n)
	}
	o.readAlerting(m, owners)
	if !o.readKind(m) {
		m.Get("layer").Require("write layer: user, service or resource")
		return o, false
	}
	rejectForeign(m, o)
	switch o.Kind {
	case Latency:
		o.readLatency(v, m)
	case Success, Timeouts:
		if t := m.Get("target"); t.Require("write the share of requests that must be good, such as target: 99%") {
			o.Target = readTarget(t)
		}
	case Capacity:
		o.readCapacity(m.Get("min_concurrency"))
	case Recovery:
		if w := m.Get("within"); w.Require("write how long recovery may take, such as within: 2m") {
			o.Within, _ = w.PositiveDuration()
		}
	case Gauge, Expression:
		o.readBounds(v, m)
	}
	return o, true
}

// readAlerting reads who acts and how. Half of it would be an alert that reaches nobody, or one that
// tells nobody what to do; so it is both or, for analysis only, neither.
func (o *Objective) readAlerting(m strictyaml.Map, owners map[string]Owner) {
	owner, action, runbook := m.Get("owner"), m.Get("action"), m.Get("runbook")
	if owner.Present() != action.Present() {
		have, lack, fix := owner, "action", "add action: what the owner should do"
		if action.Present() {
			have, lack, fix = action, "owner", "add owner: who should do it"
		}
		have.Reject("without "+lack+" it would never alert", fix+", or remove both: the objective is then for analysis only")
	}
	if text, ok := owner.NonEmpty(); ok {
		o.Owner = text
		if _, declared := owners[text]; !declared {
			rejectOwner(owner, text, owners)
		}
	}
	o.Action, _ = action.NonEmpty()
	if text, ok := runbook.NonEmpty(); ok {
		o.Runbook = text
		if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			runbook.Reject(fmt.Sprintf("%q is not a web address", text), "write the whole address, such as https://runbooks.example.com/chat/ttft")
		}
	}
}

func rejectOwner(v strictyaml.Value, owner string, owners map[string]Owner) {
	f := File{Owners: owners}
	fix := fmt.Sprintf("add %s: {contact: ...} under owners", owner)
	if near := strictyaml.Nearest(owner, f.OwnerNames()); near != "" {
		fix = "did you mean " + near + "? Otherwise " + fix
	}
	v.Reject(fmt.Sprintf("%q is not declared under owners", owner), fix)
}

// readPromQL reads an expression. One that can't be parsed is refused here: a run would otherwise find
// it out only when it is over.
func (o *Objective) readPromQL(v strictyaml.Value) {
	text, ok := v.NonEmpty()
	if !ok {
		return
	}
	o.PromQL = text
	if _, err := promexpr.ParseVector(text); err != nil {
		v.Reject(err.Error(), "write an expression that Prometheus shows as a number for each series, such as histogram_quantile(0.95, sum by (le) (rate(search_seconds_bucket[5m])))")
	}
}

// readKind reads signal or promql, and the layer that goes with it.
func (o *Objective) readKind(m strictyaml.Map) bool {
	name, promql := m.Get("signal"), m.Get("promql")
	layer, _ := m.Get("layer").OneOf(string(User), string(Service), string(Resource))
	o.Layer = Layer(layer)
	switch {
	case name.Present() && promql.Present():
		promql.Reject("stands beside signal", "keep one of the two")
		return false
	case promql.Present():
		o.Kind = Expression
		o.readPromQL(promql)
		o.requireLayer(m.Get("layer"), Service, Resource)
		return true
	case !name.Require("write signal: and one of " + strings.Join(userSignals, ", ") + " or a service or resource signal, or promql: and an expression"):
		return false
	}
	text, ok := name.Text()
	if !ok {
		return false
	}
	o.Signal = text
	if kind, ok := userKind(text); ok {
		o.Kind = kind
		o.requireLayer(m.Get("layer"), User)
		return true
	}
	gauge := gaugeSignals()
	for _, s := range gauge {
		if s.Name == text {
			o.Kind = Gauge
			o.requireLayer(m.Get("layer"), Layer(s.Layer))
			return true
		}
	}
	rejectSignal(name, text, o.Layer, gauge)
	o.Signal = ""
	return false
}

func userKind(name string) (Kind, bool) {
	switch name {
	case SignalTTFT, SignalDuration, SignalTPOT, SignalICL:
		return Latency, true
	case SignalSuccess:
		return Success, true
	case SignalTimeouts:
		return Timeouts, true
	case SignalCapacity:
		return Capacity, true
	case SignalRecovery:
		return Recovery, true
	}
	return 0, false
}

func (o *Objective) requireLayer(v strictyaml.Value, want ...Layer) {
	words := make([]string, len(want))
	for i, l := range want {
		words[i] = string(l)
	}
	what := "signal " + o.Signal
	if o.Kind == Expression {
		what = "a promql objective"
	}
	fix := "write layer: " + strings.Join(words, " or ")
	if !v.Require(fix) || o.Layer == "" || slices.Contains(want, o.Layer) {
		return
	}
	v.Reject(fmt.Sprintf("%s belongs to layer %s, not %s", what, strings.Join(words, " or "), o.Layer), fix)
}

func rejectSignal(v strictyaml.Value, text string, layer Layer, gauge []signal.Signal) {
	all, ofLayer := slices.Clone(userSignals), []string{}
	if layer == User {
		ofLayer = userSignals
	}
	for _, s := range gauge {
		all = append(all, s.Name)
		if Layer(s.Layer) == layer {
			ofLayer = append(ofLayer, s.Name)
		}
	}
	if len(ofLayer) == 0 {
		ofLayer = all
	}
	fix := "write one of " + strings.Join(ofLayer, ", ")
	if near := strictyaml.Nearest(text, all); near != "" {
		fix = "did you mean " + near + "?"
	}
	v.Reject(fmt.Sprintf("unknown signal %q", text), fix)
}

// rejectForeign refuses keys that have no meaning for the objective's kind: whoever wrote one expects
// it to do something.
func rejectForeign(m strictyaml.Map, o Objective) {
	own := keysOf(o.Kind)
	every := slices.Concat(keysOf(Latency), keysOf(Capacity), keysOf(Recovery), keysOf(Gauge))
	for _, k := range m.Keys() {
		if !slices.Contains(every, k) || slices.Contains(own, k) {
			continue
		}
		what := "signal " + o.Signal
		if o.Kind == Expression {
			what = "a promql objective"
		}
		m.Get(k).Reject("has no meaning for "+what, "remove it; what it can have is "+strings.Join(own, ", "))
	}
}

// readLatency reads threshold and target, or the one quantile key that stands for both.
func (o *Objective) readLatency(v strictyaml.Value, m strictyaml.Map) {
	var short []string
	for _, k := range shorts {
		if m.Get(k).Present() {
			short = append(short, k)
		}
	}
	threshold, target := m.Get("threshold"), m.Get("target")
	if len(short) == 0 {
		if threshold.Require("write the greatest good latency, such as threshold: 750ms") {
			o.Threshold, _ = threshold.PositiveDuration()
		}
		if target.Require("write the share of requests that must be good, such as target: 95%") {
			o.Target = readTarget(target)
		}
		return
	}
	if len(short) > 1 {
		m.Get(short[1]).Reject("stands beside "+short[0], "write one objective for each")
	}
	for _, k := range []string{"threshold", "target"} {
		if m.Get(k).Present() {
			m.Get(k).Reject("stands beside "+short[0]+", which says the same", "keep "+short[0]+", or threshold and target")
		}
	}
	o.Threshold, _ = m.Get(short[0]).PositiveDuration()
	o.Target, _ = ParseTarget(short[0][1:] + "%")
}

func readTarget(v strictyaml.Value) Target {
	number, unit, ok := v.Measure()
	if !ok {
		return Target{}
	}
	text, _ := v.Scalar()
	if unit == "" {
		fix := "write the percent sign: " + text + "%"
		if number > 0 && number < 1 {
			fix = "write it as a percentage: " + shiftUp(text)
		}
		v.Reject("has no percent sign", fix)
		return Target{}
	}
	t, err := ParseTarget(text)
	if err != nil {
		fix := "write a percentage between 0 and 100, such as 95%"
		if number == 100 {
			fix = "write 99.9%, or what your users really need"
		}
		v.Reject(err.Error(), fix)
	}
	return t
}

// shiftUp writes a ratio's text as a percentage.
func shiftUp(ratio string) string {
	_, fraction, ok := strings.Cut(ratio, ".")
	if !ok || strings.Trim(fraction, "0123456789") != "" {
		return "95%"
	}
	for len(fraction) < 2 {
		fraction += "0"
	}
	t, err := ParseTarget(fraction[:2] + "." + fraction[2:] + "0%")
	if err != nil {
		return "95%"
	}
	return t.Text()
}

func (o *Objective) readCapacity(v strictyaml.Value) {
	if !v.Require("write the concurrency that must hold, such as min_concurrency: 4") {
		return
	}
	n, ok := v.Int()
	if ok && n < 1 {
		v.Reject("must be at least 1", "write the concurrency that must hold, such as 4")
	}
	o.MinConcurrency = n
}

// readBounds reads max, min and for of a gauge or an expression.
func (o *Objective) readBounds(v strictyaml.Value, m strictyaml.Map) {
	unit := ""
	if s, ok := signal.Get(o.Signal); ok && o.Kind == Gauge {
		unit = s.Unit
	}
	highest, lowest := m.Get("max"), m.Get("min")
	if !highest.Present() && !lowest.Present() {
		v.Reject("has neither max nor min", "write max: and "+sample(unit))
	}
	o.Max, o.Min = readBound(highest, unit), readBound(lowest, unit)
	if o.Max != nil && o.Min != nil && *o.Min >= *o.Max {
		lowest.Reject("is not below max", "swap the two, or remove one")
	}
	o.For, _ = m.Get("for").Duration()
}
