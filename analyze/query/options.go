package query

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/api"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
)

// Defaults of Options.
const (
	DefaultLookback = 30 * 24 * time.Hour
	DefaultParallel = 4
	DefaultPause    = 250 * time.Millisecond
)

// Options say which run to read, and where from.
type Options struct {
	// URL is the base of a Prometheus HTTP API: Prometheus, Thanos, Mimir, VictoriaMetrics.
	URL string
	// Client is used in place of URL when it is set, for instance one with credentials.
	Client api.Client

	RunID string // the manifest's when ""
	SLO   *slo.File
	// Manifest is what the run directory says of the run. Without one, the steps are found in
	// Prometheus alone and their totals can't be checked.
	Manifest *record.Manifest
	// Now is our clock; time.Now when nil.
	Now func() time.Time

	// Lookback is how far back a run is looked for when no manifest says when it began;
	// DefaultLookback when 0.
	Lookback time.Duration
	// Parallel bounds the queries in flight; DefaultParallel when 0.
	Parallel int
	// Pause is the wait before a request is sent again, doubled each time; DefaultPause when 0.
	Pause time.Duration
}

// withDefaults returns o with its zero values filled in, or everything that is wrong with it.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.URL == "" && o.Client == nil {
		errs = append(errs, errors.New("no Prometheus to ask: give its URL, such as http://127.0.0.1:9090"))
	}
	if o.SLO == nil {
		errs = append(errs, errors.New("no SLO file: the objectives say what to read"))
	}
	if m := o.Manifest; m != nil {
		switch {
		case o.RunID == "":
			o.RunID = m.Run
		case o.RunID != m.Run:
			errs = append(errs, fmt.Errorf("run %q was asked for, but the manifest is of run %q", o.RunID, m.Run))
		}
	}
	if o.RunID == "" {
		errs = append(errs, errors.New("no run ID: give one, or the run's directory"))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Lookback == 0 {
		o.Lookback = DefaultLookback
	}
	if o.Parallel == 0 {
		o.Parallel = DefaultParallel
	}
	if o.Pause == 0 {
		o.Pause = DefaultPause
	}
	return o, errors.Join(append(errs, o.checkExpressions()...)...)
}

// checkExpressions finds PromQL that can't run before anything is asked.
func (o Options) checkExpressions() []error {
	if o.SLO == nil {
		return nil
	}
	var errs []error
	for _, obj := range o.SLO.Objectives {
		if obj.Kind != slo.Expression {
			continue
		}
		if _, err := promexpr.ParseVector(obj.PromQL); err != nil {
			errs = append(errs, fmt.Errorf("%s: objective %s: %w", at(o.SLO.Path, obj.Line), obj.Name, err))
		}
	}
	return errs
}

func at(path string, line int) string {
	if path == "" {
		path = "SLO file"
	}
	return fmt.Sprintf("%s:%d", path, line)
}
