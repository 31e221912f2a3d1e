package verdict

import "firstbreach/internal/level"

// Run is everything the analysis knows of one run; package query fills it. Times are unix
// seconds, durations seconds, ratios 0–1. A nil pointer is a value that isn't there, and Missing
// says why.
type Run struct {
	ID         string
	Service    string
	Objectives []Objective // every objective of the SLO file, in its order
	Ladder     []int       // concurrencies of the ramp as planned; empty when unknown, or of rates
	Rates      []float64   // rates of the ramp as planned, of an open loop
	Classes    []Class     // of a mix of requests, as planned; nil where all are alike
	Rounds     int         // rounds planned; 0 when unknown
	Search     *Search     // how the levels were chosen, where a search did; nil: they were planned
	State      string      // of the manifest: running, complete, interrupted; "" without one
	Reason     string      // the manifest's reason for that state
	Manifest   bool        // whether a manifest was there to check against
	Steps      []Step      // every step of every round, in order of start

	ScrapeInterval float64  // seconds, median over the run; 0 when unknown
	ClockSkew      *float64 // Prometheus's time() less ours at the query, seconds
	Warnings       []string // of the queries, verbatim, sorted
	OtherSLO       string   // says which SLO file was used where it is not the run's own; "" where it is
	Conditions     map[string]string
	// ConditionsChanged names, in words, each condition that differed between rounds: another
	// engine version, a restart of the target. It voids the run.
	ConditionsChanged []string

	Latency  []StepLatency // pooled over all rounds of a phase and concurrency
	Timeline []Series      // for the picture of the run
	Signals  []Series      // every service and resource signal that is there, sample by sample
}

// StepLatency is the latency of one level in one phase, over all rounds.
type StepLatency struct {
	Phase           string
	Concurrency     int     // 0 in an open loop
	Rate            float64 // 0 in a closed loop
	Class           string
	TTFT, E2E, TPOT Quantiles
}

// Series is one signal over the run, at the times of the scrapes.
type Series struct {
	Signal, Layer, Unit string
	Points              []Point
}

// Point is one sample of a Series.
type Point struct {
	T float64 // unix seconds
	V float64
}

// Objective is what the judge needs of one objective.
type Objective struct {
	Name                   string
	Layer                  string
	Kind                   string // latency, success, timeouts, capacity, recovery, gauge, expression
	Signal                 string
	Threshold              float64  // latency: seconds
	Target                 string   // decimal share of good requests as text, "0.95"; per-request kinds only
	TargetText             string   // as written: "95%"
	Min, Max               *float64 // gauge, expression
	MinConcurrency         int
	Within                 float64 // seconds
	Owner, Action, Runbook string
}

// Step is one step of one round.
type Step struct {
	Phase                              string // baseline, ramp, recovery
	Round, Step                        int
	Concurrency                        int      // 0 in an open loop
	Rate                               float64  // requests due in a second; 0 in a closed loop
	Class                              string   // of the requests; "" where the plan has no classes
	Start, MeasureFrom, MeasureTo, End *float64 // from the step-edge series

	Name   string       // of a drill, or a trace
	Trace  *Trace       // of the replay of one
	Load   *level.Curve // how a fluctuating load goes; nil where it is held
	Events []Event      // what was done to the target

	// Mix is the step over all classes of requests, as far as the load is checked by it; nil where the
	// plan has none.
	Mix *Step

	Unscraped bool
	Stopped   string   // what cut it short: "error_ratio: …", "ttft_p95: …" or "e2e_p95: …" for the stop rule, "interrupted"
	Limited   []string // reasons for client_limited

	Outcomes map[string]int64 // measured requests by outcome, from PromQL
	Timeouts map[string]int64 // by kind
	Good     int64            // met every user objective at once
	Counts   map[string]Count // by name of a per-request objective

	Refusals *Refusals // of a verification: how long refusals took

	// Progress are the counts at each scrape, of every step but those of the baseline.
	Progress []Progress

	// ManifestDiffers names each total in which the manifest and PromQL differ; empty when they
	// agree or there is no manifest.
	ManifestDiffers []string
	// Incomplete says which counts of the step contradict each other, because samples are missing.
	Incomplete       []string
	Resets           int     // counter resets seen in the step's series
	Scrapes          int     // scrapes that hold the step, between Start and End
	ScrapesExpected  int     // by the scrape interval
	InFlightSeconds  float64 // integral over the measure window
	MostInFlight     int     // at any scrape of the measure window
	BackoffSeconds   float64 // integral over the measure window of slots that backed off from fast failures
	OccupancySeconds float64 // sum over measured requests, sent → connection free

	OutputTokens, PromptTokens, CachedPromptTokens int64
	SumTTFT, SumE2E, SumTPOT                       float64 // seconds, over ok requests; for means
	CountTPOT                                      int64

	TTFT, E2E, TPOT Quantiles // of this round alone

	Readings map[string]Reading // service and resource signals by catalogue name
}

// Trace is what of a trace was replayed.
type Trace struct {
	Rate, Busiest             float64 // requests due in a second: the mean, and over the busiest ten seconds
	InputTokens, OutputTokens float64 // on average
}

// Event is something that was done to the target during a step: a drill, or what undid it.
type Event struct {
	Event    string  // drill, restore
	From, To float64 // unix seconds
	Error    string  // why it failed
}

// Progress are the counts of a step as they stood at one scrape.
type Progress struct {
	T      float64          // unix seconds
	Counts map[string]Count // by name of a per-request objective
}

// Level is the load of the step.
func (s Step) Level() level.Level { return level.Level{Concurrency: s.Concurrency, Rate: s.Rate} }

// Level is the load of the step.
func (s StepLatency) Level() level.Level {
	return level.Level{Concurrency: s.Concurrency, Rate: s.Rate}
}

// Count is one per-request objective's count in a step: bad = Slow + Failed, of Total.
type Count struct {
	Total     int64 // requests that count
	Slow      int64 // ok, but over the threshold
	Failed    int64
	Late      int64  // of Slow: within the threshold if the chunks came as early as they can have; the client read too late to tell
	Undefined int64  // ok, but without a value: in none of the above
	Missing   string // why there is no count, naming the setting to change; "" when there is one
}

// Reading is what a gauge or rate did during one step's measure window.
type Reading struct {
	Layer   string
	Unit    string // ratio, bytes, requests, seconds, watts, per_second …
	Mean    *float64
	Max     *float64
	Over    int // samples over the objective's max (or under its min)
	Samples int
	Missing string // no_data and why
}

// Quantiles are a latency's quantiles over measured ok requests, for people to read: no
// verdict uses them. Seconds; nil where undefined.
type Quantiles struct {
	P50, P95, P99 *float64
}
