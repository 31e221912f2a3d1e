package verdict

import "firstbreach/internal/level"

// State is the verdict on a run, a step or an objective. ok and breach are claims with a stated
// error rate; inconclusive, invalid and no_data are not weaker forms of either.
type State string

// The states.
const (
	OK           State = "ok"           // the objective held
	Breach       State = "breach"       // the objective broke
	None         State = "none"         // of a run: every step of the ladder held
	Inconclusive State = "inconclusive" // measured, but not enough to decide
	Invalid      State = "invalid"      // the measurement is void
	NoData       State = "no_data"      // nothing was measured

	Held      State = "held"      // of a capacity objective
	NotHeld   State = "not_held"  // of a capacity objective
	Undecided State = "undecided" // of a capacity objective
)

// Status is the outcome of one check of the measurement.
type Status string

// The outcomes of a check, the mildest first.
const (
	Passed     Status = "ok"
	NotChecked Status = "not_checked"
	Warn       Status = "warn"
	Failed     Status = "failed"
)

// worse orders the outcomes of a check.
func (s Status) worse(than Status) bool { return s.rank() > than.rank() }

func (s Status) rank() int {
	switch s {
	case Passed:
		return 0
	case NotChecked:
		return 1
	case Warn:
		return 2
	default:
		return 3
	}
}

// Check is one look at whether the measurement may be believed. Detail says what was found and,
// where something is wrong, what to do.
type Check struct {
	Name   string
	Status Status
	Detail string
}

// Result is the judgement of a Run.
type Result struct {
	State  State
	Reason string // why there is neither a breach nor a clean ladder; "" otherwise

	FirstBreach  *FirstBreach  // nil unless State is breach
	Search       *SearchResult // where a search chose the levels
	Steps        []StepResult  // baseline, the ladder ascending, recovery
	Capacity     []CapacityResult
	Phases       []PhaseResult // soak, fluctuations, trace and drills
	Classes      []ClassResult // where the plan has classes of requests
	Scaling      *Scaling
	TradeOffs    []TradeOff   // between neighbouring steps of the ladder
	Saturation   []Saturation // of each service and resource signal
	Recovery     *Recovery
	Attribution  *Attribution
	Verification *Verification // of the limits; nil when they were not tried
	Limits       *Limits       // admission limits; nil where no step held
	Checks       []Check       // of the whole run, for the validity box
	Notes        []string      // what a reader must know to read the verdict rightly
}

// Step returns the result of one concurrency in one phase, or nil.
func (r *Result) Step(phase string, concurrency int) *StepResult {
	return r.At(phase, level.Level{Concurrency: concurrency})
}

// At returns the result of one level in one phase, or nil.
func (r *Result) At(phase string, l level.Level) *StepResult {
	for i := range r.Steps {
		if r.Steps[i].Phase == phase && r.Steps[i].Level() == l {
			return &r.Steps[i]
		}
	}
	return nil
}

// FirstBreach is the smallest step of the ladder at which an objective broke: it lies in
// (LastOK, Concurrency], or in (LastOKRate, Rate] where the ladder is one of rates.
type FirstBreach struct {
	Concurrency    int
	Rate           float64
	LastOK         *int      // the highest step below that held; nil when none did
	LastOKRate     *float64  // likewise, of rates
	Undecided      []int     // steps below that neither held nor broke
	UndecidedRates []float64 // likewise, of rates
	Class          string    // of the requests; "" where the plan has none
	Widened        bool      // one of them lies between the last ok and the breach
	Objective      string
	Also           []string // further objectives that broke at the same step
	Bad, Total     int64
	Slow           int64
	Failed         int64
	CI             *[2]float64 // of Bad/Total

	RoundsBreached int // valid rounds with a bad share over the allowance
	Rounds         int // valid rounds

	Began  *float64 // unix seconds: start of the step in its earliest valid round
	Owner  string
	Action string

	Runbook string
}

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

// UndecidedLevels are the levels below that neither held nor broke.
func (b FirstBreach) UndecidedLevels() []level.Level {
	return level.Ladder(b.Undecided, b.UndecidedRates)
}

// CapacityResult is the verdict on a capacity objective: held when no step at or below
// MinConcurrency broke.
type CapacityResult struct {
	Name                   string
	MinConcurrency         int
	Verdict                State // held, not_held, undecided
	Reason                 string
	Owner, Action, Runbook string
}

