package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"firstbreach/exporter/collector"
	"firstbreach/exporter/gpu"
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
	offset      time.Duration
	host        bool
	noDefaults  bool
	collectors  map[string]*bool
	named       map[string]*bool // collectors that a flag names, on or off
	suspended   bool
	exitOn      string
	processors  int
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
	app.Flag("collector.host", "Collect the machine: every collector but gpu.").Default("true").BoolVar(&c.host)
	app.Flag("collector.disable-defaults", "Collect only what a flag asks for by name.").BoolVar(&c.noDefaults)
	c.collectors = map[string]*bool{}
	for _, name := range collector.Names() {
		if name != "process" {
			c.collectors[name] = app.Flag("collector."+name, "Collect "+about(name)+".").Default("true").
				IsSetByUser(c.asked(name)).Bool()
		}
	}
	app.Flag("collector.disk.device-include", "Regular expression of the whole name of the disks to collect.").StringVar(&c.options.DiskInclude)
	app.Flag("collector.disk.device-exclude", "Regular expression of the whole name of the disks not to collect.").StringVar(&c.options.DiskExclude)
	app.Flag("collector.process.match", "Also collect CPU time and memory of the processes whose name or command line has a part that fits this regular expression.").StringVar(&c.options.Processes)
	app.Flag("collector.gpu.interval", "Time between two samples of the GPUs.").Default("1s").DurationVar(&c.options.GPUInterval)
	app.Flag("collector.gpu.timeout", "Time after which a GPU that doesn't answer is given up until it does.").Default("5s").DurationVar(&c.options.GPU.Timeout)
	app.Flag("collector.gpu.processes", "Also collect the GPU memory of each process.").BoolVar(&c.options.GPU.Processes)
	app.Flag("collector.gpu.pcie-throughput", "Also measure PCIe throughput, which holds each GPU's driver for 40 ms every 10 s.").BoolVar(&c.options.GPU.PCIeThroughput)
	app.Flag("collector.gpu.skip", "Function of NVML that is not called, such as nvmlDeviceGetRemappedRows. Repeatable.").StringsVar(&c.options.GPU.Skip)
	app.Flag("collector.gpu.skip-suspended", "Don't begin to read GPUs while one of them is in runtime suspend: it would wake up.").BoolVar(&c.suspended)
	app.Flag("nvml.library-path", "Path of libnvidia-ml.so.1, where the linker doesn't find it.").StringVar(&c.options.GPU.Library)
	app.Flag("nvml.exit-on", "End with status 1, for a supervisor to start the exporter again: mismatch, when the driver was replaced under it; down, whenever GPUs can't be read; never.").
		Default("never").EnumVar(&c.exitOn, "never", "mismatch", "down")
	app.Flag("collector.timeout", "Time that a scrape waits for one collector, where the scraper doesn't ask for less.").
		Default(collector.DefaultTimeout.String()).DurationVar(&c.options.Timeout)
	app.Flag("web.timeout-offset", "Part of the scraper's time-out that is left for sending the page, a fifth of it at most.").
		Default(collector.DefaultOffset.String()).DurationVar(&c.offset)
	app.Flag("runtime.gomaxprocs", "Processors that the exporter runs on at once: more make it no faster, and take more time altogether. 0 leaves it to Go.").
		Envar("GOMAXPROCS").Default("1").IntVar(&c.processors)
	promslogflag.AddFlags(app, &c.log)
	return app
}

// asked returns where it is noted that the collector was named by a flag.
func (c *config) asked(name string) *bool {
	if c.named == nil {
		c.named = map[string]*bool{}
	}
	c.named[name] = new(bool)
	return c.named[name]
}

// about says what a collector collects.
func about(name string) string {
	return map[string]string{
		"cpu":      "CPU time, interrupts and context switches",
		"memory":   "memory and swap",
		"paging":   "what moves between memory and disk",
		"disk":     "disks",
		"pressure": "pressure stall information",
		"load":     "the load average",
		"info":     "what the machine runs",
		"gpu":      "NVIDIA GPUs",
	}[name]
}

