package rules

import (
	"maps"
	"slices"
	"time"

	"firstbreach/internal/sli"
	"firstbreach/internal/slo"
)

// burnAt is when a test looks at the alerts of a ratio: one full hour is over, so that every window
// has something to go by.
const burnAt = 65 * time.Minute

// calmAt is when a test looks at traffic that must wake nobody.
const calmAt = 20 * time.Minute

func (m maker) scenario(s Scenario) { m.set.Scenarios = append(m.set.Scenarios, s) }

// ratioScenarios: good traffic and no traffic wake nobody; only bad traffic fires every pair.
func (m maker) ratioScenarios(o slo.Objective, r sli.Ratio, alerts []Alert) {
	var firing []Firing
	for _, a := range alerts {
		if a.Rule.Alert == AlertBurn {
			firing = append(firing, Firing{Alert: a, Value: 1})
		}
	}
	quiet := []string{AlertBurn}
	m.scenario(Scenario{Objective: o.Name, Name: o.Name + ": every request is good", Feed: r.Feed(), At: calmAt, Quiet: quiet})
	m.scenario(Scenario{Objective: o.Name, Name: o.Name + ": no requests", Feed: r.Feed(), Idle: true, At: calmAt, Quiet: quiet})
	m.scenario(Scenario{Objective: o.Name, Name: o.Name + ": every request is bad", Feed: r.Feed(), Broken: true, At: burnAt, Firing: firing})
}

// timeoutsAreFailures: where one source answers both, a request that timed out is no success either, so
// that what fires the one fires the other.
func (m maker) timeoutsAreFailures() {
	timeouts, success := map[string]string{}, map[string]string{} // source by objective
	for _, o := range m.file.Objectives {
		of := map[slo.Kind]map[string]string{slo.Timeouts: timeouts, slo.Success: success}[o.Kind]
		if of == nil {
			continue
		}
		if r, err := sli.NewRatio(m.file, o); err == nil {
			of[o.Name] = r.Source.Name
		}
	}
	for i := range m.set.Scenarios {
		s := &m.set.Scenarios[i]
		source, ok := timeouts[s.Objective]
		if !ok || !s.Broken {
			continue
		}
		for _, a := range m.set.Alerts {
			if a.Rule.Alert == AlertBurn && success[a.Objective] == source {
				s.Firing = append(s.Firing, Firing{Alert: a, Value: 1})
			}
		}
	}
}

// sourceScenarios: a source that is gone, that doesn't answer, or that answers without the series that
// are read from it.
func (m maker) sourceScenarios(sources []sli.Source) {
	absent := Scenario{Name: "no target at all", At: absentFor + 2*time.Minute}
	for _, s := range sources {
		of := func(name string) []Alert {
			return slices.DeleteFunc(slices.Clone(m.set.Alerts), func(a Alert) bool { return a.Source != s.Name || a.Rule.Alert != name })
		}
		labels := oneInstance()
		maps.Copy(labels, s.Matchers)
		m.scenario(Scenario{Name: s.Name + ": its target does not answer", Feed: []sli.Feed{upFeed(s, 0)}, At: downFor + 2*time.Minute,
			Firing: m.firing(of(AlertDown), AlertDown, labels, 0)})
		if lost := of(AlertUnknown); len(lost) > 0 {
			m.scenario(Scenario{Name: s.Name + ": its target answers without the series of its objectives", Feed: []sli.Feed{upFeed(s, 1)},
				At: unknownFor + 2*time.Minute, Firing: m.firing(lost, AlertUnknown, nil, 1)})
		}
		absent.Firing = append(absent.Firing, m.firing(of(AlertAbsent), AlertAbsent, s.Matchers, 1)...)
	}
	if len(absent.Firing) > 0 {
		m.scenario(absent)
	}
}

// firing are the alerts of a name, all with these labels and this value.
func (m maker) firing(alerts []Alert, name string, labels map[string]string, value float64) []Firing {
	var list []Firing
	for _, a := range alerts {
		if a.Rule.Alert == name {
			list = append(list, Firing{Alert: a, Labels: labels, Value: value})
		}
	}
	return list
}

// oneInstance is where the feeds of gauges come from.
func oneInstance() map[string]string { return map[string]string{"instance": "a:1"} }

// upFeed is the scrape of a source's one target.
func upFeed(s sli.Source, value float64) sli.Feed {
	labels := oneInstance()
	maps.Copy(labels, s.Matchers)
	return sli.Feed{Name: "up", Labels: labels, Healthy: value, Broken: value, Gauge: true}
}

// valueScenarios: at its bound a reading is still good; beyond it the alert fires when it has lasted.
func (m maker) valueScenarios(o slo.Objective, feed []sli.Feed, unit float64, wait time.Duration, alerts []Alert) {
	if len(feed) == 0 || len(alerts) != 1 {
		return
	}
	var value float64
	for _, f := range feed {
		value += f.Broken * unit
	}
	name := alerts[0].Rule.Alert
	m.scenario(Scenario{Objective: o.Name, Name: o.Name + ": at its bound", Feed: feed, At: wait + 2*time.Minute, Quiet: []string{name}})
	m.scenario(Scenario{Objective: o.Name, Name: o.Name + ": beyond its bound", Feed: feed, Broken: true, At: wait + 2*time.Minute,
		Firing: m.firing(alerts, name, oneInstance(), value)})
}
