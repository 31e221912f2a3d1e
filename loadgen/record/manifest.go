package record

import (
	"time"

	"firstbreach/internal/level"
)

// The files of a run directory.
const (
	PlanFile     = "plan.yaml"
	SLOFile      = "slo.yaml"
	LedgerFile   = "ledger.jsonl"
	ManifestFile = "manifest.json"
	StoreDir     = "prometheus"
	Calibration  = "calibration.json" // the client's own error, where it was measured for this run
	ReportJSON   = "report.json"
	ReportMD     = "report.md"
	ReportHTML   = "report.html"
	ReportJUnit  = "junit.xml"
)

// ManifestSchema is the schema number written to new manifests.
const ManifestSchema = 1

// State is how far a run got.
type State string

// The states of a run.
const (
	Running     State = "running"
	Complete    State = "complete"
	Interrupted State = "interrupted"
)

// Manifest describes one run: its conditions, its steps and their totals. It is written
// atomically at every step edge, so that a killed run still has one.
type Manifest struct {
	Schema     int               `json:"schema"`
	Run        string            `json:"run"`
	State      State             `json:"state"`
	Reason     string            `json:"reason,omitempty"` // why it was interrupted, or a round stopped early
	StartedAt  time.Time         `json:"started_at"`
	EndedAt    *time.Time        `json:"ended_at"`
	Version    string            `json:"version"` // of firstbreach
	PlanSHA256 string            `json:"plan_sha256"`
	SLOSHA256  string            `json:"slo_sha256"`
	Prompts    string            `json:"prompts_sha256"` // over the prompt bodies without their nonces
	Conditions map[string]string `json:"conditions"`     // model, api, url (no credentials), engine, versions, host …
	// Changed names, in words, each condition that was another one before a later round.
	Changed  []string        `json:"conditions_changed,omitempty"`
	Rounds   int             `json:"rounds"`             // planned; appended rounds included
	Ladder   []int           `json:"ladder"`             // concurrencies of the ramp; empty in an open loop
	Rates    []float64       `json:"rates,omitempty"`    // rates of the ramp, in requests per second; only in an open loop
	Arrivals string          `json:"arrivals,omitempty"` // poisson or constant; only in an open loop
	Classes  []ManifestClass `json:"classes,omitempty"`  // the mix of requests, where the plan has one
	Search   *Search         `json:"search,omitempty"`   // only where a search chose the levels: Ladder are those it has measured
	Steps    []ManifestStep  `json:"steps"`              // in the order in which they began
	// FinalScrape says whether every live step's final values were seen to be scraped.
	FinalScrape string `json:"final_scrape,omitempty"` // "confirmed", "not_confirmed: …"
	// Restore says how putting the target back went: "done", or what failed; "" where there is none.
	Restore string `json:"restore,omitempty"`
}

// Search is what was declared before a search for the exact first breach, and how far it got.
type Search struct {
	Min      int     `json:"min"` // concurrencies
	Max      int     `json:"max"`
	Looks    int     `json:"looks"`    // at most, at one level
	Requests int64   `json:"requests"` // budget, warm-up and drain included; 0: none
	Seconds  float64 `json:"seconds"`  // budget; 0: none
	Sent     int64   `json:"sent"`     // requests, warm-up and drain included
	Took     float64 `json:"took_s"`
	Ended    string  `json:"ended"` // why, in words; "" while it goes on
}

// ManifestStep is one step of one round.
type ManifestStep struct {
	Phase       string            `json:"phase"` // baseline, ramp, recovery, and soak, fluctuation, drill, verify, confirm
	Round       int               `json:"round"`
	Step        int               `json:"step"`
	Concurrency int               `json:"concurrency"`     // 0 in an open loop
	Rate        float64           `json:"rate,omitempty"`  // requests per second; only in an open loop
	Class       string            `json:"class,omitempty"` // of the requests; only where the plan has classes
	Shard       string            `json:"shard,omitempty"` // of the load generators; only where there are several
	Name        string            `json:"name,omitempty"`  // of a drill, or a trace
	Load        *level.Curve      `json:"load,omitempty"`  // how a fluctuating load goes
	Trace       *Replay           `json:"trace,omitempty"` // what of a trace is replayed
	Events      []Event           `json:"events,omitempty"`
	StartedAt   time.Time         `json:"started_at"`
	MeasureFrom *time.Time        `json:"measure_from"`              // first measured request sent
	MeasureTo   *time.Time        `json:"measure_to"`                // no measured request was sent from here on
	EndedAt     *time.Time        `json:"ended_at"`                  // last request of the step done
	Unscraped   bool              `json:"unscraped"`                 // dropped from the page before every scraper had its final values twice
	Stopped     string            `json:"stopped,omitempty"`         // the stop condition or deadline that cut it, or "interrupted"
	Limited     []string          `json:"client_limited,omitempty"`  // reasons for which the client itself was the bottleneck
	Warnings    []string          `json:"client_warnings,omitempty"` // of the client about itself; they void nothing
	Totals      map[string]Totals `json:"totals"`                    // by window: warmup, measure, drain
}

