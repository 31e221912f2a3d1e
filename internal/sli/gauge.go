package sli

import (
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
)

// labelInstance tells the machines of a source apart: a gauge is read for each, so that a full one
// among idle ones shows, and the alert names it.
const labelInstance = "instance"

// gaugeWindow is what a rate of a service or resource signal is taken over.
const gaugeWindow = 5 * time.Minute

// Value is a gauge or expression objective in production.
type Value struct {
	Objective slo.Objective
	Source    Source // none for an expression
	Signal    signal.Signal
	Notes     []string
	Feed      []Feed // empty for an expression, and for what is read as a rate

	expr  promexpr.Expr
	scale float64
}

// Scale is what a sample of the Feed is multiplied by to be the signal's value.
func (v Value) Scale() float64 { return v.scale }

// NewValue finds the series for a gauge objective, or takes the PromQL of one that has its own. The
// error is a *strictyaml.Error at the objective.
func NewValue(f *slo.File, o slo.Objective) (Value, error) {
	v := Value{Objective: o}
	if o.Kind == slo.Expression {
		return v.fromExpression(f)
	}
	v.Signal, _ = signal.Get(o.Signal)
	src, err := SourceOf(f, v.Signal)
	if err != nil {
		return v, err
	}
	v.Source = src
	ms := current(src.Entry.Candidates(o.Signal))
	if len(ms) == 0 {
		return v, refuse(f, o, "signal", "remove it, or write promql: and an expression for it", "%s: %s", src.Entry.Title, absence(src.Entry, o.Signal))
	}
	if err := requireSelector(f, o, src); err != nil {
		return v, err
	}
	v.expr = src.Read(ms, gaugeWindow)
	v.Feed, v.scale = src.feedGauge(ms[0], o), ms[0].Scale
	if ms[0].Note != "" {
		v.Notes = append(v.Notes, ms[0].Name+": "+ms[0].Note)
	}
	return v, nil
}

// absence says why an engine has nothing for a signal today.
func absence(e *signal.Engine, name string) string {
	if r := e.Reason(name); r != "" {
		return r
	}
	m := e.Candidates(name)[0]
	return "its metric for " + name + ", " + m.Name + ", was removed in " + m.Until
}

func (v Value) fromExpression(f *slo.File) (Value, error) {
	e, err := promexpr.ParseVector(v.Objective.PromQL)
	if err != nil {
		return v, refuse(f, v.Objective, "promql", "correct the expression", "%v", err)
	}
	v.expr = e
	return v, nil
}

// Value is the reading itself: one series for each instance of the source; of an expression, what the
// expression gives.
func (v Value) Value() promexpr.Expr { return v.expr }

// Worst is one number: the reading that is nearest to crossing the objective's bound.
func (v Value) Worst() promexpr.Expr {
	if v.Objective.Max == nil {
		return promexpr.MinBy(v.expr)
	}
	return promexpr.MaxBy(v.expr)
}

// Reading is a signal's value in PromQL, for each instance, with rates over the window; ok is false
// where the source has no metric for it today.
func (s Source) Reading(name string, window time.Duration) (e promexpr.Expr, ok bool) {
	ms := current(s.Entry.Candidates(name))
	if len(ms) == 0 {
		return nil, false
	}
	return s.Read(ms, window), true
}

// Quantile estimates a latency's quantile from the source's histogram, over all instances: for a
// picture, never for a verdict. ok is false where the source has no histogram of it.
func (s Source) Quantile(name string, q float64, window time.Duration) (e promexpr.Expr, ok bool) {
	ms := current(s.Entry.Candidates(name))
	if len(ms) == 0 || ms[0].Type != signal.Histogram {
		return nil, false
	}
	group := variants(ms)[0]
	buckets := promexpr.SumBy(promexpr.Rate(promexpr.Range(s.selector(own(group), suffixBucket), window)), labelLE)
	e = promexpr.HistogramQuantile(q, buckets)
	if scale := group[0].Scale; scale != 1 {
		e = promexpr.Mul(e, promexpr.Number(scale))
	}
	return e, true
}

