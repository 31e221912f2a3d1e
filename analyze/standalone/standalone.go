package standalone

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"firstbreach/analyze/analysis"
	"firstbreach/analyze/report"
	"firstbreach/analyze/store"
	"firstbreach/analyze/verdict"
	"firstbreach/exporter/collector"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/run"
	"firstbreach/loadgen/sim"
)

// maxAppended bounds the rounds that are run again because one was void.
const maxAppended = 2

// closeTime bounds everything that is still done after an interruption.
const closeTime = 2 * time.Minute

// Outcome is what a standalone run came to.
type Outcome struct {
	Report      *report.Document // nil when nothing could be analysed
	State       verdict.State
	Interrupted bool
}

// Run does the whole job. Whatever was measured before an error or the end of ctx is in the run
// directory, with a report of it where one can be made.
func Run(ctx context.Context, o Options) (out Outcome, err error) {
	if err := o.Target.validate(); err != nil {
		return out, err
	}
	o = o.withDefaults()
	if err := record.ValidRunID(o.RunID); err != nil {
		return out, usage(fmt.Errorf("--run-id: %w", err))
	}
	f, err := o.load(ctx)
	if err != nil {
		return out, err
	}
	if !o.simulated() {
		note := time.AfterFunc(2*time.Second, func() {
			fmt.Fprintf(o.Progress, "waiting a little for the first answer of %s\n", f.plan.Target.URL)
		})
		err := run.Reach(ctx, f.plan, o.RunID)
		note.Stop()
		if err != nil {
			return out, usage(err)
		}
	}
	j := &job{Options: o, files: f}
	defer func() { err = errors.Join(err, j.stop()) }()
	if err := j.start(ctx); err != nil {
		return out, err
	}
	j.explain()
	return j.measure(ctx)
}

