package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/promslog/flag"

	"firstbreach/internal/release"
)

// Exit statuses.
const (
	exitDone   = 0
	exitFailed = 1 // it could not be done
	exitUsage  = 2 // usage or configuration
)

func main() {
	os.Exit(command(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// usageError is one that a change of flags or files mends.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// command is the whole program; it returns its exit status.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("loadgen", "Drives an LLM endpoint up a ladder of concurrency and exposes what it measured to Prometheus.")
	app.HelpFlag.Short('h')
	app.UsageWriter(stdout)
	app.ErrorWriter(stderr)
	app.Version("loadgen " + release.Version())
	log := &promslog.Config{Writer: stderr}
	flag.AddFlags(app, log)

	runs, probes, sims, calibrations := addRun(app), addProbe(app), addSim(app), addCalibrate(app)
	parsed, err := app.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "loadgen: %v; see loadgen --help\n", err)
		return exitUsage
	}
	logger := promslog.New(log)
	switch parsed {
	case runs.name:
		err = runs.do(ctx, logger, stdout, stderr)
	case probes.name:
		err = probes.do(ctx, logger, stdout, stderr)
	case sims.name:
		err = sims.do(ctx, logger)
	case calibrations.name:
		err = calibrations.do(ctx, stdout, stderr)
	case calibrations.source:
		err = calibrations.serve(ctx, stdout)
	}
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "loadgen: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "loadgen: %v\n", err)
		return exitFailed
	}
}