// StepResult is the verdict on one level in one phase, over its rounds.
type StepResult struct {
	Phase       string
	Concurrency int     // 0 in an open loop
	Rate        float64 // 0 in a closed loop
	Class       string  // of the requests; "" where the plan has no classes
	Verdict     State
	Reasons     []string // why the verdict is not ok or breach

	Rounds      []RoundResult // in order
	ValidRounds int
	Objectives  []ObjectiveResult // the per-request objectives, in the order of the SLO file
	Gauges      []GaugeResult     // the gauge and expression objectives
	Measured    Measured          // over the valid rounds
	Readings    map[string]Reading
	Began       *float64 // unix seconds: earliest start of a valid round, or of any
}

// Level is the load of the step.
func (s StepResult) Level() level.Level {
	return level.Level{Concurrency: s.Concurrency, Rate: s.Rate}
}

// Objective returns the result of one objective, or nil.
func (s *StepResult) Objective(name string) *ObjectiveResult {
	for i := range s.Objectives {
		if s.Objectives[i].Name == name {
			return &s.Objectives[i]
		}
	}
	return nil
}

// RoundResult is what one round of a step was worth.
type RoundResult struct {
	Round, Step int
	Valid       bool
	Checks      []Check
	Stopped     string   // the stop condition that cut it
	Occupancy   *float64 // requests in the system by Little's law; compare with the concurrency
	InFlight    *float64 // mean number of requests in flight
	BackingOff  *float64 // mean number of slots that backed off from fast failures; nil: none did
	Measured    Measured // of this round
	Latency     RoundLatency
}

// Void returns the details of the checks that failed.
func (r RoundResult) Void() []string {
	var why []string
	for _, c := range r.Checks {
		if c.Status == Failed {
			why = append(why, c.Detail)
		}
	}
	return why
}

// RoundLatency is the latency of one round alone.
type RoundLatency struct{ TTFT, E2E, TPOT Quantiles }

// Measured are the plain numbers of a measure window. Rates are per second of it, and count ok
// requests only: a fast refusal must not look like throughput.
type Measured struct {
	Requests int64 // every outcome but aborted
	OK       int64
	Aborted  int64
	Outcomes map[string]int64
	Timeouts map[string]int64
	Seconds  float64 // length of the measure windows together

	RequestsPerSecond     *float64
	OutputTokensPerSecond *float64
	GoodputPerSecond      *float64
	SuccessRatio          *float64
}

// ObjectiveResult is the verdict on one per-request objective in one step.
type ObjectiveResult struct {
	Name    string
	Verdict State
	Reason  string // why it is not ok or breach

	Good, Total, Slow, Failed, Undefined int64

	Share     *float64    // bad/total
	CI        *[2]float64 // two-sided 95 % Clopper–Pearson interval of Share, on EffectiveN
	Allowance float64     // 1 − target: the greatest share that keeps the objective

	Dispersion float64 // φ ≥ 1: how much more the rounds differ than chance alone makes them
	EffectiveN float64 // Total/φ
	POK        *float64
	PBreach    *float64
	PBreachAdj *float64 // after Holm's correction over the objectives of the step

	Rounds     []RoundCount // valid rounds that counted a request
	RoundsOver int          // of them, over the allowance
	// Needed is how many further requests a decision needs if the share stays what it is; 0 when
	// it is decided, nil when more requests alone will not decide it.
	Needed      *int64
	Isotonic    *float64 // fitted share that never falls as the concurrency rises; for the eye only
	NonMonotone bool     // a higher step held: the breach was taken back
}

// Bad is the number of requests that missed the objective.
func (o ObjectiveResult) Bad() int64 { return o.Slow + o.Failed }

// RoundCount is one round's count.
type RoundCount struct {
	Round      int
	Bad, Total int64
	Over       bool // Bad/Total is over the allowance
}

// GaugeResult says whether a service or resource reading crossed its limit in a step. It stands
// beside the verdict and never makes it.
type GaugeResult struct {
	Name, Layer, Signal string
	Crossed             *bool // nil: no data
	RoundsCrossed       int
	Rounds              int // valid rounds with samples
	Missing             string
}
