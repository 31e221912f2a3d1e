package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kingpin/v2"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"golang.org/x/term"

	"firstbreach/internal/promapi"
	"firstbreach/internal/release"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/run"
)

// runCommand is `loadgen run`.
type runCommand struct {
	name            string
	plan, slo       string
	out, id         string
	listen          []string
	webConfig       string
	scrapeWait      time.Duration
	finalWait       time.Duration
	grace           time.Duration
	allowProduction bool
	prometheus      string
	httpConfig      string
	readStamps      bool
	shard, startAt  string
}

func addRun(app *kingpin.Application) *runCommand {
	c := &runCommand{}
	cmd := app.Command("run", "Run a plan against its target, serve the metrics page and write the run directory.")
	c.name = cmd.FullCommand()
	cmd.Flag("plan", "The plan file.").Default("loadgen/plan.yaml").StringVar(&c.plan)
	cmd.Flag("slo", "The SLO file.").Default("alerts/slo.yaml").StringVar(&c.slo)
	cmd.Flag("out", "The run directory; runs/<run id> by default.").StringVar(&c.out)
	cmd.Flag("run-id", "Names the run in labels and files; made from the time by default.").StringVar(&c.id)
	cmd.Flag("web.listen-address", "Address of the metrics page. Repeatable.").Default(":10511").StringsVar(&c.listen)
	cmd.Flag("web.config.file", "File that turns on TLS or authentication for the metrics page, as of the Prometheus exporter toolkit.").StringVar(&c.webConfig)
	cmd.Flag("scrape.wait", "How long a step waits until the ones before it have been scraped.").Default(run.DefaultScrapeWait.String()).DurationVar(&c.scrapeWait)
	cmd.Flag("scrape.final-wait", "How long the end waits for the last values to be scraped.").Default(run.DefaultFinalWait.String()).DurationVar(&c.finalWait)
	cmd.Flag("grace", "How long requests in flight may go on after an interruption.").Default(run.DefaultGrace.String()).DurationVar(&c.grace)
	cmd.Flag("allow-production", "Drive a target whose plan says environment: production.").BoolVar(&c.allowProduction)
	cmd.Flag("read-stamps", "Stamp arrivals when they are read, as where the kernel gives no stamps.").BoolVar(&c.readStamps)
	cmd.Flag("prometheus.url", "A Prometheus that scrapes this run: at the end it is asked whether it has every value.").StringVar(&c.prometheus)
	cmd.Flag("http.config.file", "File with the credentials, headers, TLS and proxy that --prometheus.url wants, in the form of Prometheus' HTTP client configuration.").PlaceHolder("FILE").StringVar(&c.httpConfig)
	cmd.Flag("shard", "Makes this process one of several that are one run: its number, from 0, and how many there are, such as 0/3. Needs --run-id and --start-at, and step.duration in the plan.").PlaceHolder("I/N").StringVar(&c.shard)
	cmd.Flag("start-at", "When all shards start, RFC 3339, such as 2026-01-02T15:04:05Z.").PlaceHolder("TIME").StringVar(&c.startAt)
	return c
}

// do reads and checks everything before the first request, then runs.
func (c *runCommand) do(ctx context.Context, logger *slog.Logger, stdout, stderr io.Writer) error {
	opts, err := c.options(logger, stderr)
	if err != nil {
		return usageError{err}
	}
	page, err := listen(ctx, c.listen, c.webConfig, logger)
	if err != nil {
		return err
	}
	defer page.close()
	preflight(stderr, opts.Plan, opts.SLO)

	first, second, stop := watchSignals(ctx, stderr)
	defer stop()
	opts.Abort = second.Done()
	if err := record.CreateDir(opts.Dir); err != nil {
		return usageError{err}
	}
	if err := run.Reach(first, opts.Plan, opts.RunID); err != nil {
		_ = os.Remove(opts.Dir) // empty still
		return usageError{err}
	}
	r, err := run.Start(first, opts)
	if err != nil {
		return usageError{err}
	}
	if err := page.serve(r.Handler(), "loadgen "+opts.RunID); err != nil {
		return errors.Join(err, r.Close(ctx))
	}
	fmt.Fprintf(stderr, "run %s, directory %s, metrics at %s\n", opts.RunID, opts.Dir, page.urls())
	err = r.RunRounds(first)
	end, cancel := closing(first, second)
	defer cancel()
	err = errors.Join(err, r.Close(end))
	m := r.Manifest()
	fmt.Fprintf(stdout, "run %s is %s (final values: %s); directory %s\n", m.Run, m.State, m.FinalScrape, opts.Dir)
	return err
}

