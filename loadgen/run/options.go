package run

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"firstbreach/internal/slo"
	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// Defaults of Options, and of the flags that set them.
const (
	DefaultScrapeWait = 60 * time.Second
	DefaultFinalWait  = 60 * time.Second
	DefaultGrace      = 30 * time.Second
)

// Options say what is run, and where the results go.
type Options struct {
	Plan    *plan.Plan
	SLO     *slo.File
	RunID   string // a label value and, unless Dir says otherwise, a directory name
	Dir     string // the run directory; made, and empty but for a store
	Version string // of firstbreach

	// Target sends the requests; nil makes one from the plan.
	Target Target
	// ReadStamps has that one stamp arrivals when they are read even where the kernel would do it.
	ReadStamps bool

	// Shard makes this run one of several that are one run together; zero: it is the whole. Its steps
	// begin and end at moments computed from StartAt.
	Shard   plan.Shard
	StartAt time.Time

	ScrapeWait time.Duration // how long a third step waits until the older two have been scraped
	FinalWait  time.Duration // how long the end waits for the last scrapes
	Grace      time.Duration // how long requests in flight may go on after an interruption
	// Confirm asks a Prometheus whether it has the totals of a manifest, and returns nil if so, else
	// what differs. Without it having seen the scrapes is enough.
	Confirm func(ctx context.Context, m record.Manifest) error

	Progress Progress
	Logger   *slog.Logger
	HTTP     *http.Client    // for the conditions and a restore request
	Abort    <-chan struct{} // closed: end at once, but with a manifest
}

// Target is what the load goes to: the client, and the body of each request.
type Target interface {
	drive.Sender
	// Body is the body of request n of a step, counted from 0.
	Body(stage plan.Stage, n int) []byte
	// PromptsSHA256 is the digest over the prompt bodies without their nonces.
	PromptsSHA256() string
	// Close lets idle connections go.
	Close()
}

// withDefaults fills in what may be left out, and refuses what may not.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Plan == nil || o.SLO == nil:
		return o, errors.New("a run needs a plan and an SLO file")
	case len(o.Plan.Source) == 0 || len(o.SLO.Source) == 0:
		return o, errors.New("a run keeps its plan and SLO file as text: load them from a file or parse them")
	case o.Dir == "":
		return o, errors.New("a run needs a directory: name one with --out")
	}
	if err := errors.Join(record.ValidRunID(o.RunID), o.Plan.CheckObjectives(o.SLO)); err != nil {
		return o, err
	}
	if !o.Shard.IsZero() {
		if err := o.Plan.CheckShards(); err != nil {
			return o, err
		}
		if o.StartAt.IsZero() {
			return o, errors.New("a shard needs the moment at which all of them start: name it with --start-at")
		}
		// A step that waited for scrapes longer than the pause between two would be late.
		o.ScrapeWait = min(o.ScrapeWait, o.Plan.Cooldown)
	}
	if o.Progress == nil {
		o.Progress = silent{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.HTTP == nil {
		client, err := httpClient(o.Plan.Target)
		if err != nil {
			return o, err
		}
		o.HTTP = client
	}
	return o, nil
}
