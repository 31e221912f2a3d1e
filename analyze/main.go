// Command analyze finds where a run first broke its SLO.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	"golang.org/x/term"

	"firstbreach/analyze/analysis"
	"firstbreach/analyze/compare"
	"firstbreach/analyze/standalone"
	"firstbreach/analyze/store"
	"firstbreach/analyze/window"
	"firstbreach/internal/release"
	"firstbreach/internal/strictyaml"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/sim"
)

// Exit statuses besides those of --fail-on.
const (
	exitFailed = 1 // it could not be done
	exitUsage  = 2 // usage or configuration
)

// command is one subcommand. Without an error its exit status is the verdict's, 0 unless --fail-on
// names it.
type command func(ctx context.Context, e env) (int, error)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the whole program; it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("analyze", "Find where an LLM service first breaks its SLO as concurrency rises.")
	app.HelpFlag.Short('h')
	app.Version("analyze " + release.Version())
	app.UsageWriter(stdout)
	app.ErrorWriter(stderr)
	ended := -1
	app.Terminate(func(status int) { // --help and --version; parsing goes on, and would print the help again
		ended = status
		app.UsageWriter(io.Discard)
		app.ErrorWriter(io.Discard)
	})
	// Prometheus, which is built in, has much to say at level info: by default only what is wrong is shown.
	logConfig := &promslog.Config{Level: promslog.NewLevel(), Format: promslog.NewFormat(), Writer: stderr}
	app.Flag("log.level", "Only log messages of this level or above: debug, info, warn, error.").Default("warn").SetValue(logConfig.Level)
	app.Flag("log.format", "Format of log messages: logfmt or json.").Default("logfmt").SetValue(logConfig.Format)

	commands := map[string]command{}
	for _, add := range []func(*kingpin.Application) (string, command){addStandalone, addReport, addCompare, addList, addWindow, addServe, addStore, addKnownAnswers, addSimulator} {
		name, do := add(app)
		commands[name] = do
	}
	name, err := app.Parse(args)
	switch {
	case ended >= 0:
		return ended
	case err != nil:
		fmt.Fprintf(stderr, "analyze: %v; see analyze --help\n", err)
		return exitUsage
	}
	ctx, abort := interruptible()
	status, err := commands[name](ctx, env{promslog.New(logConfig), abort, stdout, stderr})
	if err != nil {
		fmt.Fprintf(stderr, "analyze: %v\n", err)
		return exitStatus(err)
	}
	return status
}

// env is what a command is given besides its flags.
type env struct {
	logger         *slog.Logger
	abort          <-chan struct{} // closed: end at once
	stdout, stderr io.Writer
}

// interruptible gives a context that ends at the first Ctrl-C or SIGTERM, and a channel that is
// closed at the second.
func interruptible() (context.Context, <-chan struct{}) {
	ctx, cancel := context.WithCancelCause(context.Background())
	abort := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cancel(errors.New((<-signals).String()))
		<-signals
		close(abort)
	}()
	return ctx, abort
}

func exitStatus(err error) int {
	var file *strictyaml.Error
	var usage *standalone.UsageError
	var noRun *analysis.NoRunError
	var input *compare.InputError
	var win *window.OptionError
	if errors.As(err, &input) || errors.As(err, &win) || errors.As(err, &file) || errors.As(err, &usage) || errors.As(err, &noRun) {
		return exitUsage
	}
	return exitFailed
}

