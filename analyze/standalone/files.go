package standalone

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/sim"
)

//go:embed demo.plan.yaml
var demoPlan []byte

//go:embed demo.slo.yaml
var demoSLO []byte

//go:embed target.plan.yaml
var targetPlan []byte

//go:embed target.slo.yaml
var targetSLO []byte

// The names under which faults of the built-in files are reported.
const (
	demoPlanName   = "(built-in plan)"
	targetPlanName = "(built-in plan)"
	builtInSLOName = "(built-in SLO)"
)

// files are the plan and the objectives of a run, as used.
type files struct {
	plan *plan.Plan
	slo  *slo.File
	// said tells people where each came from.
	planFrom, sloFrom string
}

// simulated reports whether the run is against the simulated engine.
func (o Options) simulated() bool { return o.Target.URL == "" && o.PlanFile == "" }

// load reads the files, or takes the built-in ones, before anything is started. The address of a
// simulated engine isn't known yet then: see at.
func (o Options) load(ctx context.Context) (*files, error) {
	f := &files{}
	var err error
	if f.plan, f.planFrom, err = o.loadPlan(ctx); err != nil {
		return nil, err
	}
	if f.slo, f.sloFrom, err = o.loadSLO(ctx, f.plan); err != nil {
		return nil, err
	}
	return f, errors.Join(f.plan.CheckEnvironment(o.AllowProduction), f.plan.CheckCommands(), f.plan.CheckObjectives(f.slo), o.checkSearch(f))
}

func (o Options) loadPlan(ctx context.Context) (p *plan.Plan, from string, err error) {
	switch {
	case o.simulated():
		p, err = plan.Parse(demoPlanName, demoPlan)
		return p, "built in", err
	case o.Target.URL == "":
		if p, err = plan.Load(o.PlanFile); err != nil {
			return nil, "", err
		}
		if p.Target.Metrics == "" {
			p.Target.Metrics = findMetrics(ctx, p.Target.URL)
		}
		return p, o.PlanFile, nil
	}
	name, src, from := targetPlanName, targetPlan, "built in"
	if o.PlanFile != "" {
		if p, err = plan.Load(o.PlanFile); err != nil {
			return nil, "", err
		}
		name, src, from = o.PlanFile, p.Source, o.PlanFile+", with the target of the command line"
	}
	if src, err = replace(src, "$.target", o.planTarget(ctx)); err != nil {
		return nil, "", fmt.Errorf("%s: put in the target of the command line: %w", name, err)
	}
	p, err = plan.Parse(name, src)
	return p, from, err
}

// target is the target section of a plan.
type target struct {
	URL         string            `yaml:"url"`
	API         string            `yaml:"api"`
	Model       string            `yaml:"model"`
	Metrics     string            `yaml:"metrics,omitempty"`
	HostMetrics string            `yaml:"host_metrics,omitempty"`
	APIKey      map[string]string `yaml:"api_key,omitempty"`
}

func (o Options) planTarget(ctx context.Context) target {
	t := target{URL: o.Target.URL, API: o.Target.API, Model: o.Target.Model, Metrics: o.Target.Metrics, HostMetrics: o.Target.HostMetrics}
	if t.Metrics == "" {
		t.Metrics = findMetrics(ctx, t.URL)
	}
	key := map[string]string{}
	if o.Target.KeyEnv != "" {
		key["env"] = o.Target.KeyEnv
	}
	if o.Target.KeyFile != "" {
		key["file"] = o.Target.KeyFile
		if abs, err := filepath.Abs(o.Target.KeyFile); err == nil {
			key["file"] = abs // in a plan it is relative to the plan's folder, here to the working directory
		}
	}
	if len(key) > 0 {
		t.APIKey = key
	}
	return t
}

// lookTime bounds one look at a page of the target before the run.
const lookTime = 3 * time.Second

// findMetrics returns the target's own metrics page if it has one where engines have it, else "".
func findMetrics(ctx context.Context, base string) string {
	u, err := url.Parse(base)
	if err != nil || u.User != nil {
		return ""
	}
	page := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/metrics"}).String()
	if engineAt(ctx, page) == "" {
		return ""
	}
	return page
}

// engineAt names the engine whose metrics a page carries, "" when it carries no engine's.
func engineAt(ctx context.Context, page string) string {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	p, err := signal.FetchPage(ctx, &http.Client{}, page)
	if err != nil {
		return ""
	}
	for _, e := range p.Detect() {
		if e.Name != signal.Probe {
			return e.Name
		}
	}
	return ""
}

func (o Options) loadSLO(ctx context.Context, p *plan.Plan) (f *slo.File, from string, err error) {
	switch {
	case o.SLOFile != "":
		f, err = slo.Load(o.SLOFile)
		return f, o.SLOFile, err
	case o.simulated():
		f, err = slo.Parse(builtInSLOName, demoSLO)
		return f, "built in", err
	}
	engine := signal.Probe // for an engine that has no metrics page: what the client sees
	if p.Target.Metrics != "" {
		if found := engineAt(ctx, p.Target.Metrics); found != "" {
			engine = found
		}
	}
	src, err := replace(targetSLO, "$.engine", engine)
	if err != nil {
		return nil, "", fmt.Errorf("%s: put in the engine: %w", builtInSLOName, err)
	}
	f, err = slo.Parse(builtInSLOName, src)
	return f, "built in; common values, not yours: write your own and name it with --slo", err
}

// at puts the address of the simulated engine into the plan.
func (f *files) at(base string) error {
	cfg := sim.Demo()
	src, err := replace(f.plan.Source, "$.target", target{URL: base, API: f.plan.Target.API, Model: cfg.Model, Metrics: base + "/metrics"})
	if err != nil {
		return fmt.Errorf("%s: put in the address of the simulated engine: %w", demoPlanName, err)
	}
	f.plan, err = plan.Parse(demoPlanName, src)
	return err
}

// replace puts a value in place of what stands at a YAML path, and leaves the rest of the text, its
// comments included.
func replace(src []byte, path string, value any) ([]byte, error) {
	file, err := parser.ParseBytes(src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	at, err := yaml.PathString(path)
	if err != nil {
		return nil, err
	}
	node, err := yaml.ValueToNode(value)
	if err != nil {
		return nil, err
	}
	if err := at.ReplaceWithNode(file, node); err != nil {
		return nil, err
	}
	return []byte(strings.TrimRight(file.String(), "\n") + "\n"), nil
}
