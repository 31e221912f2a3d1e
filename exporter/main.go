package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"firstbreach/exporter/collector"
	"firstbreach/internal/release"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"
)

// name is the binary's, and the prefix of its build information.
const name = "exporter"

// The exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	setVersion()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// setVersion names this release, unless the linker did.
func setVersion() {
	if version.Version == "" {
		version.Version = release.Version()
	}
}

// config is what the flags say.
type config struct {
	web         *web.FlagConfig
	log         promslog.Config
	metricsPath string
	maxRequests int
	ownMetrics  bool
	host, gpu   bool
	options     collector.Options
}

// flags defines the flags.
func flags(c *config, stdout, stderr io.Writer) *kingpin.Application {
	app := kingpin.New(name, "Serves the metrics of this machine and its NVIDIA GPUs.")
	app.UsageWriter(stdout).ErrorWriter(stderr)
	app.Version(version.Print(name))
	app.HelpFlag.Short('h')
	c.web = kingpinflag.AddFlags(app, ":10510")
	app.Flag("web.telemetry-path", "Path of the metrics page.").Default("/metrics").StringVar(&c.metricsPath)
	app.Flag("web.max-requests", "Scrapes served at once; further ones are answered 503. 0 means no limit.").Default("40").IntVar(&c.maxRequests)
	app.Flag("web.exporter-metrics", "Also serve metrics of the exporter itself (go_*, process_*).").Default("true").BoolVar(&c.ownMetrics)
	app.Flag("path.procfs", "Where the machine's /proc is mounted.").Default("/proc").StringVar(&c.options.ProcFS)
	app.Flag("path.sysfs", "Where the machine's /sys is mounted.").Default("/sys").StringVar(&c.options.SysFS)
	app.Flag("collector.host", "Collect CPU, memory, paging and disks.").Default("true").BoolVar(&c.host)
	app.Flag("collector.gpu", "Collect NVIDIA GPUs.").Default("true").BoolVar(&c.gpu)
	app.Flag("collector.gpu.interval", "Time between two samples of the GPUs.").Default("1s").DurationVar(&c.options.GPUInterval)
	app.Flag("collector.timeout", "Time that a scrape waits for one collector, where the scraper doesn't ask for less.").
		Default(collector.DefaultTimeout.String()).DurationVar(&c.options.Timeout)
	promslogflag.AddFlags(app, &c.log)
	return app
}

// run is the whole program; it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c config
	app := flags(&c, stdout, stderr)
	ended := -1
	app.Terminate(func(status int) { ended = status }) // --help and --version
	_, err := app.Parse(args)
	if ended >= 0 {
		return ended
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v; see %s --help\n", name, err, name)
		return exitUsage
	}
	c.log.Writer = stderr
	if err := serve(ctx, &c); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return exitFailed
	}
	return exitOK
}

// check refuses what can't work.
func (c *config) check() error {
	switch {
	case !c.host && !c.gpu:
		return errors.New("nothing to collect: leave --collector.host or --collector.gpu on")
	case c.metricsPath == "" || c.metricsPath[0] != '/':
		return fmt.Errorf("--web.telemetry-path=%q must begin with /", c.metricsPath)
	case c.maxRequests < 0:
		return fmt.Errorf("--web.max-requests=%d must not be negative", c.maxRequests)
	case c.options.GPUInterval < 100*time.Millisecond:
		return fmt.Errorf("--collector.gpu.interval=%v is too short: 100ms or more", c.options.GPUInterval)
	case c.options.Timeout <= 0:
		return fmt.Errorf("--collector.timeout=%v must be more than 0", c.options.Timeout)
	}
	if err := web.Validate(*c.web.WebConfigFile); err != nil {
		return fmt.Errorf("--web.config.file: %w", err)
	}
	return nil
}

// serve collects and serves until ctx ends.
func serve(ctx context.Context, c *config) error {
	log := promslog.New(&c.log)
	log.Info("Starting "+name, "version", version.Info(), "build", version.BuildContext())
	c.options.NoHost, c.options.NoGPU, c.options.Logger = !c.host, !c.gpu, log
	set, err := collector.New(c.options)
	if err != nil {
		return fmt.Errorf("%w (--path.procfs says where /proc is)", err)
	}
	defer set.Close()

	handler, err := c.pages(collector.Handler(set, collector.HandlerOptions{
		Also: c.own(), MaxRequests: c.maxRequests, Logger: log,
	}))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		log.Info("Stopping")
		short, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if server.Shutdown(short) != nil {
			server.Close()
		}
	})
	err = web.ListenAndServe(server, c.web, log)
	if !stop() {
		<-stopped
		return nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: another process has the port; end it, or choose a free one with --web.listen-address", err)
	}
	return err
}

// own is the registry of the exporter's own metrics.
func (c *config) own() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(versioncollector.NewCollector(name))
	if c.ownMetrics {
		r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return r
}

// pages routes the metrics, the health checks and the landing page. Healthy and ready are about
// this process alone: a machine in trouble must stay scrapable to show it.
func (c *config) pages(metrics http.Handler) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.Handle(c.metricsPath, metrics)
	for _, path := range []string{"/-/healthy", "/-/ready"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "OK") })
	}
	if c.metricsPath == "/" {
		return mux, nil
	}
	landing, err := web.NewLandingPage(web.LandingConfig{
		Name:        "firstbreach exporter",
		Description: "Metrics of this machine and its NVIDIA GPUs",
		Version:     version.Info(),
		Profiling:   "false",
		Links: []web.LandingLinks{
			{Address: c.metricsPath, Text: "Metrics"},
			{Address: "/-/healthy", Text: "Health"},
			{Address: "/-/ready", Text: "Readiness"},
		},
	})
	if err != nil {
		return nil, err
	}
	mux.Handle("/", landing)
	return mux, nil
}