func addStandalone(app *kingpin.Application) (string, command) {
	cmd := app.Command("standalone", "Do the whole job in one command: run the plan, store what it shows, judge it and write the report. "+
		"Without --target and --plan it runs against a simulated engine.")
	var o standalone.Options
	cmd.Flag("target", "Base URL of the endpoint to test, such as http://127.0.0.1:11434.").PlaceHolder("URL").StringVar(&o.Target.URL)
	cmd.Flag("api", "What it speaks: openai-chat, openai-completions, ollama-chat or ollama-generate.").PlaceHolder("NAME").StringVar(&o.Target.API)
	cmd.Flag("model", "The model to ask for.").PlaceHolder("NAME").StringVar(&o.Target.Model)
	cmd.Flag("metrics", "The engine's own metrics page; looked for at /metrics of the target when left out.").PlaceHolder("URL").StringVar(&o.Target.Metrics)
	cmd.Flag("host-metrics", "Metrics page of an exporter on the target's host, where that is another machine.").PlaceHolder("URL").StringVar(&o.Target.HostMetrics)
	cmd.Flag("api-key-env", "Environment variable that holds the API key.").PlaceHolder("NAME").StringVar(&o.Target.KeyEnv)
	cmd.Flag("api-key-file", "File that holds the API key.").PlaceHolder("FILE").StringVar(&o.Target.KeyFile)
	cmd.Flag("plan", "Plan file (docs/plan-file.md); built in when left out.").PlaceHolder("FILE").StringVar(&o.PlanFile)
	cmd.Flag("slo", "SLO file (docs/slo-file.md); built in when left out.").PlaceHolder("FILE").StringVar(&o.SLOFile)
	cmd.Flag("out", "Run directory; runs/<run ID> when left out.").PlaceHolder("DIR").StringVar(&o.Dir)
	cmd.Flag("run-id", "Name of the run; made from the time when left out.").PlaceHolder("ID").StringVar(&o.RunID)
	cmd.Flag("verify-limits", "In the end try the admission limits that follow from the run: twice the throughput of the first breach, as users who don't wait for each other, through a small proxy in front of the target.").BoolVar(&o.VerifyLimits)
	searched := addSearchFlags(cmd)
	cmd.Flag("allow-production", "Let a plan whose environment is production run.").BoolVar(&o.AllowProduction)
	cmd.Flag("store.listen-address", "Address of the embedded Prometheus; any free port of 127.0.0.1 when left out.").PlaceHolder("ADDR").StringVar(&o.StoreAddress)
	cmd.Flag("loadgen.listen-address", "Address of the load generator's metrics; any free port when left out.").PlaceHolder("ADDR").StringVar(&o.LoadgenAddress)
	cmd.Flag("exporter.listen-address", "Address of the host's metrics; any free port when left out.").PlaceHolder("ADDR").StringVar(&o.ExporterAddress)
	cmd.Flag("sim.listen-address", "Address of the simulated engine; any free port when left out.").PlaceHolder("ADDR").StringVar(&o.SimAddress)
	failOn := failOnFlag(cmd)
	return cmd.FullCommand(), func(ctx context.Context, e env) (int, error) {
		fail, err := analysis.ParseFailOn(*failOn)
		if err != nil {
			return 0, &standalone.UsageError{Text: err.Error()}
		}
		if o.Search, err = searched.search(); err != nil {
			return 0, err
		}
		o.Version, o.Out, o.Progress, o.Abort, o.Logger = release.Version(), e.stdout, e.stderr, e.abort, e.logger
		if f, ok := e.stderr.(*os.File); ok {
			o.Terminal = term.IsTerminal(int(f.Fd()))
		}
		o.Simulator = simulatorCommand
		out, err := standalone.Run(ctx, o)
		return fail.Exit(out.State), err
	}
}

func failOnFlag(cmd *kingpin.CmdClause) *string {
	return cmd.Flag("fail-on", "Verdicts that make the exit status non-zero: a list of breach (10), inconclusive (20), invalid (30).").PlaceHolder("LIST").String()
}

// simulatorCommand is this program again, as the simulated engine.
func simulatorCommand(flags []string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.Command(self, append([]string{simulatorName}, flags...)...)
}

const simulatorName = "simulator"

