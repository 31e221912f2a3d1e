//go:build cgo

package boards

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"firstbreach/analyze/store"
	"firstbreach/exporter/collector"
	"firstbreach/exporter/gpu"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/probe"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/run"
	"firstbreach/loadgen/sim"
)

// scrape is how often the stack's store scrapes.
const scrape = time.Second

// stack is what fills the dashboards of some SLO files, in one process and with nothing of it a stand-in
// but engine, GPUs and /proc: the simulated engine, the exporter, the probe, a load test, and a store that
// scrapes them under the job names of the SLO files and evaluates the rules generated from them.
type stack struct {
	store *store.Store
	begin time.Time
}

// runStack starts everything, does a load test, and leaves the probe and the store running.
func runStack(t *testing.T, files ...*slo.File) *stack {
	t.Helper()
	engine, host := startEngine(t), exporterPage(t)
	p, all := shortPlan(t, engine), together(files)
	runner := startRun(t, all, p)
	load := httptest.NewServer(runner.Handler())
	t.Cleanup(load.Close)
	asked := startProbe(t, all, p)
	o := store.Options{Dir: t.TempDir(), ScrapeInterval: scrape, Targets: []store.Target{{Job: "loadgen", URL: load.URL}}}
	jobs := map[string]bool{}
	scraped := func(url string, selector, labels map[string]string) {
		if job := selector["job"]; !jobs[job] {
			jobs[job] = true
			o.Targets = append(o.Targets, store.Target{Job: job, URL: url, Labels: labels})
		}
	}
	for _, f := range files {
		o.RuleFiles = append(o.RuleFiles, ruleFile(t, f))
		scraped(engine+"/metrics", f.Selectors.Engine, onTarget())
		scraped(host, f.Selectors.Host, onTarget())
		scraped(asked, f.Selectors.Probe, nil)
	}
	s := &stack{begin: time.Now()}
	var err error
	if s.store, err = store.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(runner.RunRounds(t.Context()), runner.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return s
}

// together is one file with the objectives of all: one run and one probe have the bucket edges of each.
func together(files []*slo.File) *slo.File {
	all := *files[0]
	all.Objectives = nil
	for _, f := range files {
		for _, o := range f.Objectives {
			o.Name = f.Service + "-" + o.Name
			all.Objectives = append(all.Objectives, o)
		}
	}
	return &all
}

func onTarget() map[string]string { return map[string]string{signal.LabelRole: signal.RoleTarget} }

// startEngine starts the simulated engine. It fails a third of its requests, so that alerts fire and a
// level is over its allowance, and turns some away when there are many.
func startEngine(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := sim.Default()
	cfg.ErrorShare, cfg.MaxRequests, cfg.RejectDelay = 0.34, 6, 20*time.Millisecond
	background(t, func(ctx context.Context) error { return sim.Serve(ctx, cfg, l, slog.New(slog.DiscardHandler)) })
	return "http://" + l.Addr().String()
}

// background runs something until the test ends, and waits for its end.
func background(t *testing.T, do func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := do(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); wait.Wait() })
}

// shortPlan is a ladder of two levels; the second is more than the engine takes at once.
func shortPlan(t *testing.T, engine string) *plan.Plan {
	t.Helper()
	p, err := plan.Parse("plan.yaml", fmt.Appendf(nil, `apiVersion: firstbreach/v1
environment: isolated
target: {url: %q, api: openai-chat, model: sim, metrics: "%[1]s/metrics"}
fixed:
  prompts: {synthetic: {input_tokens: 46}}
  output_tokens: 5
rounds: 1
baseline: {concurrency: 1}
ramp: {concurrency: [1, 10]}
recovery: {concurrency: 1}
step: {requests: 10, min_duration: 2s, max_duration: 10s}
cooldown: 100ms
timeouts: {connect: 2s, first_token: 5s, idle: 5s, total: 10s}
stop: {error_ratio: 0.99, after: 1000}
`, engine))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func startRun(t *testing.T, f *slo.File, p *plan.Plan) *run.Runner {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := record.CreateDir(dir); err != nil {
		t.Fatal(err)
	}
	r, err := run.Start(t.Context(), run.Options{
		Plan: p, SLO: f, RunID: "r1", Dir: dir, Version: "test", ScrapeWait: 30 * time.Second, FinalWait: 30 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// startProbe probes as `loadgen probe` does, only oftener.
func startProbe(t *testing.T, f *slo.File, p *plan.Plan) string {
	t.Helper()
	target, err := run.NewTarget(p, "probe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	steady := record.NewSteady(f.Objectives, time.Now())
	background(t, probe.Probe{
		Every: 200 * time.Millisecond, MaxInFlight: 4, Sender: target, Recorder: steady, Grace: time.Second, Log: slog.New(slog.DiscardHandler),
		Body: func(n int) []byte { return target.Body(plan.Stage{Phase: "probe", Round: 1, Step: 1}, n) },
	}.Run)
	return served(t, steady)
}

// served is the address of a page with a collector's metrics.
func served(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	t.Cleanup(server.Close)
	return server.URL
}

// ruleFile writes the rules that the SLO file gives.
func ruleFile(t *testing.T, f *slo.File) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slo.rules.yml")
	if err := os.WriteFile(path, ruleText(t, f), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// exporterPage is the address of the exporter's page of a machine with two GPUs: the real collectors over
// the fake NVML of the exporter's tests, and a /proc whose counters grow.
func exporterPage(t *testing.T) string {
	t.Helper()
	set, err := collector.New(collector.Options{
		ProcFS: growingProc(t), SysFS: machine + "/sys",
		GPUInterval: scrape, GPU: gpu.Options{Library: fakeNVML(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	server := httptest.NewServer(collector.Handler(set, collector.HandlerOptions{}))
	t.Cleanup(server.Close)
	return server.URL
}

// fakeNVML builds the fake library of the exporter's tests.
func fakeNVML(t *testing.T) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to build the fake NVML with")
	}
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if out, err := exec.Command(gcc, "-shared", "-fPIC", "-o", library, "../../exporter/testdata/nvml.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v: %s", err, out)
	}
	return library
}

// machine is the recorded machine whose /proc the exporter reads.
const machine = "../../exporter/host/testdata/metal-6.8"

// growingProc is a copy of that machine's /proc. Every counter that isn't 0 grows by 1 with each scrape.
func growingProc(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(machine+"/proc")); err != nil {
		t.Fatal(err)
	}
	names := map[string]int{"stat": 1, "vmstat": 1, "diskstats": 3} // and how many words name a line
	texts := map[string]string{}
	for name := range maps.Keys(names) {
		texts[name] = string(page(t, filepath.Join(dir, name)))
	}
	background(t, func(ctx context.Context) error {
		tick := time.NewTicker(scrape)
		defer tick.Stop()
		for by := uint64(1); ; by++ {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			for name, words := range names {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path+".new", []byte(grown(texts[name], words, by)), 0o644); err != nil {
					return err
				}
				if err := os.Rename(path+".new", path); err != nil {
					return err
				}
			}
		}
	})
	return dir
}

// grown adds to the numbers of each line that come after the words that name it.
func grown(text string, words int, by uint64) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		for i, field := range strings.Fields(line) {
			var n uint64
			if _, err := fmt.Sscanf(field, "%d", &n); i >= words && err == nil && n > 0 {
				field = fmt.Sprint(n + by)
			}
			out.WriteString(field + " ")
		}
		out.WriteString("\n")
	}
	return out.String()
}