func (o Options) withDefaults() Options {
	if o.RunID == "" {
		o.RunID = time.Now().UTC().Format("20060102-150405") + "-" + rand.Text()[:4]
	}
	if o.Dir == "" {
		o.Dir = filepath.Join("runs", o.RunID)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Logger == nil {
		o.Logger = discard()
	}
	return o
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// job is one standalone run under way.
type job struct {
	Options
	*files

	sim      *simulator // nil with a real target
	exporter *server
	loadgen  *server
	set      *collector.Set
	store    *store.Store
	runner   *run.Runner
}

// start brings everything up, in the order in which the parts need each other. What was started
// before an error, stop stops.
func (j *job) start(ctx context.Context) error {
	// Addresses first: a port in use must be said before anything is started.
	export, err := listen(ctx, j.ExporterAddress, "--exporter.listen-address")
	if err != nil {
		return err
	}
	load, err := listen(ctx, j.LoadgenAddress, "--loadgen.listen-address")
	if err == nil {
		err = free(ctx, j.StoreAddress, "--store.listen-address")
	}
	if err != nil {
		if load != nil {
			err = errors.Join(err, load.Close())
		}
		return errors.Join(err, export.Close())
	}
	if j.simulated() {
		if j.sim, err = startSimulator(ctx, j.Options, sim.Demo()); err == nil {
			err = j.at(j.sim.url)
		}
	}
	if err == nil {
		j.set, err = collector.New(collector.Options{Logger: j.Logger})
	}
	if err == nil {
		if j.runner, err = run.Start(ctx, j.runOptions()); err != nil {
			err = usage(err) // the run directory, or the target's key
		}
	}
	if err != nil {
		return errors.Join(err, export.Close(), load.Close())
	}
	j.exporter = serve(export, collector.Handler(j.set, collector.HandlerOptions{Logger: j.Logger}))
	j.loadgen = serve(load, j.runner.Handler())
	j.store, err = store.Open(ctx, store.Options{
		Dir: filepath.Join(j.Dir, record.StoreDir), ListenAddress: j.StoreAddress, ListenFlag: "--store.listen-address",
		ScrapeInterval: j.ScrapeInterval, Targets: j.targets(), Logger: j.Logger,
	})
	return err
}

func (j *job) runOptions() run.Options {
	return run.Options{
		Plan: j.plan, SLO: j.slo, RunID: j.RunID, Dir: j.Dir, Version: j.Version,
		ScrapeWait: run.DefaultScrapeWait, FinalWait: run.DefaultFinalWait, Grace: run.DefaultGrace,
		Progress: run.NewProgress(j.Progress, j.Terminal), Logger: j.Logger, Abort: j.Abort,
		ReadStamps: j.ReadStamps,
	}
}

// stop stops whatever was started, the scraper before what it scrapes.
func (j *job) stop() error {
	var errs []error
	if j.runner != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		errs = append(errs, j.runner.Close(ctx)) // closed already, unless something failed on the way
	}
	if j.store != nil {
		errs = append(errs, j.store.Close())
	}
	for _, s := range []*server{j.loadgen, j.exporter} {
		if s != nil {
			errs = append(errs, s.stop())
		}
	}
	if j.set != nil {
		j.set.Close()
	}
	if j.sim != nil {
		errs = append(errs, j.sim.stop())
	}
	return errors.Join(errs...)
}

// measure runs the rounds, those again that were void, or a search, and writes the report.
func (j *job) measure(ctx context.Context) (out Outcome, err error) {
	if j.Search != nil {
		err = j.search(ctx)
	} else if err = j.runner.RunRounds(ctx); err == nil {
		err = j.repeatVoid(ctx)
	}
	if err == nil && j.VerifyLimits {
		err = j.verifyLimits(ctx)
	}
	out.Interrupted = errors.Is(err, run.ErrInterrupted)
	// From here on an end of ctx must not lose what was measured.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	err = errors.Join(err, j.runner.Close(ctx))
	doc, res, failed := j.analyse(ctx)
	if failed != nil {
		return out, errors.Join(err, fmt.Errorf("the run is in %s, but could not be analysed: %w", j.Dir, failed))
	}
	out.Report, out.State = doc, res.State
	if failed := doc.WriteDir(j.Dir); failed != nil {
		return out, errors.Join(err, failed)
	}
	j.conclude(doc, res)
	return out, err
}

// repeatVoid analyses the run before it is closed and appends one whole round for each one that was
// void.
func (j *job) repeatVoid(ctx context.Context) error {
	if err := j.runner.Settle(ctx); err != nil {
		return err
	}
	_, res, err := j.analyse(ctx)
	if err != nil {
		return fmt.Errorf("analyse the rounds so far: %w", err)
	}
	void := voidRounds(res)
	for range min(len(void), maxAppended) {
		fmt.Fprintf(j.Out, "\nA round was void (%s); running one more in its place.\n", void[0])
		if err := j.runner.AppendRound(ctx); err != nil {
			return err
		}
	}
	return nil
}

// voidRounds gives, for each round with a void step on the ladder, the reason.
func voidRounds(res verdict.Result) []string {
	seen := map[int]bool{}
	var reasons []string
	for _, s := range res.Steps {
		if s.Phase != verdict.PhaseRamp {
			continue
		}
		for _, r := range s.Rounds {
			if why := r.Void(); !r.Valid && !seen[r.Round] && len(why) > 0 {
				seen[r.Round] = true
				reasons = append(reasons, fmt.Sprintf("round %d, %s: %s", r.Round, s.Level().Words(), why[0]))
			}
		}
	}
	return reasons
}

// analyse reads the run as it is now out of the store.
func (j *job) analyse(ctx context.Context) (*report.Document, verdict.Result, error) {
	return analysis.Run(ctx, j.analysis())
}

func (j *job) analysis() analysis.Options {
	m := j.runner.Manifest()
	return analysis.Options{
		Source:     analysis.Source{RunID: j.RunID, SLO: j.slo, Plan: string(j.plan.Source), Manifest: &m},
		Prometheus: analysis.Prometheus{URL: j.store.URL()},
		Version:    j.Version,
	}
}
