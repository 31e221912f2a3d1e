package rules

import (
	"fmt"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/slo"
)

// recovery makes the alert that a breach lasts longer than the objective allows: a page of this
// service that has been firing for as long.
func (m maker) recovery(o slo.Objective) error {
	firing := promexpr.Select("ALERTS",
		promexpr.Eq("alertname", AlertBurn), promexpr.Eq("alertstate", "firing"),
		promexpr.Eq(LabelService, m.file.Service), promexpr.Eq(LabelSeverity, Page))
	pages := map[string]int{}
	for _, a := range m.set.Alerts {
		if a.Rule.Alert == AlertBurn && a.Rule.Labels[LabelSeverity] == Page {
			pages[a.Objective]++
		}
	}
	if len(pages) == 0 {
		m.notef("%s: no alert: no objective before it in the file has an alert that pages, so no breach begins that could last", o.Name)
		return nil
	}
	alert := m.alert(AlertRecovery, o, Page, promexpr.Above(promexpr.CountBy(firing), 0), o.Within, nil,
		fmt.Sprintf("%s: has not recovered within %s", m.file.Service, span(o.Within)),
		fmt.Sprintf("{{ $value | humanize }} page alerts of this service have been firing for more than %s.", span(o.Within)))
	m.group(o.Name, nil, alert)
	for _, s := range m.set.Scenarios {
		n := pages[s.Objective]
		if n == 0 || !s.Broken {
			continue
		}
		s.Name, s.Objective, s.At = o.Name+": the breach goes on", o.Name, s.At+o.Within
		s.Firing = m.firing([]Alert{alert}, AlertRecovery, nil, float64(n))
		m.scenario(s)
		break
	}
	return nil
}
