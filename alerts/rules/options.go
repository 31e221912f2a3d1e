package rules

import (
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"

	"firstbreach/internal/capacity"
	"firstbreach/internal/sli"
)

// Options are what the rules link to.
type Options struct {
	DashboardURL string         // of the Grafana, without a path; "" leaves the link out
	ReportURL    string         // of the scheduled reports, without a path; "" leaves the link out
	Capacity     *capacity.File // what a load test showed to hold; nil when none has been run
}

// Set is everything made of one SLO file.
type Set struct {
	Service string
	Groups  []rulefmt.RuleGroup
	// Notes say, in the order of the file, what a reader of the rules should know: where production
	// differs from a load test, which windows were left out and why.
	Notes     []string
	Alerts    []Alert
	Scenarios []Scenario
}

// Scenario is a stretch of time of which it is known what must fire: what a rule test plays.
type Scenario struct {
	Name      string
	Objective string // "" for one of a target
	Feed      []sli.Feed
	Broken    bool          // the feed's broken values rather than its healthy ones
	Idle      bool          // the feed's series are there and stand still
	At        time.Duration // after the beginning
	Quiet     []string      // names of alerts that must not fire
	Firing    []Firing
}

// Firing is one alert that must fire, with the labels that its series have and its value.
type Firing struct {
	Alert  Alert
	Labels map[string]string
	Value  float64
}

// Alert is one alerting rule with what a test and a route need to know of it.
type Alert struct {
	Rule      rulefmt.Rule
	Objective string // "" for one that watches a target
	Source    string // where it is read from: engine, host, gpu, probe; "" for expressions and recovery
}
