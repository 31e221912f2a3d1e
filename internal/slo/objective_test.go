package slo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"firstbreach/internal/signal"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// around puts objectives into a file that is right otherwise.
func around(objectives string) []byte {
	return []byte("apiVersion: firstbreach/v1\nservice: chat\nengine: vllm\nowners: {team: {contact: '#team'}, search: {contact: s}}\nobjectives:\n" +
		"- {name: base, layer: user, signal: success_ratio, target: 99%}\n" + objectives)
}

func float(f float64) *float64 { return &f }

func TestObjectives(t *testing.T) {
	target := func(text string) Target {
		t.Helper()
		got, err := ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, c := range []struct {
		yaml string
		want Objective
	}{
		{"{name: a, layer: user, signal: time_to_first_token, threshold: 750ms, target: 95%}",
			Objective{Name: "a", Layer: User, Kind: Latency, Signal: SignalTTFT, Threshold: 750 * time.Millisecond, Target: target("95%")}},
		{"{name: a, layer: user, signal: request_duration, p50: 1.5s}",
			Objective{Name: "a", Layer: User, Kind: Latency, Signal: SignalDuration, Threshold: 1500 * time.Millisecond, Target: target("50%")}},
		{"{name: a, layer: user, signal: time_per_output_token, p90: 1m}",
			Objective{Name: "a", Layer: User, Kind: Latency, Signal: SignalTPOT, Threshold: time.Minute, Target: target("90%")}},
		{"{name: a, layer: user, signal: inter_chunk_latency, p99: 80 ms}",
			Objective{Name: "a", Layer: User, Kind: Latency, Signal: SignalICL, Threshold: 80 * time.Millisecond, Target: target("99%")}},
		{"{name: a, layer: user, signal: time_to_first_token, p99.9: 2s}",
			Objective{Name: "a", Layer: User, Kind: Latency, Signal: SignalTTFT, Threshold: 2 * time.Second, Target: target("99.9%")}},
		{"{name: a, layer: user, signal: timeout_ratio, target: 99.9 %, owner: team, action: Look., runbook: 'https://x.example/y'}",
			Objective{Name: "a", Layer: User, Kind: Timeouts, Signal: SignalTimeouts, Target: target("99.9%"), Owner: "team", Action: "Look.", Runbook: "https://x.example/y"}},
		{"{name: a, layer: user, signal: capacity, min_concurrency: 4}",
			Objective{Name: "a", Layer: User, Kind: Capacity, Signal: SignalCapacity, MinConcurrency: 4}},
		{"{name: a, layer: user, signal: recovery, within: 1m30s}",
			Objective{Name: "a", Layer: User, Kind: Recovery, Signal: SignalRecovery, Within: 90 * time.Second}},
		{"{name: a, layer: service, signal: requests_waiting, max: 4, for: 2m}",
			Objective{Name: "a", Layer: Service, Kind: Gauge, Signal: "requests_waiting", Max: float(4), For: 2 * time.Minute}},
		{"{name: a, layer: resource, signal: gpu_utilization, max: 95%, min: 0.07}",
			Objective{Name: "a", Layer: Resource, Kind: Gauge, Signal: "gpu_utilization", Max: float(0.95), Min: float(0.07)}},
		{"{name: a, layer: service, promql: 'histogram_quantile(0.95, x)', max: 0.2}",
			Objective{Name: "a", Layer: Service, Kind: Expression, PromQL: "histogram_quantile(0.95, x)", Max: float(0.2)}},
		{"{name: a, layer: resource, promql: 'a - b', min: -0.5}",
			Objective{Name: "a", Layer: Resource, Kind: Expression, PromQL: "a - b", Min: float(-0.5)}},
	} {
		f, err := Parse("slo.yaml", around("- "+c.yaml+"\n"))
		if err != nil {
			t.Errorf("%s:\n%v", c.yaml, err)
			continue
		}
		c.want.Line = 7
		if diff := cmp.Diff(c.want, f.Objectives[1]); diff != "" {
			t.Errorf("%s:\n%s", c.yaml, diff)
		}
	}
}

// The short form is the long form.
func TestShortForm(t *testing.T) {
	short, err := Parse("slo.yaml", around("- {name: a, layer: user, signal: time_to_first_token, p95: 750ms}\n"))
	if err != nil {
		t.Fatal(err)
	}
	long, err := Parse("slo.yaml", around("- {name: a, layer: user, signal: time_to_first_token, threshold: 0.75s, target: 95.0%}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(long, short, cmpopts.IgnoreFields(File{}, "Source")); diff != "" {
		t.Error(diff)
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		signal, max string
		want        float64
	}{
		{"gpu_utilization", "95%", 0.95}, {"gpu_utilization", "0.95", 0.95}, {"cpu_utilization", "7 %", 0.07}, {"kv_cache_usage", "100%", 1},
		{"memory_used", "8GiB", 8 << 30}, {"memory_used", "16 GB", 16e9}, {"swap_used", "0", 0}, {"gpu_memory_used", "80Gi", 80 << 30},
		{"disk_read_bytes", "200MB/s", 200e6}, {"disk_written_bytes", "1.5GB", 1.5e9},
		{"queue_time", "300ms", 0.3}, {"queue_time", "2s", 2}, {"queue_time", "0", 0},
		{"gpu_power", "300W", 300}, {"gpu_power", "0.7kW", 700}, {"gpu_temperature", "85°C", 85},
		{"preemptions", "5/s", 5}, {"output_tokens", "1e3", 1000}, {"prompt_tokens", "1000/s", 1000}, {"requests_running", "256", 256},
	} {
		s, ok := signal.Get(c.signal)
		if !ok {
			t.Errorf("no signal %s", c.signal)
			continue
		}
		f, err := Parse("slo.yaml", around(fmt.Sprintf("- {name: a, layer: %s, signal: %s, max: %s}\n", s.Layer, c.signal, c.max)))
		if err != nil {
			t.Errorf("%s: %s: %v", c.signal, c.max, err)
			continue
		}
		if got := *f.Objectives[1].Max; got != c.want {
			t.Errorf("%s: %s = %v, want %v", c.signal, c.max, got, c.want)
		}
	}
	f, err := Parse("slo.yaml", around("- {name: a, layer: service, promql: up, max: 200ms}\n"))
	if err != nil || *f.Objectives[1].Max != 0.2 {
		t.Errorf("promql with 200ms: %v", err)
	}
}

// Each entry is one fault; what the reader is told must name the key, the fault and a way out.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ objective, want string }{
		{"{name: a, layer: user, signal: time_to_first_token, p95: 750ms, p99: 2s}", "p99: stands beside p95 (fix: write one objective for each)"},
		{"{name: a, layer: user, signal: time_to_first_token, p95: 750ms, threshold: 1s}", "threshold: stands beside p95"},
		{"{name: a, layer: user, signal: time_to_first_token, threshold: 1s}", "target: is missing (fix: write the share"},
		{"{name: a, layer: user, signal: time_to_first_token, target: 95%}", "threshold: is missing"},
		{"{name: a, layer: user, signal: time_to_first_token, p95: 0s}", "p95: must be greater than 0"},
		{"{name: a, layer: user, signal: time_to_first_token, p95: 750}", `p95: "750" has no unit (fix: write the unit: 750s, 750ms or 750m)`},
		{"{name: a, layer: user, signal: success_ratio, target: 100%}", "target: 100% leaves no error budget"},
		{"{name: a, layer: user, signal: success_ratio, target: 0.9}", "target: has no percent sign (fix: write it as a percentage: 90%)"},
		{"{name: a, layer: user, signal: success_ratio, target: 101%}", "target: 101% is more than 100%"},
		{"{name: a, layer: user, signal: success_ratio}", "target: is missing"},
		{"{name: a, layer: user, signal: success_ratio, p95: 1s, target: 99%}", "p95: has no meaning for signal success_ratio"},
		{"{name: a, layer: user, signal: capacity, min_concurrency: 0}", "min_concurrency: must be at least 1"},
		{"{name: a, layer: user, signal: capacity}", "min_concurrency: is missing"},
		{"{name: a, layer: user, signal: capacity, min_concurrency: 4, target: 99%}", "target: has no meaning for signal capacity"},
		{"{name: a, layer: user, signal: recovery}", "within: is missing"},
		{"{name: a, layer: user, signal: recovery, within: -2m}", `within: "-2m" is negative`},
		{"{name: a, layer: user, signal: queue_time, max: 1s}", "layer: signal queue_time belongs to layer service, not user (fix: write layer: service)"},
		{"{name: a, layer: service, signal: time_to_first_token, p95: 1s}", "layer: signal time_to_first_token belongs to layer user, not service"},
		{"{name: a, layer: users, signal: success_ratio, target: 99%}", `layer: unknown value "users" (fix: did you mean user?)`},
		{"{name: a, signal: success_ratio, target: 99%}", "layer: is missing (fix: write layer: user)"},
		{"{name: a, layer: service, signal: request_waiting, max: 4}", `signal: unknown signal "request_waiting" (fix: did you mean requests_waiting?)`},
		{"{name: a, layer: resource, signal: bogosity, max: 4}", `signal: unknown signal "bogosity" (fix: write one of cpu_utilization,`},
		{"{name: a, signal: requests_waiting, max: 4}", "layer: is missing (fix: write layer: service)"},
		{"{name: a, layer: service, signal: requests_waiting}", "has neither max nor min"},
		{"{name: a, layer: service, signal: requests_waiting, max: 4, min: 4}", "min: is not below max"},
		{"{name: a, layer: service, signal: requests_waiting, max: -1}", "max: is negative"},
		{"{name: a, layer: service, signal: requests_waiting, max: 4 apples}", `max: unknown unit "apples"`},
		{"{name: a, layer: service, signal: requests_waiting, max: 95%}", `max: "%" is not a unit of this signal`},
		{"{name: a, layer: service, signal: queue_time, max: 2}", "max: a time needs a unit"},
		{"{name: a, layer: resource, signal: gpu_utilization, max: 95}", "max: 95 is not a ratio between 0 and 1 (fix: write 95%)"},
		{"{name: a, layer: service, promql: ' ', max: 4}", "promql: is empty"},
		{"{name: a, layer: service, promql: 'sum((', max: 4}", "promql: PromQL: 1:6: parse error: unclosed left parenthesis (fix: write an expression"},
		{"{name: a, layer: service, promql: 'up[5m]', max: 4}", "promql: PromQL: the expression gives a range vector; write one that gives an instant vector or a scalar (fix: write"},
		{"{name: a, layer: user, promql: up, max: 4}", "layer: a promql objective belongs to layer service or resource"},
		{"{name: a, layer: service, promql: up, signal: queue_time, max: 4}", "promql: stands beside signal"},
		{"{name: a, layer: service, promql: up, max: 4, target: 99%}", "target: has no meaning for a promql objective"},
		{"{name: a, layer: service, max: 4}", "signal: is missing"},
		{"{layer: service, promql: up, max: 4}", "name: is missing"},
		{"{name: base, layer: service, promql: up, max: 4}", "the name base is used twice, first on line 6"},
		{"{name: 'a b', layer: service, promql: up, max: 4}", "name: \"a b\" can't be used as a label"},
		{"{name: a, layer: service, promql: up, max: 4, owner: team}", "owner: without action it would never alert"},
		{"{name: a, layer: service, promql: up, max: 4, action: Look.}", "action: without owner it would never alert"},
		{"{name: a, layer: service, promql: up, max: 4, owner: tema, action: Look.}", `owner: "tema" is not declared under owners (fix: did you mean team?`},
		{"{name: a, layer: service, promql: up, max: 4, owner: team, action: ''}", "action: is empty"},
		{"{name: a, layer: service, promql: up, max: 4, runbook: wiki/x}", `runbook: "wiki/x" is not a web address`},
		{"{name: a, layer: service, promql: up, max: 4, for: 2}", `for: "2" has no unit`},
		{"{name: a, layer: service, promql: up, max: 4, treshold: 2s}", "treshold: unknown key (fix: did you mean threshold?)"},
	} {
		_, err := Parse("slo.yaml", around("- "+c.objective+"\n"))
		if err == nil {
			t.Errorf("%s is taken", c.objective)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != 1 {
			t.Errorf("%s: %d faults for one:\n%v", c.objective, len(lines), err)
		}
		if !strings.HasPrefix(lines[0], "slo.yaml:7: objectives[1]") || !strings.Contains(lines[0], c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.objective, err, c.want)
		}
	}
}

