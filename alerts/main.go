// Command alerts generates Prometheus rules, their unit tests and the Alertmanager's routing from SLO
// files. It only reads flags; the work is in the packages beside it.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/alecthomas/kingpin/v2"

	"firstbreach/alerts/output"
	"firstbreach/alerts/routing"
	"firstbreach/alerts/rules"
	"firstbreach/internal/capacity"
	"firstbreach/internal/generated"
	"firstbreach/internal/release"
	"firstbreach/internal/slo"
	"firstbreach/internal/strictyaml"
)

//go:generate go run . --slo slo.yaml --out .

func main() {
	generated.CollectSeldom()
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// config is what the flags say.
type config struct {
	slos, capacities []string
	out, base        string
	format           string
	check, quiet     bool
	options          rules.Options
}

func flags(c *config, stdout, stderr io.Writer) *kingpin.Application {
	app := kingpin.New("alerts", "Generates Prometheus rules, their unit tests and the Alertmanager's routing from SLO files.")
	app.HelpFlag.Short('h')
	app.UsageWriter(stdout).ErrorWriter(stderr)
	app.Version("alerts " + release.Version())
	app.Flag("slo", "SLO file; repeat it for several services.").Default("alerts/slo.yaml").PlaceHolder("FILE").StringsVar(&c.slos)
	app.Flag("out", "Folder for the generated files.").Default("alerts").PlaceHolder("DIR").StringVar(&c.out)
	app.Flag("capacity", "What a load test showed to hold, as analyze report --write-capacity writes it; repeat it for several services. Default: capacity.yaml beside each SLO file, where there is one.").
		PlaceHolder("FILE").StringsVar(&c.capacities)
	app.Flag("alertmanager.base", "File with global: and receivers: of your Alertmanager. A contact \"receiver:NAME\" names one of them.").PlaceHolder("FILE").StringVar(&c.base)
	app.Flag("dashboard.url", "Address of your Grafana; alerts then link to the service's dashboard.").PlaceHolder("URL").StringVar(&c.options.DashboardURL)
	app.Flag("report.url", "Address of analyze serve; alerts then link to the last report.").PlaceHolder("URL").StringVar(&c.options.ReportURL)
	app.Flag("format", "prometheus: rule files, their tests and the Alertmanager's routing. kubernetes: one PrometheusRule for each service, for the Prometheus Operator.").
		Default(formatPrometheus).EnumVar(&c.format, formatPrometheus, formatKubernetes)
	app.Flag("check", "Write nothing; fail when the files that are there are not what would be written.").BoolVar(&c.check)
	app.Flag("quiet", "Don't print the notes. They stand in the rule files as well.").Short('q').BoolVar(&c.quiet)
	return app
}

// What --format takes.
const (
	formatPrometheus = "prometheus"
	formatKubernetes = "kubernetes"
)

// command is the whole program; it returns its exit status.
func command(args []string, stdout, stderr io.Writer) int {
	var c config
	app := flags(&c, stdout, stderr)
	ended := -1
	app.Terminate(func(status int) { ended = status }) // --help and --version
	_, err := app.Parse(args)
	if ended >= 0 {
		return ended
	}
	if err != nil {
		fmt.Fprintf(stderr, "alerts: %v; see alerts --help\n", err)
		return generated.ExitUsage
	}
	files, err := c.generate(stderr)
	program := generated.Program{Name: "alerts", Dir: c.out, Check: c.check, Ours: output.Ours}
	if c.format == formatKubernetes {
		program.Ours = output.OursKubernetes
	}
	return program.Finish(files, err, stdout, stderr)
}

// generate makes every file in memory: either all of them can be written, or nothing is.
func (c *config) generate(stderr io.Writer) ([]generated.File, error) {
	slos, err := slo.LoadAll(c.slos)
	if err != nil {
		return nil, err
	}
	var errs []error
	var files []generated.File
	measured, err := c.measured(slos)
	if err != nil {
		return nil, err
	}
	for _, f := range slos {
		made, err := c.rules(f, measured[f.Service], stderr)
		errs = append(errs, err)
		files = append(files, made...)
	}
	if err := strictyaml.Join(errs...); err != nil {
		return nil, err
	}
	if c.format == formatKubernetes {
		return files, nil
	}
	routed, err := c.routing(slos)
	return append(files, routed...), err
}

// routing makes the Alertmanager's files.
func (c *config) routing(slos []*slo.File) ([]generated.File, error) {
	var base routing.Base
	var err error
	if c.base != "" {
		if base, err = routing.LoadBase(c.base); err != nil {
			return nil, err
		}
	}
	config, err := routing.Make(slos, base)
	if err != nil {
		return nil, err
	}
	return output.Routing(slos, config)
}

func (c *config) rules(f *slo.File, measured *capacity.File, stderr io.Writer) ([]generated.File, error) {
	opts := c.options
	opts.Capacity = measured
	set, err := rules.Make(f, opts)
	if err != nil {
		return nil, err
	}
	if !c.quiet {
		for _, n := range set.Notes {
			fmt.Fprintf(stderr, "%s: %s\n", f.Path, n)
		}
	}
	if c.format == formatKubernetes {
		return output.Kubernetes(f, set)
	}
	return output.Rules(f, set)
}

// measured are the capacity files by service.
func (c *config) measured(slos []*slo.File) (map[string]*capacity.File, error) {
	paths := c.capacities
	if len(paths) == 0 {
		paths = beside(slos)
	}
	files := map[string]*capacity.File{}
	for _, path := range paths {
		m, err := capacity.Load(path)
		if err != nil {
			return nil, err
		}
		if files[m.Service] == nil {
			files[m.Service] = m
		}
	}
	return files, nil
}

// beside are the capacity files that lie in the folders of the SLO files.
func beside(slos []*slo.File) []string {
	var paths []string
	for _, f := range slos {
		path := filepath.Join(filepath.Dir(f.Path), "capacity.yaml")
		if _, err := os.Stat(path); err == nil && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}
