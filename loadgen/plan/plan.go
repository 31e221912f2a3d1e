package plan

import (
	"time"

	"firstbreach/internal/level"
)

// APIVersion is the only apiVersion this release reads.
const APIVersion = "firstbreach/v1"

// Environment says what may be done to the target.
type Environment string

// The environments. Production needs a flag as well, and has lower caps.
const (
	Isolated   Environment = "isolated"
	Staging    Environment = "staging"
	Production Environment = "production"
)

// The dialects a target may speak.
const (
	OpenAIChat        = "openai-chat"
	OpenAICompletions = "openai-completions"
	OllamaChat        = "ollama-chat"
	OllamaGenerate    = "ollama-generate"
)

// Plan is one plan file.
type Plan struct {
	APIVersion  string
	Environment Environment
	Target      Target
	Fixed       Fixed
	Classes     []Class // the mix of requests; nil: all are alike
	Rounds      int
	Baseline    Level
	Ramp        Ramp
	Recovery    Level

	// What comes once, after the rounds.
	Soak         *Soak // nil: none
	Fluctuations []Fluctuation
	Trace        *Trace // nil: none
	Drills       []Drill
	Verification *Verification // not from a file: see Through

	Step     Step
	Cooldown time.Duration
	Timeouts Timeouts
	Stop     Stop
	Restore  Restore

	Path   string // where it was read from; "" when it was read from memory
	Source []byte // the text as read, copied into the run directory
}

// Target is the endpoint under test.
type Target struct {
	URL         string
	API         string // one of the dialects
	Model       string
	Metrics     string            // the engine's own /metrics; "" when it has none
	HostMetrics string            // an exporter on the target's host; "" when there is none
	APIKey      Secret            // sent as Authorization: Bearer
	Headers     map[string]string // further request headers, no secrets
	TLS         TLS               // for an https address
	Proxy       string            // "": those of the environment; NoProxy: none
}

// Secret names where a secret is read from; the secret itself is never in a plan.
type Secret struct {
	Env  string
	File string
}

// Fixed is what must not change between steps and rounds.
type Fixed struct {
	Prompts       Prompts
	OutputTokens  int
	IgnoreEOS     bool // have every answer go on to OutputTokens, where the engine can
	ContextLength int  // 0: the engine's own
	Temperature   float64
	Seed          int64
	Priority      *int // of a class; a plan sets it there
}

// Prompts says where the prompt bodies come from: exactly one of the three is set.
type Prompts struct {
	Synthetic *Synthetic
	File      string // JSON Lines with a "prompt" string or "messages" each
	ShareGPT  string // conversations in the form of the ShareGPT data set
}

// Synthetic describes made-up prompts.
type Synthetic struct {
	InputTokens  int      // the greatest, where they differ
	Lengths      *Lengths // nil: all have InputTokens
	SharedTokens int      // of InputTokens, as many at the beginning are the same in each prompt of a group
	SharedGroups int      // how many such beginnings there are
}

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"` // system, user or assistant
	Content string `json:"content"`
}

// Level is the load of the baseline and the recovery.
type Level struct {
	Concurrency int
}

// Arrivals says how the requests of an open loop are spread over time.
type Arrivals string

// The arrivals.
const (
	Poisson  Arrivals = "poisson"  // independently of each other, as many users are
	Constant Arrivals = "constant" // evenly apart
)

// Ramp is the ladder: of concurrencies (closed loop) or of rates (open loop).
type Ramp struct {
	Concurrency []int
	Rate        []float64 // requests that arrive in a second
	Arrivals    Arrivals  // of an open loop
	MaxInFlight int       // of an open loop: a request that is due while so many are in flight is dropped
}

// Levels are the rungs of the ladder, rising.
func (r Ramp) Levels() []level.Level { return level.Ladder(r.Concurrency, r.Rate) }

// Step bounds one step. Either Requests or Duration is set.
type Step struct {
	Requests    int           // measured requests
	MinDuration time.Duration // a step goes on measuring until then
	MaxDuration time.Duration // and never longer than this
	Duration    time.Duration // a fixed time instead of a number of requests
}

// Timeouts are the deadlines of one request; each counts on its own.
type Timeouts struct {
	Connect    time.Duration
	FirstToken time.Duration
	Idle       time.Duration
	Total      time.Duration
}

// Stop ends a step and the round's higher ones when its measured requests fare too badly. 0 turns a
// condition off.
type Stop struct {
	ErrorRatio float64       // at least this share of them failed
	TTFTP95    time.Duration // the P95 of the time to the first token of those answered is over this
	E2EP95     time.Duration // and that of their whole duration
	After      int           // looked at from so many requests on; for the latencies, so many answers
}

// Restore puts the target back; it is run on every exit. At most one of the two is set.
type Restore struct {
	Command []string
	Request *Request
	Timeout time.Duration
}

// Request is one HTTP request.
type Request struct {
	Method string
	URL    string
	Body   string
}

// Phase names a part of a round.
type Phase string

// The phases, in the order of a round.
const (
	PhaseBaseline Phase = "baseline"
	PhaseRamp     Phase = "ramp"
	PhaseRecovery Phase = "recovery"
)

// Stage is one step of one round, as it will be driven. Round and Step count from 1; a baseline and
// a recovery are step 1 of their phase.
type Stage struct {
	Phase       Phase
	Round       int
	Step        int
	Concurrency int     // 0 in an open loop
	Rate        float64 // 0 in a closed loop
}

// Level is the load of the step.
func (s Stage) Level() level.Level { return level.Level{Concurrency: s.Concurrency, Rate: s.Rate} }

// Stages expands one round: baseline, the ladder, recovery.
func (p *Plan) Stages(round int) []Stage {
	stages := []Stage{p.baselineStage(round)}
	for i, l := range p.Ramp.Levels() {
		stages = append(stages, Stage{Phase: PhaseRamp, Round: round, Step: i + 1, Concurrency: l.Concurrency, Rate: l.Rate})
	}
	return append(stages, p.recoveryStage(round))
}

func (p *Plan) baselineStage(round int) Stage {
	return Stage{Phase: PhaseBaseline, Round: round, Step: 1, Concurrency: p.Baseline.Concurrency}
}

func (p *Plan) recoveryStage(round int) Stage {
	return Stage{Phase: PhaseRecovery, Round: round, Step: 1, Concurrency: p.Recovery.Concurrency}
}
