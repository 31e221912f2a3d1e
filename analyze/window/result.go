package window

import (
	"time"

	"firstbreach/analyze/query"
)

// State is what is concluded of an objective or of the whole window.
type State string

// The states. NoData is neither good nor bad: nobody asked anything, or nobody looked.
const (
	OK        State = "ok"
	Breach    State = "breach"
	Undecided State = "undecided"
	NoData    State = "no_data"
)

// Result is a window as it was judged. The same series give the same Result.
type Result struct {
	Service     string      `json:"service"`
	Engine      string      `json:"engine"`
	SLO         string      `json:"slo"` // path of the SLO file
	From        time.Time   `json:"from"`
	To          time.Time   `json:"to"`
	ResolutionS float64     `json:"resolution_s"`
	PeriodS     float64     `json:"budget_period_s"`
	Bins        int         `json:"bins"`
	GapBins     int         `json:"gap_bins"` // bins in which nothing was scraped
	Verdict     State       `json:"verdict"`  // of the per-request objectives together
	Objectives  []Objective `json:"objectives"`
	Gauges      []Gauge     `json:"gauges,omitempty"`
	Skipped     []Skipped   `json:"skipped,omitempty"`
	Layers      []Layer     `json:"layers"` // which layers could be looked at
	Limits      []string    `json:"limits"` // what can't be concluded
	Log         query.Log   `json:"log"`
}

// Objective is a per-request objective over the window. Shares are of all requests, 0–1.
type Objective struct {
	Name      string      `json:"name"`
	Signal    string      `json:"signal"`
	Text      string      `json:"text"` // what is asked, in words
	Target    float64     `json:"target"`
	State     State       `json:"state"`
	Reason    string      `json:"reason,omitempty"`
	Requests  int64       `json:"requests"`
	Bad       int64       `json:"bad"`
	Good      *float64    `json:"good_ratio,omitempty"`
	Interval  *[2]float64 `json:"good_interval_95,omitempty"` // Clopper and Pearson's
	BurnRate  *float64    `json:"burn_rate,omitempty"`        // 1 spends the budget in exactly its period
	Spent     *float64    `json:"budget_spent,omitempty"`     // of the whole period's budget, at this window's traffic
	GapBins   int         `json:"gap_bins"`
	IdleBins  int         `json:"idle_bins"`
	Breaches  []Incident  `json:"breaches,omitempty"`
	InFlight  *InFlight   `json:"in_flight,omitempty"`
	Owner     string      `json:"owner,omitempty"`
	Contact   string      `json:"contact,omitempty"`
	Action    string      `json:"action,omitempty"`
	Runbook   string      `json:"runbook,omitempty"`
	Source    string      `json:"source"` // engine or probe
	Histogram string      `json:"histogram,omitempty"`
	Notes     []string    `json:"notes,omitempty"`
}

// Incident is a stretch in which an objective was broken beyond chance.
type Incident struct {
	Onset    [2]time.Time  `json:"onset"` // between these
	Before   bool          `json:"began_before_window,omitempty"`
	End      *[2]time.Time `json:"end,omitempty"` // none: it was on when the window ended
	Requests int64         `json:"requests"`
	Bad      int64         `json:"bad"`
	Layer    string        `json:"first_layer,omitempty"`
	Sure     string        `json:"certainty"` // consistent or undetermined
	Text     string        `json:"text"`
	Turned   []Turned      `json:"turned,omitempty"`
}

// Turned is a signal that left its normal range around an incident.
type Turned struct {
	Signal string       `json:"signal"`
	Layer  string       `json:"layer"`
	Unit   string       `json:"unit"`
	Onset  [2]time.Time `json:"onset"`
	Normal float64      `json:"normal"` // median before
}

// Gauge is an objective on a service or resource signal, as its samples show it.
type Gauge struct {
	Name     string     `json:"name"`
	Layer    string     `json:"layer"`
	Bound    string     `json:"bound"`
	State    State      `json:"state"`
	Reason   string     `json:"reason,omitempty"`
	Worst    *float64   `json:"worst,omitempty"`
	Over     int        `json:"bins_over"`
	LongestS float64    `json:"longest_s"` // the longest stretch over the bound, seconds
	Since    *time.Time `json:"first_over,omitempty"`
	Owner    string     `json:"owner,omitempty"`
	Action   string     `json:"action,omitempty"`
}

// Skipped is an objective that a window can't answer.
type Skipped struct{ Name, Reason string }

// Layer says whether a layer could be looked at.
type Layer struct {
	Name    string   `json:"name"`
	Signals []string `json:"signals,omitempty"`
	Reason  string   `json:"reason,omitempty"` // why there are none
}

// InFlight is an objective by the number of requests in flight.
type InFlight struct {
	Concluded bool    `json:"concluded"`
	Text      string  `json:"text"`
	Broke     float64 `json:"broke_up_to,omitempty"` // upper end of the lowest level that broke
	Held      float64 `json:"held_up_to,omitempty"`  // upper end of the highest level below it that held
	Levels    []Level `json:"levels,omitempty"`
}

// Level is the requests that finished while between Over (exclusive) and UpTo were in flight.
type Level struct {
	Over      float64 `json:"over"`
	UpTo      float64 `json:"up_to"`
	Bins      int     `json:"bins"`
	Requests  int64   `json:"requests"`
	Bad       int64   `json:"bad"`
	State     State   `json:"state"`
	Incidents int     `json:"stretches_over"` // separate stretches over the allowance
}