// Level is the load of the step.
func (s ManifestStep) Level() level.Level {
	return level.Level{Concurrency: s.Concurrency, Rate: s.Rate}
}

// ManifestClass is one class of the mix of requests.
type ManifestClass struct {
	Name        string   `json:"name"`
	Weight      int      `json:"weight"`
	Priority    *int     `json:"priority,omitempty"`
	MaxInFlight int      `json:"max_in_flight,omitempty"`
	Objectives  []string `json:"objectives,omitempty"` // that it is held to; left out: all
}

// Replay is what of a trace is replayed.
type Replay struct {
	Format       string  `json:"format"`
	SHA256       string  `json:"sha256"` // over times and lengths, as they are replayed
	Speed        float64 `json:"speed"`
	Requests     int     `json:"requests"`
	Duration     float64 `json:"duration_s"`
	Rate         float64 `json:"rate"`          // the mean, in requests per second
	Busiest      float64 `json:"busiest_rate"`  // over the ten seconds in which most are due
	InputTokens  float64 `json:"input_tokens"`  // on average
	OutputTokens float64 `json:"output_tokens"` // on average, as they are asked for
	Cut          int     `json:"cut"`           // requests that were made shorter than in the file
	OutputLength string  `json:"output_length"` // whether answers are held to their length
}

// Event is something that was done to the target during a step.
type Event struct {
	Event     string    `json:"event"` // drill, restore
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	Error     string    `json:"error,omitempty"` // why it failed
}

// Totals are the counts of one window of a step. They equal the counters on the metrics page and
// the lines of the ledger.
type Totals struct {
	Outcomes     map[string]int `json:"outcomes"` // every outcome, zeros included
	Timeouts     map[string]int `json:"timeouts"` // every kind
	Good         int            `json:"good"`
	OutputTokens int            `json:"output_tokens"`
	PromptTokens int            `json:"prompt_tokens"`
	// LateReads counts, by latency objective, the values that met the threshold at the earliest
	// possible arrival and not at the latest; objectives without any are left out.
	LateReads map[string]int `json:"late_reads,omitempty"`
	// Backoff is for how long slots of a closed loop waited in this window of the step's clock because
	// their requests failed fast; slot-seconds.
	Backoff float64 `json:"backoff_s,omitempty"`
}

// Entry is one line of the ledger: one request. Durations are in seconds, times RFC 3339 with
// nanoseconds; null where undefined. Fields are only ever added.
type Entry struct {
	ID                 int64      `json:"id"`
	Phase              string     `json:"phase"`
	Round              int        `json:"round"`
	Step               int        `json:"step"`
	Concurrency        int        `json:"concurrency"`     // 0 in an open loop
	Rate               float64    `json:"rate,omitempty"`  // requests per second; only in an open loop
	Class              string     `json:"class,omitempty"` // only where the plan has classes
	Shard              string     `json:"shard,omitempty"` // only where there are several load generators
	Slot               int        `json:"slot"`
	Window             string     `json:"window"`
	ScheduledAt        time.Time  `json:"scheduled_at"`
	SentAt             *time.Time `json:"sent_at"`
	TTFT               *float64   `json:"ttft_s"`
	E2E                *float64   `json:"e2e_s"`
	TPOT               *float64   `json:"tpot_s"`
	TTFTMin            *float64   `json:"ttft_min_s"` // the earliest possible values: smaller than those above where the client read late
	E2EMin             *float64   `json:"e2e_min_s"`
	TPOTMin            *float64   `json:"tpot_min_s"`
	Chunks             int        `json:"chunks"`
	PromptTokens       *int       `json:"prompt_tokens"`
	CachedPromptTokens *int       `json:"cached_prompt_tokens"`
	OutputTokens       *int       `json:"output_tokens"`
	TokenSource        string     `json:"token_source,omitempty"`
	Outcome            string     `json:"outcome"`
	TimeoutKind        string     `json:"timeout_kind,omitempty"`
	HTTPStatus         int        `json:"http_status"`
	Error              string     `json:"error,omitempty"`
	Warnings           []string   `json:"warnings,omitempty"`
	DialS              float64    `json:"dial_s"`
	HeaderS            *float64   `json:"header_s"`
	FirstEventS        *float64   `json:"first_event_s"`
	FirstTextS         *float64   `json:"first_content_s"`
	EndS               float64    `json:"end_s"` // the connection was done with, from sent_at
	QueueWaitS         *float64   `json:"queue_wait_s"`
	StampSource        string     `json:"stamp_source"`                  // of the text chunks: kernel, read, mixed
	ReadStamped        int        `json:"read_stamped_chunks,omitempty"` // text chunks stamped when the client read them
	LateChunks         int        `json:"late_chunks,omitempty"`         // text chunks read only after the next one had come
}