// Read is a signal's value in PromQL, for each instance, by the first of the candidates that has
// series; rates are taken over the window.
func (s Source) Read(candidates []signal.Metric, window time.Duration) promexpr.Expr {
	var e promexpr.Expr
	for _, group := range variants(candidates) {
		v := s.read(group, window)
		if e == nil {
			e = v
		} else {
			e = promexpr.Or(e, v)
		}
	}
	return e
}

// read is the formula of the catalogue (signal.Reading) in PromQL.
func (s Source) read(group []signal.Metric, window time.Duration) promexpr.Expr {
	m := group[0]
	t := terms{metric: m, rated: isRate(m.Reading), window: window}
	top, whole := t.reduce(s.selector(own(group), "")), promexpr.Expr(nil)
	if m.Reading == signal.ReadMean {
		top, whole = t.reduce(s.selector(own(group), suffixSum)), t.reduce(s.selector(own(group), suffixCount))
	}
	for i := range m.Of {
		part := t.reduce(s.selector(of(group, i), ""))
		switch {
		case whole == nil:
			whole = part
		case m.Of[i].MayBeAbsent:
			whole = promexpr.Add(whole, promexpr.Or(part, promexpr.Mul(promexpr.Number(0), whole)))
		default:
			whole = promexpr.Add(whole, part)
		}
	}
	if m.MayBeAbsent && whole != nil {
		top = promexpr.Or(top, promexpr.Mul(promexpr.Number(0), whole))
	}
	return t.finish(combine(m, top, whole))
}

// terms reduces selectors as the metric's aggregate asks.
type terms struct {
	metric signal.Metric
	rated  bool
	window time.Duration
}

// reduce adds up at once where the ratio is that of the sums; where the greatest ratio counts, series
// stay apart until finish.
func (t terms) reduce(sel *parser.VectorSelector) promexpr.Expr {
	var e promexpr.Expr = sel
	if t.rated {
		e = promexpr.Rate(promexpr.Range(sel, t.window))
	}
	if t.metric.Aggregate == signal.Max {
		return e
	}
	return promexpr.SumBy(e, labelInstance)
}

func (t terms) finish(e promexpr.Expr) promexpr.Expr {
	if t.metric.Scale != 1 {
		e = promexpr.Mul(e, promexpr.Number(t.metric.Scale))
	}
	if t.metric.Aggregate == signal.Max {
		return promexpr.MaxBy(e, labelInstance)
	}
	return e
}

func combine(m signal.Metric, top, whole promexpr.Expr) promexpr.Expr {
	switch m.Reading {
	case signal.ReadMean, signal.ReadRatio, signal.ReadRateRatio:
		return promexpr.Div(top, whole)
	case signal.ReadRemainder:
		return promexpr.Sub(whole, top)
	case signal.ReadRemainderRatio, signal.ReadRateRemainder:
		return promexpr.Sub(promexpr.Number(1), promexpr.Div(top, whole))
	}
	return top
}

func isRate(r signal.Reading) bool {
	switch r {
	case signal.ReadRate, signal.ReadMean, signal.ReadRateRatio, signal.ReadRateRemainder:
		return true
	}
	return false
}

// feedGauge is the series of a signal that is read as it stands, at a healthy value and beyond the
// objective's bound.
func (s Source) feedGauge(m signal.Metric, o slo.Objective) []Feed {
	if m.Reading != signal.ReadValue {
		return nil
	}
	f := s.feed(m.Term, "", map[string]string{labelInstance: "a:1"}, 0, 0)
	f.Gauge = true
	if o.Max != nil {
		f.Healthy, f.Broken = *o.Max/m.Scale, 2**o.Max/m.Scale+1
	} else {
		f.Healthy, f.Broken = *o.Min/m.Scale, *o.Min/m.Scale-1
	}
	return []Feed{f}
}
