package slo

import "time"

// APIVersion is the only apiVersion this release reads.
const APIVersion = "firstbreach/v1"

// Layer is where a signal is read: what the user feels, what the service says of itself, what
// the machine under it does. The layers are read in this order.
type Layer string

// The three layers.
const (
	User     Layer = "user"
	Service  Layer = "service"
	Resource Layer = "resource"
)

// Kind says how an objective is judged.
type Kind int

// The kinds of objective.
const (
	// Latency: a request is good when its value of Signal is at most Threshold.
	Latency Kind = iota
	// Success: a request is good when its outcome is ok.
	Success
	// Timeouts: a request is good unless its outcome is timeout.
	Timeouts
	// Capacity: no breach at or below MinConcurrency.
	Capacity
	// Recovery: back to the baseline within Within.
	Recovery
	// Gauge: a reading of Signal stays at or below Max (or at or above Min).
	Gauge
	// Expression: the same for the value of PromQL.
	Expression
)

// PerRequest reports whether the objective is a ratio of good requests to all requests. Only such
// objectives get a verdict per step and can be the first breach.
func (k Kind) PerRequest() bool { return k == Latency || k == Success || k == Timeouts }

// The signals that a user objective may name.
const (
	SignalTTFT     = "time_to_first_token"
	SignalDuration = "request_duration"
	SignalTPOT     = "time_per_output_token"
	SignalICL      = "inter_chunk_latency"
	SignalSuccess  = "success_ratio"
	SignalTimeouts = "timeout_ratio"
	SignalCapacity = "capacity"
	SignalRecovery = "recovery"
)

// File is one SLO file.
type File struct {
	APIVersion string
	Service    string
	Engine     string // catalogue entry for production series
	Selectors  Selectors
	Window     time.Duration // error budget period
	Owners     map[string]Owner
	Objectives []Objective // in the order of the file

	Path   string // where it was read from; "" when it was read from memory
	Source []byte // the text as read, copied into the run directory
}

// Selectors are the label matchers (label → value) that pick each source's series.
type Selectors struct {
	Engine, Host, GPU, Probe map[string]string
}

// Owner is who acts on an alert.
type Owner struct {
	Contact string
	Line    int // of the contact in the file
}

// Objective is one service level objective.
type Objective struct {
	Name   string
	Layer  Layer
	Kind   Kind
	Signal string // "" for Expression

	// Threshold is the greatest good value of a Latency objective.
	Threshold time.Duration
	// Target is the smallest good share of requests; set for per-request kinds.
	Target Target

	MinConcurrency int           // Capacity
	Within         time.Duration // Recovery
	PromQL         string        // Expression
	Max, Min       *float64      // Gauge, Expression; in the unit of the signal, ratios as 0–1
	For            time.Duration // Gauge, Expression; for production alerts

	Owner   string
	Action  string
	Runbook string

	Line int // in the file
}

// Alerts reports whether the objective becomes an alert: only with an owner and an action.
func (o Objective) Alerts() bool { return o.Owner != "" && o.Action != "" }
