package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"firstbreach/internal/atomicfile"
	"firstbreach/internal/signal"
	"firstbreach/loadgen/record"
)

// Runner is one run under way. RunRounds, AppendRound, Settle and Close are called one after the
// other, from one goroutine; Handler and Manifest may be used at any time.
type Runner struct {
	opts    Options
	target  Target
	classes []Target // one for each class of the plan
	page    *record.Page
	ledger  *record.Ledger

	rounds   int           // begun
	slot     int           // steps begun, where their edges are absolute
	rampCap  int           // the highest step of the ladder that later rounds run; 0: all
	service  time.Duration // mean of the step before: over it the next one's slots start
	baseline time.Duration // mean of the last baseline that answered
	started  bool          // a step has been begun
	ended    bool          // every planned round has been run to its end
	failure  error         // the first thing that ended the rounds early
	drills   []error       // what failed of them
	closed   bool
	changed  map[string]bool // conditions and their new values that are in the manifest

	mu       sync.Mutex
	manifest record.Manifest
}

// Start makes the run directory and the metrics page and looks at the target's conditions. It
// sends no load. A Runner that was started has to be closed.
func Start(ctx context.Context, opts Options) (*Runner, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := checkCertificate(ctx, opts.HTTP, opts.Plan.Target); err != nil {
		return nil, err
	}
	r := &Runner{opts: opts, target: opts.Target}
	if r.target == nil {
		if r.target, err = NewTarget(opts.Plan, opts.RunID); err != nil {
			return nil, err
		}
		if t, ok := r.target.(*wireTarget); ok && opts.ReadStamps {
			t.client.StampReads()
		}
	}
	if err := r.makeClasses(); err != nil {
		return nil, err
	}
	if err := r.makeDir(); err != nil {
		return nil, err
	}
	r.manifest = r.newManifest(ctx)
	if err := r.makePage(); err != nil {
		return nil, errors.Join(err, r.ledger.Close())
	}
	if err := r.writeManifest(); err != nil {
		return nil, errors.Join(err, r.ledger.Close())
	}
	return r, nil
}

// makeDir makes the run directory with the files as used and an empty ledger.
func (r *Runner) makeDir() (err error) {
	dir := r.opts.Dir
	if err := record.CreateDir(dir); err != nil {
		return err
	}
	for name, data := range map[string][]byte{record.PlanFile: r.opts.Plan.Source, record.SLOFile: r.opts.SLO.Source} {
		if err := atomicfile.Write(filepath.Join(dir, name), data); err != nil {
			return fmt.Errorf("keep %s with the run: %w", name, err)
		}
	}
	r.ledger, err = record.CreateLedger(filepath.Join(dir, record.LedgerFile))
	return err
}

func (r *Runner) newManifest(ctx context.Context) record.Manifest {
	p := r.opts.Plan
	return record.Manifest{
		Schema: record.ManifestSchema, Run: r.opts.RunID, State: record.Running,
		StartedAt: time.Now().UTC(), Version: r.opts.Version,
		PlanSHA256: digest(p.Source), SLOSHA256: digest(r.opts.SLO.Source), Prompts: r.promptsSHA256(),
		Conditions: r.conditions(ctx),
		Rounds:     p.Rounds, Ladder: append([]int{}, p.Ramp.Concurrency...), Steps: []record.ManifestStep{},
		Classes: classesOf(p),
		Rates:   slices.Clone(p.Ramp.Rate), Arrivals: string(p.Ramp.Arrivals),
	}
}

// makePage makes the metrics page with what doesn't belong to a step: the process and the run.
func (r *Runner) makePage() error {
	r.page = record.NewPage(record.PageOptions{
		Run: r.opts.RunID, Objectives: r.opts.SLO.Objectives, ScrapeWait: r.opts.ScrapeWait, Logger: r.opts.Logger,
	})
	m := r.manifest
	info := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: signal.LoadgenRunInfo, Help: "What is run against what; always 1.",
		ConstLabels: prometheus.Labels{
			signal.LabelRun: m.Run, "version": m.Version, "plan_sha256": m.PlanSHA256, "prompts_sha256": m.Prompts,
			"model": m.Conditions[condModel], "api": m.Conditions[condAPI],
			"engine": m.Conditions[condEngine], "engine_version": m.Conditions[condEngineVersion],
		},
	}, func() float64 { return 1 })
	return r.page.Register(info, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Handler serves the metrics page.
func (r *Runner) Handler() http.Handler { return r.page }

// Manifest is the manifest as it is now.
func (r *Runner) Manifest() record.Manifest {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.manifest
	m.Conditions = maps.Clone(m.Conditions)
	m.Ladder, m.Rates = append([]int{}, m.Ladder...), slices.Clone(m.Rates)
	m.Steps = append([]record.ManifestStep{}, m.Steps...)
	m.Changed = slices.Clone(m.Changed)
	if m.Search != nil {
		search := *m.Search
		m.Search = &search
	}
	return m
}

// edit changes the manifest.
func (r *Runner) edit(f func(m *record.Manifest)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.manifest)
}

func (r *Runner) writeManifest() error { return record.WriteManifest(r.opts.Dir, r.Manifest()) }

// RunRounds runs every round of the plan, and then what comes once after them. It returns ErrInterrupted when ctx ended first, and any
// other error when nothing more can be recorded. How the target behaved is never an error.
func (r *Runner) RunRounds(ctx context.Context) error {
	for range r.opts.Plan.Rounds {
		if err := r.round(ctx); err != nil {
			return err
		}
	}
	if err := r.after(ctx); err != nil {
		return err
	}
	r.ended = true
	return nil
}

// AppendRound runs one whole round more, under the next number.
func (r *Runner) AppendRound(ctx context.Context) error {
	r.edit(func(m *record.Manifest) { m.Rounds++ })
	return r.round(ctx)
}

// Close puts the target back, waits for the last scrapes and finishes the manifest. When ctx ends
// it waits no longer. It closes the ledger and the target's idle connections, but not the page: that
// goes on being served for as long as its server does.
func (r *Runner) Close(ctx context.Context) error {
	if r.closed {
		return nil
	}
	r.closed = true
	errs := []error{r.finish()}
	if r.started && r.opts.Shard.Index == 0 { // the target is put back once
		errs = append(errs, r.restore(ctx))
	}
	errs = append(errs, r.drills...)
	errs = append(errs, r.Settle(ctx), r.ledger.Close())
	for _, t := range append([]Target{r.target}, r.classes...) {
		t.Close()
	}
	return errors.Join(errs...)
}

// finish gives the manifest its final state, before anything that may still take time.
func (r *Runner) finish() error {
	now := time.Now().UTC()
	r.edit(func(m *record.Manifest) {
		m.EndedAt, m.State = &now, record.Complete
		switch {
		case r.failure != nil:
			m.State, m.Reason = record.Interrupted, addReason(m.Reason, r.failure.Error())
		case !r.ended:
			m.State, m.Reason = record.Interrupted, addReason(m.Reason, "closed before every round was run")
		}
	})
	return errors.Join(r.writeManifest(), r.ledger.Sync())
}

func addReason(old, more string) string {
	if old == "" {
		return more
	}
	return old + "; " + more
}
