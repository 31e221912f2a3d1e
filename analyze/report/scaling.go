package report

import (
	"fmt"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// At is a level in report.json: one of the two is set.
type At struct {
	Concurrency int     `json:"concurrency,omitempty"`
	Rate        float64 `json:"rate,omitempty"`
}

func at(l *level.Level) *At {
	if l == nil {
		return nil
	}
	return &At{l.Concurrency, l.Rate}
}

// Knee is how throughput grew with load. It is never the result of a run.
type Knee struct {
	Throughput KneeOf `json:"throughput"`
	Goodput    KneeOf `json:"goodput"`
	Kneedle    Curve  `json:"kneedle"`
	USL        Curve  `json:"usl"`
	Little     []Law  `json:"little"`
}

// KneeOf is the level from which more load brings no more.
type KneeOf struct {
	State  verdict.State `json:"state"` // found, none, undecided
	At     *At           `json:"at"`
	Above  *At           `json:"above"` // undecided: it lies above this …
	Upto   *At           `json:"upto"`  // … and at or below this
	Reason string        `json:"reason,omitempty"`
	Gains  []Gain        `json:"gains"`
}

// Gain is the elasticity of throughput between neighbouring steps.
type Gain struct {
	From       *At         `json:"from"`
	To         *At         `json:"to"`
	Elasticity *float64    `json:"elasticity"`
	CI         *[2]float64 `json:"ci"` // one-sided 95 % bounds
	Change     *float64    `json:"change"`
	Grows      string      `json:"grows"` // yes, no, unknown
}

// Curve is a fitted knee or peak.
type Curve struct {
	Used bool     `json:"used"`
	At   *float64 `json:"at"`
	Text string   `json:"text"`
}

// Law is Little's law at one step.
type Law struct {
	Level    *At      `json:"level"`
	X        *float64 `json:"requests_per_second"`
	R        *float64 `json:"residence"`
	L        *float64 `json:"in_system"`
	InFlight *float64 `json:"in_flight"`
}

// TradeOff is what improved and what paid for it from one step to the next.
type TradeOff struct {
	From *At    `json:"from"`
	To   *At    `json:"to"`
	Text string `json:"text"`
}

// Saturation says from which level a signal no longer rises.
type Saturation struct {
	Signal      string   `json:"signal"`
	Layer       string   `json:"layer"`
	Concurrency *int     `json:"concurrency"`
	Rate        *float64 `json:"rate,omitempty"`
	Value       *float64 `json:"value"`
	Reason      string   `json:"reason,omitempty"`
}

func knee(s *verdict.Scaling) *Knee {
	if s == nil {
		return nil
	}
	k := &Knee{Throughput: kneeOf(s.Throughput), Goodput: kneeOf(s.Goodput), Kneedle: curveOf(s.Kneedle), USL: curveOf(s.USL), Little: []Law{}}
	for _, l := range s.Laws {
		k.Little = append(k.Little, Law{at(&l.Level), number(l.X), number(l.R), number(l.L), number(l.InFlight)})
	}
	return k
}

func curveOf(c verdict.Curve) Curve { return Curve{c.Used, number(c.At), c.Text} }

func kneeOf(k verdict.Knee) KneeOf {
	out := KneeOf{State: k.State, At: at(k.At), Above: at(k.Above), Upto: at(k.Upto), Reason: k.Reason, Gains: []Gain{}}
	for _, g := range k.Gains {
		x := Gain{From: at(&g.From), To: at(&g.To), Elasticity: number(g.Elasticity), Change: number(g.Change),
			Grows: map[verdict.State]string{verdict.OK: "yes", verdict.Breach: "no"}[g.Grows]}
		if x.Grows == "" {
			x.Grows = "unknown"
		}
		if g.Low != nil && g.High != nil {
			x.CI = &[2]float64{round(*g.Low), round(*g.High)}
		}
		out.Gains = append(out.Gains, x)
	}
	return out
}

func tradeOffs(ts []verdict.TradeOff) []TradeOff {
	out := []TradeOff{}
	for _, t := range ts {
		out = append(out, TradeOff{at(&t.From), at(&t.To), t.Text})
	}
	return out
}

func saturation(ss []verdict.Saturation) []Saturation {
	out := []Saturation{}
	for _, s := range ss {
		x := Saturation{Signal: s.Signal, Layer: s.Layer, Value: number(s.Value), Reason: s.Reason}
		switch {
		case s.At != nil && s.At.Rate > 0:
			x.Rate = &s.At.Rate
		case s.At != nil:
			x.Concurrency = &s.At.Concurrency
		}
		out = append(out, x)
	}
	return out
}

// gainTable shows growth, Little's law and what was traded, step by step.
func (d *Document) gainTable() table {
	t := table{Head: []string{"step", "L = X·R", "throughput grows", "elasticity", "from the step below"}}
	s := d.res.Scaling
	if s == nil {
		return t
	}
	for i, l := range s.Laws {
		little := noData
		if l.L != nil {
			little = fmt.Sprintf("%s = %s/s · %s", significant(*l.L), significant(*l.X), seconds(*l.R))
		}
		grows, elasticity, traded := "", "", ""
		if i > 0 && i-1 < len(s.Throughput.Gains) {
			g := s.Throughput.Gains[i-1]
			grows = map[verdict.State]string{verdict.OK: "yes", verdict.Breach: "no"}[g.Grows]
			if grows == "" {
				grows = "too uncertain to tell"
			}
			if g.Elasticity != nil {
				elasticity = fmt.Sprintf("%.2f", *g.Elasticity)
				if g.Low != nil {
					elasticity += fmt.Sprintf(" (%.2f–%.2f)", *g.Low, *g.High)
				}
			}
			traded = d.res.TradeOffs[i-1].Text
		}
		t.row(num(l.Level.String()), text(little), text(grows), num(elasticity), text(traded))
	}
	if len(t.Rows) > 0 {
		t.note("Knee of throughput: " + kneeWords(s.Throughput) + ". Of goodput: " + kneeWords(s.Goodput) + ". It is the step from which a doubling of the load brings less than 23 % more; the first breach, not the knee and not the highest throughput, is the result of a run.")
		t.note("Kneedle: " + s.Kneedle.Text + ". Universal scalability law: " + s.USL.Text + ".")
	}
	return t
}

func kneeWords(k verdict.Knee) string {
	switch {
	case k.State == verdict.KneeFound:
		return k.At.Words()
	case k.State == verdict.KneeNone:
		return "none; " + k.Reason
	}
	return "undecided; " + k.Reason
}

// saturationTable lists the signals that stopped rising.
func (d *Document) saturationTable() table {
	t := table{Head: []string{"signal", "layer", "no longer rises from", "mean there"}}
	for _, s := range d.res.Saturation {
		if s.At != nil && s.Value != nil {
			t.row(text(plain(s.Signal)), text(s.Layer), text(s.At.Words()), num(value(*s.Value, s.Unit)))
		}
	}
	return t
}
