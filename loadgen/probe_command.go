package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"firstbreach/internal/slo"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/probe"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/run"
	"firstbreach/loadgen/wire"
)

// fastestAsked bounds --every: what comes oftener is a load test.
const fastestAsked = 100 * time.Millisecond

// probeCommand is `loadgen probe`.
type probeCommand struct {
	name        string
	plan, slo   string
	every       time.Duration
	maxInFlight int
	once        bool
	grace       time.Duration
	listen      []string
	webConfig   string
}

func addProbe(app *kingpin.Application) *probeCommand {
	c := &probeCommand{}
	cmd := app.Command("probe", "Send a trickle of requests for ever and serve what users feel as metrics: for production, where the engine can't tell.")
	c.name = cmd.FullCommand()
	cmd.Flag("plan", "The plan file: its target, fixed and timeouts are used, not its steps.").Default("loadgen/plan.yaml").StringVar(&c.plan)
	cmd.Flag("slo", "The SLO file: its thresholds become bucket edges, its targets the default rate.").Default("alerts/slo.yaml").StringVar(&c.slo)
	cmd.Flag("every", "Time between two requests. By default what the alerts of the SLO file need to decide; it is said at the start.").DurationVar(&c.every)
	cmd.Flag("max-in-flight", "Requests at once. One that is due beyond them counts as failed.").Default("4").IntVar(&c.maxInFlight)
	cmd.Flag("once", "Send one request, print how it went, and end with status 1 unless it was answered.").BoolVar(&c.once)
	cmd.Flag("grace", "How long requests in flight may go on after a signal.").Default("2s").DurationVar(&c.grace)
	cmd.Flag("web.listen-address", "Address of the metrics page. Repeatable.").Default(":10511").StringsVar(&c.listen)
	cmd.Flag("web.config.file", "File that turns on TLS or authentication for the metrics page, as of the Prometheus exporter toolkit.").StringVar(&c.webConfig)
	return c
}

// do reads and checks everything before the first request, then probes until a signal.
func (c *probeCommand) do(ctx context.Context, logger *slog.Logger, stdout, stderr io.Writer) error {
	p, s, err := c.files()
	if err != nil {
		return usageError{err}
	}
	id := newRunID(time.Now())
	target, err := run.NewTarget(p, id)
	if err != nil {
		return usageError{err}
	}
	defer target.Close()
	body := func(n int) []byte { return target.Body(plan.Stage{Phase: "probe", Round: 1, Step: 1}, n) }
	if c.once {
		return once(ctx, target, body(0), stdout)
	}
	every, reason := c.rate(s)
	page, err := listen(ctx, c.listen, c.webConfig, logger)
	if err != nil {
		return err
	}
	defer page.close()
	first, second, stop := watchSignals(ctx, stderr)
	defer stop()

	steady := record.NewSteady(s.Objectives, time.Now())
	registry := prometheus.NewRegistry()
	registry.MustRegister(steady, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), versioncollector.NewCollector("loadgen"))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 40})
	if err := page.serve(handler, "loadgen probe of "+s.Service); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "probe of %s at %s: %s; metrics at %s\n", s.Service, p.Target.URL, reason, page.urls())
	end := make(chan error, 1)
	go func() {
		end <- probe.Probe{
			Every: every, MaxInFlight: c.maxInFlight, Body: body, Sender: target, Recorder: steady,
			Log: logger, Seed: rand.Uint64(), Grace: c.grace,
		}.Run(first)
	}()
	select {
	case err := <-end:
		return err
	case <-second.Done(): // asked twice: at once
		return nil
	}
}

// files reads both files and says everything that is wrong with either at once. Production is what a
// probe is for: it needs no flag.
func (c *probeCommand) files() (*plan.Plan, *slo.File, error) {
	p, planErr := plan.Load(c.plan)
	s, sloErr := slo.Load(c.slo)
	if err := errors.Join(planErr, sloErr); err != nil {
		return nil, nil, err
	}
	switch {
	case c.every != 0 && c.every < fastestAsked:
		return nil, nil, fmt.Errorf("--every=%v is a load, not a probe: write %v or more, or use loadgen run", c.every, fastestAsked)
	case c.maxInFlight < 1 || c.maxInFlight > 64:
		return nil, nil, fmt.Errorf("--max-in-flight=%d is not between 1 and 64", c.maxInFlight)
	case c.grace < 0:
		return nil, nil, fmt.Errorf("--grace=%v must not be negative", c.grace)
	}
	return p, s, nil
}

// rate is how often is sent, and why.
func (c *probeCommand) rate(s *slo.File) (every time.Duration, reason string) {
	byDefault := probe.DefaultRate(s)
	if c.every == 0 {
		return byDefault.Every, byDefault.Reason
	}
	reason = fmt.Sprintf("one request every %s, as asked", c.every)
	if c.every > byDefault.Every {
		reason += fmt.Sprintf("; the alerts would need one every %s, and may fire on a single lost request or stay silent", byDefault.Every)
	}
	return c.every, reason
}

// once sends one request and prints how it went.
func once(ctx context.Context, target run.Target, body []byte, stdout io.Writer) error {
	r := target.Do(ctx, body)
	fmt.Fprintf(stdout, "%s", r.Outcome)
	if r.HTTPStatus != 0 {
		fmt.Fprintf(stdout, ", HTTP %d", r.HTTPStatus)
	}
	if r.TTFT != nil {
		fmt.Fprintf(stdout, ", first token after %s", r.TTFT.Round(time.Microsecond))
	}
	if r.E2E != nil {
		fmt.Fprintf(stdout, ", whole answer after %s", r.E2E.Round(time.Microsecond))
	}
	if r.OutputTokens != nil {
		fmt.Fprintf(stdout, ", %d tokens", *r.OutputTokens)
	}
	fmt.Fprintln(stdout)
	if r.Outcome != wire.OK {
		return fmt.Errorf("the probe was not answered: %s", r.Error)
	}
	return nil
}
