package sli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// file is an SLO file of one engine; %s stands for its objectives.
func file(t *testing.T, engine, objectives string) *slo.File {
	t.Helper()
	f, err := slo.Parse("slo.yaml", []byte(fmt.Sprintf(`apiVersion: firstbreach/v1
service: chat
engine: %s
selectors: {engine: {job: serving}, host: {job: exporter}, gpu: {job: exporter}, probe: {job: probe}}
owners: {team: {contact: '#team'}}
objectives:
%s`, engine, objectives)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// thresholds are on an edge of each engine's histograms.
const everySignal = `
- {name: ttft, layer: user, signal: time_to_first_token, p95: THRESHOLD}
- {name: duration, layer: user, signal: request_duration, p95: THRESHOLD}
- {name: tpot, layer: user, signal: time_per_output_token, p95: THRESHOLD}
- {name: success, layer: user, signal: success_ratio, target: 99%}
- {name: timeouts, layer: user, signal: timeout_ratio, target: 99%}
- {name: waiting, layer: service, signal: requests_waiting, max: 4}
- {name: kv, layer: service, signal: kv_cache_usage, max: 90%}
- {name: queue, layer: service, signal: queue_time, max: 2s}
- {name: rejections, layer: service, signal: rejections, max: 1/s}
- {name: cpu, layer: resource, signal: cpu_utilization, max: 90%}
- {name: memory, layer: resource, signal: memory_utilization, max: 90%}
- {name: gpu, layer: resource, signal: gpu_memory_utilization, max: 95%}
- {name: capacity, layer: user, signal: capacity, min_concurrency: 4}
`

// For every engine, every objective becomes PromQL that parses, or an error that says why not.
func TestExpressions(t *testing.T) {
	var out strings.Builder
	for _, engine := range signal.Names() {
		threshold := "10s"
		if engine == signal.Triton {
			threshold = "5s"
		}
		if engine == signal.OTel {
			threshold = "10s"
		}
		f := file(t, engine, strings.ReplaceAll(everySignal, "THRESHOLD", threshold))
		for _, o := range f.Objectives {
			fmt.Fprintf(&out, "%s %s\n%s\n", engine, o.Name, describe(t, f, o))
		}
	}
	if *update {
		if err := os.WriteFile("testdata/expressions.txt", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/expressions.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Error(diff)
	}
}

func describe(t *testing.T, f *slo.File, o slo.Objective) string {
	t.Helper()
	var e promexpr.Expr
	var notes []string
	switch {
	case o.Kind.PerRequest():
		r, err := NewRatio(f, o)
		if err != nil {
			return indent("refused: " + err.Error())
		}
		e, notes = promexpr.Div(r.Bad(IncreaseOver(time.Hour)), r.Total(IncreaseOver(time.Hour))), r.Notes
	case o.Kind == slo.Capacity:
		n, err := NewInFlight(f, o)
		if err != nil {
			return indent("refused: " + err.Error())
		}
		e = n.Value()
	default:
		v, err := NewValue(f, o)
		if err != nil {
			return indent("refused: " + err.Error())
		}
		e, notes = v.Value(), v.Notes
	}
	if _, err := promexpr.ParseVector(e.String()); err != nil {
		t.Errorf("%s %s: %v", f.Engine, o.Name, err)
	}
	text := parser.Prettify(e)
	for _, n := range notes {
		text += "\nnote: " + n
	}
	return indent(text)
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
