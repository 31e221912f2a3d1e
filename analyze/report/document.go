package report

import (
	"time"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// Schema is the schema number of report.json. It goes up when a key changes its meaning or goes
// away; new keys may come at any time.
const Schema = 1

// Meta is what a report says that is neither in the run nor in its judgement.
type Meta struct {
	Version string // of firstbreach
	Queries []Query
	SLO     string // the SLO file as used
	Plan    string // the plan as used
}

// Query is one query that numbers of the report come from.
type Query struct {
	Name     string     `json:"name"` // what was asked for, in words
	Kind     string     `json:"kind"` // instant, range, label_values
	Expr     string     `json:"expr"`
	At       *time.Time `json:"at,omitempty"` // evaluation time of an instant query
	From     *time.Time `json:"from,omitempty"`
	To       *time.Time `json:"to,omitempty"`
	StepS    float64    `json:"step_s,omitempty"`
	Lookback float64    `json:"lookback_s,omitempty"` // how long a sample counted; absent: as the server is set
	Series   int        `json:"series"`
	Samples  int        `json:"samples"`
	Warnings []string   `json:"warnings,omitempty"`
	Error    string     `json:"error,omitempty"`
}

// Document is report.json. Durations are in seconds, ratios 0–1, times RFC 3339 in UTC. A null
// stands beside a reason.
type Document struct {
	Schema      int               `json:"schema"`
	Version     string            `json:"version"`
	Run         string            `json:"run"`
	Service     string            `json:"service"`
	State       verdict.State     `json:"state"` // breach, none, inconclusive, invalid, no_data
	Reason      string            `json:"reason"`
	Lines       []string          `json:"headline"` // three lines
	FirstBreach *FirstBreach      `json:"first_breach"`
	DoNow       []string          `json:"do_now"`
	Objectives  []Objective       `json:"objectives"`
	Steps       []Step            `json:"steps"`
	Capacity    []Capacity        `json:"capacity"`
	Classes     []Class           `json:"classes,omitempty"` // a verdict for each class of requests
	Phases      []Phase           `json:"phases,omitempty"`  // soak, fluctuations, trace, drills
	Search      *Search           `json:"search,omitempty"`  // where a search chose the levels
	Recovery    *Recovery         `json:"recovery"`
	Saturation  []Saturation      `json:"saturation"`
	Knee        *Knee             `json:"knee"`
	TradeOffs   []TradeOff        `json:"trade_offs"`
	Attribution *Attribution      `json:"attribution"`
	Limits      *Limits           `json:"limits"`
	Verified    *Verified         `json:"limits_verified"` // null: not tried
	Validity    []Check           `json:"validity"`
	Notes       []string          `json:"notes"`
	Claim       []string          `json:"claim_limits"`
	Conditions  map[string]string `json:"conditions"`
	RunState    string            `json:"run_state"` // complete, interrupted, running; "" without a manifest
	Rounds      int               `json:"rounds_planned"`
	Ladder      []int             `json:"ladder"`
	Rates       []float64         `json:"rates,omitempty"` // of a ladder of rates
	From        *time.Time        `json:"from"`            // start of the first step
	To          *time.Time        `json:"to"`              // end of the last one
	ScrapeS     *float64          `json:"scrape_interval"`
	Queries     []Query           `json:"queries"`

	run  verdict.Run
	res  verdict.Result
	meta Meta
}

// FirstBreach is where the first objective broke: in (last_ok, concurrency], or in (last_ok_rate,
// rate] where the ladder is one of rates.
type FirstBreach struct {
	Concurrency    int         `json:"concurrency"` // 0 where the ladder is one of rates
	Rate           float64     `json:"rate,omitempty"`
	LastOK         *int        `json:"last_ok"`
	LastOKRate     *float64    `json:"last_ok_rate,omitempty"`
	Undecided      []int       `json:"undecided"` // lower steps that neither held nor broke
	UndecidedRates []float64   `json:"undecided_rates,omitempty"`
	Class          string      `json:"class,omitempty"` // of the requests
	Objective      string      `json:"objective"`
	Also           []string    `json:"also"` // further objectives that broke at the same step
	Bad            int64       `json:"bad"`
	Total          int64       `json:"total"`
	Slow           int64       `json:"slow"`
	Failed         int64       `json:"failed"`
	CI             *[2]float64 `json:"ci"`
	RoundsBreached int         `json:"rounds_breached"`
	Rounds         int         `json:"rounds"`
	Onset          *Window     `json:"onset"`       // of the objective, in the first round that shows it
	FirstLayer     string      `json:"first_layer"` // "": undetermined
	Began          *time.Time  `json:"began"`       // start of that step in its earliest valid round
	Beside         []Beside    `json:"beside"`
	Owner          string      `json:"owner"`
	Action         string      `json:"action"`
	Runbook        string      `json:"runbook,omitempty"`
}

// Beside is a service or resource reading at the step of the breach: a clue, not a cause.
type Beside struct {
	Signal  string   `json:"signal"`
	Layer   string   `json:"layer"`
	Unit    string   `json:"unit"`
	Mean    *float64 `json:"mean"`
	Max     *float64 `json:"max"`
	Before  *float64 `json:"before"`  // mean at the last step that held, else at the baseline
	Crossed []string `json:"crossed"` // objectives on it that were crossed
}

// Objective is one objective of the SLO file.
type Objective struct {
	Name           string   `json:"name"`
	Layer          string   `json:"layer"`
	Kind           string   `json:"kind"`
	Signal         string   `json:"signal,omitempty"`
	Threshold      *float64 `json:"threshold"`
	Target         string   `json:"target,omitempty"` // decimal text
	Max            *float64 `json:"max"`
	Min            *float64 `json:"min"`
	MinConcurrency int      `json:"min_concurrency,omitempty"`
	Within         float64  `json:"within,omitempty"`
	Owner          string   `json:"owner,omitempty"`
	Action         string   `json:"action,omitempty"`
	Runbook        string   `json:"runbook,omitempty"`
	Text           string   `json:"text"` // in words
}

// Step is one level in one phase, over its valid rounds.
type Step struct {
	Phase          string             `json:"phase"`
	Concurrency    int                `json:"concurrency"`     // 0 in an open loop
	Rate           float64            `json:"rate,omitempty"`  // requests due in a second, of an open loop
	Class          string             `json:"class,omitempty"` // of the requests, where the plan has classes
	Verdict        verdict.State      `json:"verdict"`
	Valid          bool               `json:"valid"` // at least one round counts
	Reasons        []string           `json:"reasons"`
	Rounds         []Round            `json:"rounds"`
	RoundsValid    int                `json:"rounds_valid"`
	Began          *time.Time         `json:"began"`
	Objectives     []ObjectiveResult  `json:"objectives"`
	Gauges         []Gauge            `json:"gauges"`
	Requests       int64              `json:"requests"` // measured, without aborted
	Outcomes       map[string]int64   `json:"outcomes"`
	Timeouts       map[string]int64   `json:"timeouts"` // by kind
	Latency        Latency            `json:"latency"`
	Throughput     Throughput         `json:"throughput"`
	Success        *float64           `json:"success_ratio"`
	Queue          *Reading           `json:"queue"`     // requests waiting, as the engine says
	ServiceSignals map[string]Reading `json:"service"`   // service readings by signal
	Resources      map[string]Reading `json:"resources"` // resource readings by signal
}

// Level is the load of the step.
func (s Step) Level() level.Level { return level.Level{Concurrency: s.Concurrency, Rate: s.Rate} }

// Level is the load at which it broke.
func (b FirstBreach) Level() level.Level {
	return level.Level{Concurrency: b.Concurrency, Rate: b.Rate}
}

// LastOKLevel is the highest level below that held; ok is false when none did.
func (b FirstBreach) LastOKLevel() (l level.Level, ok bool) {
	switch {
	case b.LastOK != nil:
		return level.Level{Concurrency: *b.LastOK}, true
	case b.LastOKRate != nil:
		return level.Level{Rate: *b.LastOKRate}, true
	}
	return level.Level{}, false
}

// undecided are the levels below that neither held nor broke.
func (b FirstBreach) undecided() []level.Level { return level.Ladder(b.Undecided, b.UndecidedRates) }

// Round is one round of a step.
type Round struct {
	Round      int        `json:"round"`
	Step       int        `json:"step"`
	Valid      bool       `json:"valid"`
	Void       []string   `json:"void"` // why not
	Checks     []Check    `json:"checks"`
	Stopped    string     `json:"stopped,omitempty"`
	Requests   int64      `json:"requests"`
	InFlight   *float64   `json:"in_flight"`             // mean
	BackingOff *float64   `json:"backing_off,omitempty"` // mean number of slots that waited because their requests failed fast
	Occupancy  *float64   `json:"occupancy"`             // by Little's law
	Latency    Latency    `json:"latency"`
	Throughput Throughput `json:"throughput"`
	Success    *float64   `json:"success_ratio"`
}

// Latency holds quantiles of ok requests, for people to read.
type Latency struct {
	TTFT   Quantiles `json:"ttft"`
	E2E    Quantiles `json:"e2e"`
	TPOT   Quantiles `json:"tpot"`
	Reason string    `json:"reason,omitempty"` // for what is null, or what is counted in
}

// Quantiles are in seconds.
type Quantiles struct {
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
}

// Throughput counts ok requests per second of the measure window.
type Throughput struct {
	Requests *float64 `json:"requests_per_second"`
	Tokens   *float64 `json:"output_tokens_per_second"`
	Goodput  *float64 `json:"goodput_per_second"`
}

// ObjectiveResult is the verdict on one objective in one step.
type ObjectiveResult struct {
	Name        string        `json:"name"`
	Verdict     verdict.State `json:"verdict"`
	Reason      string        `json:"reason,omitempty"`
	Good        int64         `json:"good"`
	Total       int64         `json:"total"`
	Bad         int64         `json:"bad"`
	Slow        int64         `json:"slow"`
	Failed      int64         `json:"failed"`
	Undefined   int64         `json:"undefined"` // ok requests without a value, in none of the others
	Share       *float64      `json:"share"`     // bad/total
	CI          *[2]float64   `json:"ci"`        // of share
	Allowance   float64       `json:"allowance"`
	Dispersion  float64       `json:"dispersion"`
	EffectiveN  float64       `json:"effective_n"`
	POK         *float64      `json:"p_ok"`
	PBreach     *float64      `json:"p_breach"`
	PBreachHolm *float64      `json:"p_breach_holm"`
	RoundsOver  int           `json:"rounds_over"`
	PerRound    []RoundCount  `json:"per_round"`
	Needed      *int64        `json:"needed"` // null: more requests alone don't decide
	Isotonic    *float64      `json:"isotonic"`
	NonMonotone bool          `json:"non_monotone"`
}

// RoundCount is one round's count.
type RoundCount struct {
	Round int   `json:"round"`
	Bad   int64 `json:"bad"`
	Total int64 `json:"total"`
	Over  bool  `json:"over"`
}

// Gauge says whether a gauge or expression objective was crossed in a step.
type Gauge struct {
	Name          string `json:"name"`
	Crossed       *bool  `json:"crossed"`
	RoundsCrossed int    `json:"rounds_crossed"`
	Rounds        int    `json:"rounds"`
	Reason        string `json:"reason,omitempty"`
}

// Reading is what a signal did in the measure windows of a step.
type Reading struct {
	Unit    string   `json:"unit"`
	Mean    *float64 `json:"mean"`
	Max     *float64 `json:"max"`
	Samples int      `json:"samples"`
	Reason  string   `json:"reason,omitempty"`
}

// Capacity is the verdict on a capacity objective.
type Capacity struct {
	Name           string        `json:"name"`
	MinConcurrency int           `json:"min_concurrency"`
	Verdict        verdict.State `json:"verdict"` // held, not_held, undecided
	Reason         string        `json:"reason"`
	Owner          string        `json:"owner,omitempty"`
	Action         string        `json:"action,omitempty"`
}

// Recovery puts the baseline beside the recovery, and says whether the two are the same.
type Recovery struct {
	State      verdict.State       `json:"state"` // recovered, degraded, inconclusive, not_measured
	Reason     string              `json:"reason,omitempty"`
	Time       *[2]*float64        `json:"time_to_recover"` // [from, to] in seconds after the load; to is null when it was not back in time
	Measures   []RecoveryMeasure   `json:"measures"`
	Held       []string            `json:"held"`
	Objectives []RecoveryObjective `json:"objectives"`
	Baseline   *Step               `json:"baseline"` // null: not measured
	After      *Step               `json:"recovery"`
}

// Check is one look at whether the measurement may be believed.
type Check struct {
	Name   string         `json:"name"`
	Status verdict.Status `json:"status"` // ok, warn, failed, not_checked
	Detail string         `json:"detail"`
}