// addSimulator is standalone's child process; people use `loadgen sim`.
func addSimulator(app *kingpin.Application) (string, command) {
	cmd := app.Command(simulatorName, "Serve the simulated engine until standard input is closed.").Hidden()
	cfg := sim.Flags(cmd)
	address := cmd.Flag("web.listen-address", "Address to listen on.").Default("127.0.0.1:0").String()
	return cmd.FullCommand(), func(_ context.Context, e env) (int, error) {
		// Ctrl-C on a terminal reaches the child too, but its end is the parent's to decide.
		return 0, standalone.ServeSimulator(context.Background(), *cfg, *address, os.Stdin, e.stdout)
	}
}

func addReport(app *kingpin.Application) (string, command) {
	cmd := app.Command("report", "Analyse one run and write its report. With --run it reads the run's own Prometheus data, or that of --prometheus.url; "+
		"without it, --run-id, --slo and --prometheus.url are needed.")
	dirs := cmd.Flag("run", "Run directory. Repeat it for a run of several shards, once for each; the report goes to the first.").PlaceHolder("DIR").Strings()
	url := cmd.Flag("prometheus.url", "Prometheus that scraped the run: Prometheus, Thanos, Mimir or VictoriaMetrics.").PlaceHolder("URL").String()
	httpConfig := httpConfigFlag(cmd)
	runID := cmd.Flag("run-id", "Run to analyse, where there is no run directory.").PlaceHolder("ID").String()
	sloFile := cmd.Flag("slo", "SLO file; the run's own when left out. One that differs from it is used, and the report says so.").PlaceHolder("FILE").String()
	out := cmd.Flag("out", "Where the report goes; the run directory when left out.").PlaceHolder("DIR").String()
	format := cmd.Flag("format", "What is printed: headline (three lines) or markdown (the whole report).").Default("headline").Enum("headline", "markdown")
	capacity := cmd.Flag("write-capacity", "Also write the concurrency up to which every step held, for the capacity alert: alerts/capacity.yaml is where alerts looks for it.").PlaceHolder("FILE").String()
	failOn := failOnFlag(cmd)
	return cmd.FullCommand(), func(ctx context.Context, e env) (int, error) {
		fail, err := analysis.ParseFailOn(*failOn)
		if err != nil {
			return 0, &standalone.UsageError{Text: err.Error()}
		}
		dir, shards := "", []string(nil)
		if len(*dirs) > 0 {
			dir, shards = (*dirs)[0], (*dirs)[1:]
		}
		r := reporting{dir: dir, shards: shards, url: *url, httpConfig: *httpConfig, runID: *runID, slo: *sloFile, out: *out, format: *format, capacity: *capacity}
		state, err := r.run(ctx, e)
		return fail.Exit(state), err
	}
}

func addStore(app *kingpin.Application) (string, command) {
	cmd := app.Command("store", "Serve a finished run's Prometheus data, so that a Grafana can open it.")
	dir := cmd.Flag("run", "Run directory.").Required().PlaceHolder("DIR").String()
	address := cmd.Flag("web.listen-address", "Address to listen on.").Default("127.0.0.1:9090").String()
	return cmd.FullCommand(), func(ctx context.Context, e env) (int, error) {
		if _, err := os.Stat(filepath.Join(*dir, record.StoreDir)); err != nil {
			return 0, &standalone.UsageError{Text: fmt.Sprintf("%s holds no Prometheus data, it has no folder %s: name the directory of a run that standalone made, runs/<run ID> unless --out named another", *dir, record.StoreDir)}
		}
		s, err := store.Open(ctx, store.Options{Dir: filepath.Join(*dir, record.StoreDir), ListenAddress: *address, ReadOnly: true, Logger: e.logger})
		if err != nil {
			return 0, err
		}
		fmt.Fprintf(e.stdout, "The run's Prometheus data is at %s: add it to Grafana as a Prometheus data source. Ctrl-C ends this.\n", s.URL())
		<-ctx.Done()
		return 0, s.Close()
	}
}