// options reads both files and says everything that is wrong with either at once.
func (c *runCommand) options(logger *slog.Logger, stderr io.Writer) (run.Options, error) {
	p, planErr := plan.Load(c.plan)
	s, sloErr := slo.Load(c.slo)
	if err := errors.Join(planErr, sloErr); err != nil {
		return run.Options{}, err
	}
	if err := errors.Join(p.CheckEnvironment(c.allowProduction), p.CheckCommands()); err != nil {
		return run.Options{}, err
	}
	shard, startAt, err := c.sharding(p, time.Now())
	if err != nil {
		return run.Options{}, err
	}
	if c.id == "" {
		c.id = newRunID(time.Now())
	}
	if err := record.ValidRunID(c.id); err != nil {
		return run.Options{}, err
	}
	if c.out == "" {
		c.out = filepath.Join("runs", c.id)
		if !shard.IsZero() {
			c.out += fmt.Sprintf("-%d", shard.Index)
		}
	}
	confirm, err := c.confirm()
	if err != nil {
		return run.Options{}, err
	}
	return run.Options{
		Plan: p, SLO: s, Shard: shard, StartAt: startAt, RunID: c.id, Dir: c.out, Version: release.Version(),
		ScrapeWait: c.scrapeWait, FinalWait: c.finalWait, Grace: c.grace, Confirm: confirm, ReadStamps: c.readStamps,
		Progress: run.NewProgress(stderr, isTerminal(stderr)), Logger: logger,
	}, nil
}

// sharding reads what makes this process a part of a run; zero where it is the whole.
func (c *runCommand) sharding(p *plan.Plan, now time.Time) (plan.Shard, time.Time, error) {
	if c.shard == "" {
		if c.startAt != "" {
			return plan.Shard{}, time.Time{}, errors.New("--start-at is for runs of several processes: add --shard, or leave it out")
		}
		return plan.Shard{}, time.Time{}, nil
	}
	shard, err := plan.ParseShard(c.shard)
	if err != nil {
		return shard, time.Time{}, fmt.Errorf("--shard: %w", err)
	}
	if c.id == "" {
		return shard, time.Time{}, errors.New("--shard needs --run-id: all shards of a run carry the same")
	}
	if c.prometheus != "" {
		return shard, time.Time{}, errors.New("--prometheus.url asks for the values of a whole run, and a shard knows only its own: leave it out")
	}
	at, err := time.Parse(time.RFC3339, c.startAt)
	switch {
	case c.startAt == "":
		return shard, at, errors.New("--shard needs --start-at: all shards of a run start at the same moment")
	case err != nil:
		return shard, at, fmt.Errorf("--start-at %q is no time: write it as %s", c.startAt, now.Add(2*time.Minute).UTC().Format(time.RFC3339))
	case !at.After(now):
		return shard, at, fmt.Errorf("--start-at %s is in the past by %s: name a moment at which every shard will be up, for all of them the same", c.startAt, now.Sub(at).Round(time.Second))
	}
	return shard, at, p.CheckShards()
}

// confirm is how the last values are confirmed by query; nil without an address.
func (c *runCommand) confirm() (func(context.Context, record.Manifest) error, error) {
	switch {
	case c.prometheus == "" && c.httpConfig != "":
		return nil, errors.New("--http.config.file is for --prometheus.url, which is missing")
	case c.prometheus == "":
		return nil, nil
	}
	client, err := promapi.New(c.prometheus, c.httpConfig)
	if err != nil {
		return nil, fmt.Errorf("--prometheus.url, --http.config.file: %w", err)
	}
	return run.ByQuery(v1.NewAPI(client)), nil
}

// preflight says what the plan can decide before anything is sent.
func preflight(w io.Writer, p *plan.Plan, s *slo.File) {
	for _, text := range p.Warnings() {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
	for _, n := range plan.Preflight(p, s) {
		fmt.Fprintf(w, "preflight: %s\n", n.Sentence)
	}
}

// newRunID is unique enough for runs that start in the same second, and sorts by time.
func newRunID(now time.Time) string {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	return now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(b[:])
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
