package rules

import (
	"fmt"
	"strconv"
	"time"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/sli"
	"firstbreach/internal/slo"
)

// gauge makes the threshold alert of a service or resource objective.
func (m maker) gauge(o slo.Objective) (sli.Source, error) {
	v, err := sli.NewValue(m.file, o)
	if err != nil {
		return sli.Source{}, err
	}
	for _, n := range v.Notes {
		m.notef("%s: %s", o.Name, n)
	}
	value := v.Value()
	if o.Kind == slo.Expression {
		// Whatever labels the expression has, the alert's own must not make two of its series one.
		value = v.Worst()
	}
	var alerts []Alert
	if o.Max != nil {
		alerts = append(alerts, m.crossed(o, promexpr.Above(value, *o.Max), "above", *o.Max, v.Signal.Unit))
	}
	if o.Min != nil {
		alerts = append(alerts, m.crossed(o, promexpr.Below(value, *o.Min), "below", *o.Min, v.Signal.Unit))
	}
	m.group(o.Name, nil, alerts...)
	m.valueScenarios(o, v.Feed, v.Scale(), o.For, alerts)
	return v.Source, nil
}

func (m maker) crossed(o slo.Objective, e promexpr.Expr, side string, bound float64, unit string) Alert {
	limit := strconv.FormatFloat(bound, 'g', -1, 64)
	value := "{{ $value | humanize }}"
	if unit == "ratio" {
		limit, value = strconv.FormatFloat(bound*100, 'g', 6, 64)+"%", "{{ $value | humanizePercentage }}"
	}
	where := ""
	if o.Kind == slo.Gauge {
		where = " at {{ $labels.instance }}"
	}
	what := o.Signal
	if what == "" {
		what = "its expression"
	}
	return m.alert(AlertThreshold, o, Ticket, e, o.For, map[string]string{"bound": side},
		fmt.Sprintf("%s: %s is %s %s", m.file.Service, o.Name, side, limit),
		fmt.Sprintf("%s is %s%s, %s %s%s. It is a reading beside the objectives that users feel, not a breach of one.", what, value, where, side, limit, lasting(o.For)))
}

func lasting(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return " for " + span(d)
}