func TestFileFaults(t *testing.T) {
	const objective = "objectives: [{name: a, layer: user, signal: success_ratio, target: 99%}]\n"
	const head = "apiVersion: firstbreach/v1\nservice: chat\nengine: vllm\n"
	for _, c := range []struct{ file, want string }{
		{"", "slo.yaml: is empty"},
		{"# nothing\n", "slo.yaml: is empty"},
		{"- a\n", "slo.yaml:1: must be a mapping"},
		{"service: chat\nengine: vllm\n" + objective, "apiVersion: is missing (fix: write apiVersion: firstbreach/v1)"},
		{"apiVersion: firstbreach/v1\nengine: vllm\n" + objective, "service: is missing"},
		{"apiVersion: firstbreach/v1\nservice: chat\n" + objective, "engine: is missing (fix: write one of vllm,"},
		{"apiVersion: firstbreach/v1\nservice: chat\nengine: ollama\n" + objective, "engine: Ollama has no metrics of its own (fix: write probe"},
		{head, "objectives: is missing"},
		{head + "objectives: []\n", "objectives: has no user objective that every request is judged by"},
		{head + "objectives: {a: 1}\n", "objectives: must be a list, not a mapping"},
		{head + "objectives: [{name: a, layer: user, signal: capacity, min_concurrency: 2}]\n", "objectives: has no user objective"},
		{head + "window: 400d\n" + objective, "window: an error budget is kept over 1d to 366d"},
		{head + "owners: {a: null}\n" + objective, "owners.a: has no value"},
		{head + "owners: {a: x}\n" + objective, "owners.a: must be a mapping"},
		{head + "owners: {a: {contact: ''}}\n" + objective, "owners.a.contact: is empty"},
		{head + "selectors: {engine: {__name__: x}}\n" + objective, "selectors.engine.__name__: the metric's name comes from the catalogue"},
		{head + objective + "---\n" + head, "slo.yaml:6: holds a second YAML document"},
		{head + "objectives: [\n", "is not valid YAML"},
	} {
		_, err := Parse("slo.yaml", []byte(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\n got %v\nwant %s", c.file, err, c.want)
		}
	}
	if _, err := Load("testdata/none.yaml"); err == nil || !strings.Contains(err.Error(), "testdata/none.yaml: can't be read: no such file") {
		t.Errorf("missing file: %v", err)
	}
}

// What objectives share may be written once, with a YAML anchor.
func TestAnchors(t *testing.T) {
	f, err := Parse("slo.yaml", around("- &a {name: a, layer: user, signal: time_to_first_token, p95: 1s, owner: team, action: Look.}\n- {<<: *a, name: b, p95: 2s}\n"))
	if err != nil {
		t.Fatal(err)
	}
	b := f.Objectives[2]
	if b.Name != "b" || b.Threshold != 2*time.Second || b.Owner != "team" || b.Signal != SignalTTFT {
		t.Errorf("%+v", b)
	}
}

// Each signal that this package names is one of the catalogue's, in the layer it is used in.
func TestSignalsAreTheCatalogues(t *testing.T) {
	for _, name := range userSignals {
		if name == SignalCapacity || name == SignalRecovery {
			continue // judgements over a finished run, not signals
		}
		if s, ok := signal.Get(name); !ok || s.Layer != string(User) {
			t.Errorf("%s: %+v, %v", name, s, ok)
		}
	}
}

// Whatever is written, Parse answers with a file or a list of faults that each have a text.
func FuzzParse(f *testing.F) {
	f.Add(string(around("- {name: a, layer: user, signal: time_to_first_token, p95: 750ms}\n")))
	f.Add("a: &a {<<: *a}\nobjectives: *a\n")
	f.Add("objectives:\n- &x [*x]\n- {name: *x, max: !!float 5}\n")
	f.Add("? [a]\n: b\n---\n%YAML\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f.yaml", []byte(text))
		if (file == nil) == (err == nil) {
			t.Fatalf("file %v, error %v", file, err)
		}
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Fatal("an error without a text")
		}
	})
}