// off returns the names of the collectors that are left out.
func (c *config) off() []string {
	var names []string
	for name, on := range c.collectors {
		if !*on || c.noDefaults && !*c.named[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
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
		if errors.Is(err, collector.ErrOptions) {
			return exitUsage
		}
		return exitFailed
	}
	return exitOK
}

// check refuses what can't work.
func (c *config) check() error {
	switch {
	case c.nothing():
		return errors.New("nothing to collect: leave --collector.host or --collector.gpu on")
	case slices.ContainsFunc(c.options.GPU.Skip, func(f string) bool { return !slices.Contains(gpu.Functions(), f) }):
		return fmt.Errorf("--collector.gpu.skip=%s: one of them is no function that is called; there are %s", strings.Join(c.options.GPU.Skip, ","), strings.Join(gpu.Functions(), ", "))
	case c.options.GPU.Timeout < 100*time.Millisecond:
		return fmt.Errorf("--collector.gpu.timeout=%v is too short: 100ms or more", c.options.GPU.Timeout)
	case c.offset < 0:
		return fmt.Errorf("--web.timeout-offset=%v must not be negative", c.offset)
	case c.metricsPath == "" || c.metricsPath[0] != '/':
		return fmt.Errorf("--web.telemetry-path=%q must begin with /", c.metricsPath)
	case c.processors < 0:
		return fmt.Errorf("--runtime.gomaxprocs=%d must not be negative", c.processors)
	case c.maxRequests < 0:
		return fmt.Errorf("--web.max-requests=%d must not be negative", c.maxRequests)
	case c.options.GPUInterval < 100*time.Millisecond:
		return fmt.Errorf("--collector.gpu.interval=%v is too short: 100ms or more", c.options.GPUInterval)
	case c.options.Timeout <= 0:
		return fmt.Errorf("--collector.timeout=%v must be more than 0", c.options.Timeout)
	}
	if err := c.expressions(); err != nil {
		return err
	}
	if err := web.Validate(*c.web.WebConfigFile); err != nil {
		return fmt.Errorf("--web.config.file: %w", err)
	}
	return nil
}

// expressions refuses regular expressions that don't compile, by the flag that each is of.
func (c *config) expressions() error {
	o := c.options
	for _, e := range []struct{ flag, text string }{
		{"collector.disk.device-include", o.DiskInclude},
		{"collector.disk.device-exclude", o.DiskExclude},
		{"collector.process.match", o.Processes},
	} {
		if _, err := regexp.Compile(e.text); err != nil {
			return fmt.Errorf("--%s=%q is no regular expression: %w", e.flag, e.text, err)
		}
	}
	if o.DiskInclude != "" && o.DiskExclude != "" {
		return errors.New("--collector.disk.device-include and --collector.disk.device-exclude: give one of them")
	}
	return nil
}

// nothing reports whether every collector is off.
func (c *config) nothing() bool {
	off := c.off()
	left := len(c.collectors) - len(off)
	gpuOn := !slices.Contains(off, "gpu")
	if gpuOn {
		left--
	}
	return !gpuOn && (!c.host || left == 0 && c.options.Processes == "")
}

// serve collects and serves until ctx ends.
func serve(ctx context.Context, c *config) error {
	log := promslog.New(&c.log)
	log.Info("Starting "+name, "version", version.Info(), "build", version.BuildContext())
	c.options.NoHost, c.options.Off, c.options.Logger = !c.host, c.off(), log
	if c.suspended {
		c.options.GPU.Suspended = func() bool { return gpu.Suspended(c.options.SysFS) }
	}
	set, err := collector.New(c.options)
	switch {
	case errors.Is(err, collector.ErrOptions):
		return err
	case err != nil:
		return fmt.Errorf("%w (--path.procfs says where /proc is)", err)
	}
	defer set.Close()

	if c.offset == 0 {
		c.offset = -1 // nothing; zero would be the usual
	}
	handler, err := c.pages(collector.Handler(set, collector.HandlerOptions{
		Also: c.own(), MaxRequests: c.maxRequests, Offset: c.offset, Logger: log,
	}))
	if err != nil {
		return err
	}
	var lost error // why the exporter ends itself
	ctx, end := context.WithCancel(ctx)
	defer end()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		lost = c.watch(ctx, set)
		end()
	}()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		log.Info("Stopping")
		short, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if server.Shutdown(short) != nil {
			server.Close()
		}
	})
	runtime.GOMAXPROCS(c.processors) // a 0 changes nothing
	err = web.ListenAndServe(server, c.web, log)
	if !stop() {
		<-stopped
		<-watched
		return lost
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: another process has the port; end it, or choose a free one with --web.listen-address", err)
	}
	return err
}

// stopTime is how long scrapes that are under way get to end. With the second that the sampling of
// GPUs may take to end, that is under the two seconds after which a supervisor gets impatient.
const stopTime = 500 * time.Millisecond

// watch lets go of the GPUs on SIGHUP, and returns an error when they can't be read and the
// exporter is to end then. It returns nil when ctx ends.
func (c *config) watch(ctx context.Context, set *collector.Set) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	var look <-chan time.Time
	if c.exitOn != "never" {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		look = tick.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
			set.Release()
		case <-look:
			sampled, up, reason := set.GPUState()
			if !sampled || up || !c.ends(reason) {
				continue
			}
			return fmt.Errorf("the GPUs can't be read: %s; ending, as --nvml.exit-on=%s asks for", reason, c.exitOn)
		}
	}
}

// ends reports whether the exporter is to end for this reason, where it is to end for any.
func (c *config) ends(reason string) bool {
	switch reason {
	case gpu.ReasonStarting, gpu.ReasonReleased, gpu.ReasonSuspended:
		return false
	case gpu.LibVersionMismatch.String():
		return true
	}
	return c.exitOn == "down"
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
