package standalone

import (
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"time"

	"firstbreach/analyze/search"
)

// Options say what is run, against what, and where everything listens.
type Options struct {
	PlanFile string // "" is the built-in plan
	SLOFile  string // "" are the built-in objectives
	Target   Target // its zero value is the simulated engine, or the plan's own target
	RunID    string // made from the time when ""
	Dir      string // run directory; runs/<run ID> when ""

	// The addresses that things listen on. Any free port when "".
	StoreAddress, LoadgenAddress, ExporterAddress, SimAddress string

	AllowProduction bool
	ReadStamps      bool            // stamp arrivals when they are read even where the kernel would do it
	VerifyLimits    bool            // try the admission limits in the end
	Search          *search.Options // look for the exact first breach, in place of the plan's ladder; its Targets are filled in
	ScrapeInterval  time.Duration   // 1 s when 0

	Version  string
	Out      io.Writer // what is explained and found
	Progress io.Writer // the progress of the run
	Terminal bool      // Progress is a terminal
	Logger   *slog.Logger
	Abort    <-chan struct{} // closed: end at once, but keep what was measured

	// Simulator is the command of a child process that serves the simulated engine with the given
	// flags, writes the address that it listens on as its first line, and ends when its standard input is
	// closed.
	Simulator func(flags []string) *exec.Cmd
}

// Target is an endpoint named on the command line.
type Target struct {
	URL, API, Model string
	Metrics         string // the engine's metrics page; looked for at the target when ""
	HostMetrics     string // an exporter on the target's host
	KeyEnv, KeyFile string // where the API key is read from
}

// validate refuses what can't be meant.
func (t Target) validate() error {
	if t.URL == "" {
		for flag, v := range map[string]string{"--api": t.API, "--model": t.Model, "--metrics": t.Metrics, "--host-metrics": t.HostMetrics, "--api-key-env": t.KeyEnv, "--api-key-file": t.KeyFile} {
			if v != "" {
				return &UsageError{fmt.Sprintf("%s describes a target: name it with --target URL, or write it into a plan (--plan)", flag)}
			}
		}
		return nil
	}
	if t.API == "" || t.Model == "" {
		return &UsageError{"--target needs --api (openai-chat, openai-completions, ollama-chat, ollama-generate) and --model as well"}
	}
	return nil
}

// UsageError is a mistake in the flags.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// usage makes an error one that a change of flags or files mends.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err.Error()}
}
