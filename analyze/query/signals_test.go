package query_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"firstbreach/analyze/query"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/slo"
)

func number(v float64) *float64 { return &v }

// engineAndMachine writes what a vLLM, a machine and two GPUs show during demoRun: quiet but in
// the ramp steps.
func (w *world) engineAndMachine(role string, until float64) {
	vllm := []string{"instance", "127.0.0.1:8000", "job", "vllm", "model_name", "m", "engine", "0"}
	host := []string{"instance", "127.0.0.1:10510", "job", "exporter"}
	if role != "" {
		host = append(host, "role", role)
	}
	and := func(base []string, kv ...string) []string { return append(append([]string(nil), base...), kv...) }
	var waited, queued, preempted, busy float64
	for t := 0.0; t < until; t++ {
		ramp := math.Mod(t, 24) >= 12
		waiting := 0.0
		if ramp {
			waiting = math.Mod(t, 2) * 8 // 8 in every other scrape
			waited += 3
			queued += 2
			preempted++
			busy += 0.75
		}
		w.put(t, waiting, "vllm:num_requests_waiting", vllm...)
		w.put(t, 2, "vllm:num_requests_running", vllm...)
		w.put(t, 0.5, "vllm:gpu_cache_usage_perc", vllm...) // the old name
		w.put(t, waited, "vllm:request_queue_time_seconds_sum", vllm...)
		w.put(t, queued, "vllm:request_queue_time_seconds_count", vllm...)
		w.put(t, preempted, "vllm:num_preemptions_total", vllm...)
		w.put(t, w.t0-1000, "process_start_time_seconds", vllm...)

		for cpu := range 2 {
			n := strconv.Itoa(cpu)
			w.put(t, 100+busy, "host_cpu_seconds_total", and(host, "cpu", n, "mode", "user")...)
			w.put(t, 900+t-busy, "host_cpu_seconds_total", and(host, "cpu", n, "mode", "idle")...)
			w.put(t, 7, "host_cpu_seconds_total", and(host, "cpu", n, "mode", "iowait")...)
		}
		w.put(t, 1000, "host_memory_total_bytes", host...)
		w.put(t, 250, "host_memory_available_bytes", host...)
		w.put(t, 0.1*t, "host_disk_io_time_seconds_total", and(host, "device", "sda")...)
		w.put(t, 0.4*t, "host_disk_io_time_seconds_total", and(host, "device", "sdb")...)
		w.put(t, 100*t, "host_disk_read_bytes_total", and(host, "device", "sda")...)
		w.put(t, 200*t, "host_disk_read_bytes_total", and(host, "device", "sdb")...)
		for gpu, load := range []float64{0.2, 0.9} {
			g := and(host, "uuid", "GPU-"+strconv.Itoa(gpu))
			w.put(t, load, "nvidia_gpu_utilization_ratio", g...)
			w.put(t, 100*load, "nvidia_gpu_power_watts", g...)
			w.put(t, 10*load, "nvidia_gpu_memory_used_bytes", g...)
			w.put(t, 20, "nvidia_gpu_memory_total_bytes", g...)
		}
	}
}

func TestReadings(t *testing.T) {
	w := newWorld(t)
	w.write(demoRun("r"))
	w.engineAndMachine("target", 80)
	w.engineAndMachine("client", 80) // the load generator's own machine, not asked for
	file := sloFile(t,
		slo.Objective{Name: "queue", Layer: slo.Service, Kind: slo.Gauge, Signal: "requests_waiting", Max: number(4)},
		slo.Objective{Name: "queue-10", Layer: slo.Service, Kind: slo.Gauge, Signal: "requests_waiting", Max: number(10)},
		slo.Objective{Name: "twice", Layer: slo.Service, Kind: slo.Expression, PromQL: "2 * sum(vllm:num_requests_running)", Max: number(3)},
		slo.Objective{Name: "nothing", Layer: slo.Service, Kind: slo.Expression, PromQL: "no_such_metric > 0.1", Max: number(3)},
		slo.Objective{Name: "nan", Layer: slo.Service, Kind: slo.Expression, PromQL: "sum(vllm:num_requests_running - vllm:num_requests_running) / 0", Max: number(3)},
		slo.Objective{Name: "many", Layer: slo.Service, Kind: slo.Expression, PromQL: "nvidia_gpu_power_watts", Max: number(3)},
		slo.Objective{Name: "scalar", Layer: slo.Service, Kind: slo.Expression, PromQL: "scalar(sum(vllm:num_requests_running))", Max: number(3)},
		slo.Objective{Name: "refused", Layer: slo.Service, Kind: slo.Expression, PromQL: "label_replace(nvidia_gpu_power_watts, 'uuid', '', '', '')", Max: number(3)},
	)
	run, log := load(t, query.Options{URL: w.serve(), SLO: file, RunID: "r"})
	// The measure window of ramp 1 is 13.25 to 21.25: scrapes 14 to 21, four of them with 8 waiting.
	got := find(t, run, "ramp", 1).Readings
	want := map[string]verdict.Reading{
		"requests_waiting":       {Layer: "service", Unit: "requests", Mean: number(4), Max: number(8), Over: 4, Samples: 8},
		"queue-10":               {Layer: "service", Unit: "requests", Mean: number(4), Max: number(8), Over: 0, Samples: 8},
		"requests_running":       {Layer: "service", Unit: "requests", Mean: number(2), Max: number(2), Samples: 8},
		"kv_cache_usage":         {Layer: "service", Unit: "ratio", Mean: number(0.5), Max: number(0.5), Samples: 8},
		"queue_time":             {Layer: "service", Unit: "seconds", Mean: number(1.5), Max: number(1.5), Samples: 7},
		"preemptions":            {Layer: "service", Unit: "per_second", Mean: number(1), Max: number(1), Samples: 7},
		"memory_used":            {Layer: "resource", Unit: "bytes", Mean: number(750), Max: number(750), Samples: 8},
		"memory_utilization":     {Layer: "resource", Unit: "ratio", Mean: number(0.75), Max: number(0.75), Samples: 8},
		"disk_utilization":       {Layer: "resource", Unit: "ratio", Mean: number(0.4), Max: number(0.4), Samples: 7},
		"disk_read_bytes":        {Layer: "resource", Unit: "bytes_per_second", Mean: number(300), Max: number(300), Samples: 7},
		"cpu_utilization":        {Layer: "resource", Unit: "ratio", Mean: number(0.75), Max: number(0.75), Samples: 7},
		"gpu_utilization":        {Layer: "resource", Unit: "ratio", Mean: number(0.9), Max: number(0.9), Samples: 8},
		"gpu_power":              {Layer: "resource", Unit: "watts", Mean: number(110), Max: number(110), Samples: 8},
		"gpu_memory_used":        {Layer: "resource", Unit: "bytes", Mean: number(11), Max: number(11), Samples: 8},
		"gpu_memory_utilization": {Layer: "resource", Unit: "ratio", Mean: number(0.45), Max: number(0.45), Samples: 8},
		"twice":                  {Layer: "service", Mean: number(4), Max: number(4), Over: 9, Samples: 9}, // asked for every second from 0.25
		"scalar":                 {Layer: "service", Mean: number(2), Max: number(2), Samples: 9},
	}
	for name, r := range want {
		if d := cmp.Diff(r, got[name], cmpopts.EquateApprox(1e-9, 0)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	for name, why := range map[string]string{
		"rejections": "vllm:admission_rejections_total", "swap_used": "host_memory_swap_free_bytes", "gpu_temperature": "nvidia_gpu_temperature_celsius",
		"nothing": "gives nothing", "nan": "gives NaN", "many": "4 series", "refused": "same labelset",
	} {
		if r, ok := got[name]; !ok || !strings.Contains(r.Missing, why) || r.Mean != nil {
			t.Errorf("%s: %+v, want it missing for %q", name, r, why)
		}
	}
	if r := find(t, run, "baseline", 1).Readings["queue_time"]; r.Missing == "" {
		t.Errorf("mean queue time of no request %+v", r)
	}
	if len(run.ConditionsChanged) != 0 {
		t.Errorf("conditions changed: %q", run.ConditionsChanged)
	}
	refused := 0
	for _, q := range log.Queries {
		if q.Error != "" {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d refused queries in the log, want 1", refused)
	}
	checkTimeline(t, run)
}

func checkTimeline(t *testing.T, run *verdict.Run) {
	t.Helper()
	drawn := map[string]verdict.Series{}
	for _, s := range run.Timeline {
		drawn[s.Signal] = s
		if len(s.Points) == 0 || len(s.Points) > 600 {
			t.Errorf("%s has %d points", s.Signal, len(s.Points))
		}
		for i, p := range s.Points {
			if math.IsNaN(p.V) || i > 0 && p.T <= s.Points[i-1].T {
				t.Errorf("%s: point %d is %+v", s.Signal, i, p)
			}
		}
	}
	for _, name := range []string{"in_flight_requests", "time_to_first_token", "requests_waiting", "cpu_utilization", "gpu_utilization", "twice"} {
		if _, ok := drawn[name]; !ok {
			t.Errorf("%s isn't drawn", name)
		}
	}
	highest := 0.0
	for _, p := range drawn["in_flight_requests"].Points {
		highest = max(highest, p.V)
	}
	if highest != 2 {
		t.Errorf("at most %v in flight, want 2", highest)
	}
}

func TestWhyThereIsNoReading(t *testing.T) {
	for _, c := range []struct {
		name   string
		role   string // of the machine's series; "-" leaves engine and machine out
		change func(*slo.File)
		want   map[string]string
	}{
		{"no role", "", func(*slo.File) {}, map[string]string{"cpu_utilization": "no label `role`", "gpu_utilization": "no label `role`"}},
		{"only the client's machine", "client", func(*slo.File) {}, map[string]string{"cpu_utilization": "another machine (role client)"}},
		{"nothing scraped", "-", func(*slo.File) {}, map[string]string{
			"cpu_utilization": `no series of the exporter with {job="exporter"}`, "gpu_utilization": "driver", "requests_waiting": `no series of vLLM with {job="vllm"}`,
		}},
		{"no selectors", "target", func(f *slo.File) { f.Selectors = slo.Selectors{} }, map[string]string{
			"cpu_utilization": "selectors.host", "gpu_utilization": "selectors.gpu", "requests_waiting": "selectors.engine",
		}},
		{"no engine", "target", func(f *slo.File) { f.Engine = "" }, map[string]string{"requests_waiting": "names no engine"}},
		{"engine without metrics", "target", func(f *slo.File) { f.Engine = "ollama" }, map[string]string{"requests_waiting": "loadgen probe"}},
		{"engine without that one", "target", func(f *slo.File) { f.Engine = "llamacpp" }, map[string]string{"queue_time": `no series of llama.cpp with {job="vllm"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			spec := demoRun("r")
			spec.steps, spec.native = spec.steps[:2], false
			w.write(spec)
			if c.role != "-" {
				w.engineAndMachine(c.role, 30)
			}
			file := sloFile(t)
			c.change(file)
			run, _ := load(t, query.Options{URL: w.serve(), SLO: file, RunID: "r"})
			got := find(t, run, "ramp", 1).Readings
			for name, why := range c.want {
				if r := got[name]; !strings.Contains(r.Missing, why) || r.Mean != nil || r.Samples != 0 {
					t.Errorf("%s: %+v, want it missing for %q", name, r, why)
				}
			}
		})
	}
}

func TestShortStepHasNoReading(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r")
	spec.steps, spec.native = spec.steps[:1], false
	spec.steps[0].length = 4
	w.write(spec)
	w.engineAndMachine("target", 30)
	run, _ := load(t, query.Options{URL: w.serve(), SLO: sloFile(t), RunID: "r"})
	for _, name := range []string{"requests_waiting", "queue_time", "cpu_utilization"} {
		if r := run.Steps[0].Readings[name]; !strings.Contains(r.Missing, "only 4 scrapes") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if c := run.Steps[0].Counts["ttft"]; c.Total != 40 {
		t.Errorf("count %+v: a short step still counts", c)
	}
}

// A restart voids what was measured around it; and the engine's counters begin again at 0, which
// must not read as a negative rate.
func TestEngineRestart(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r")
	spec.steps, spec.native = spec.steps[:2], false
	w.write(spec)
	labels := []string{"instance", "127.0.0.1:8000", "job", "vllm"}
	for s := 0.0; s < 25; s++ {
		started, tokens := w.t0-1000, 5000+10*s
		if s >= 17 {
			started, tokens = w.t0+16.5, 10*(s-17)
		}
		w.put(s, started, "process_start_time_seconds", labels...)
		w.put(s, tokens, "vllm:generation_tokens_total", labels...)
	}
	run, _ := load(t, query.Options{URL: w.serve(), SLO: sloFile(t), RunID: "r"})
	if len(run.ConditionsChanged) != 1 || !strings.HasSuffix(run.ConditionsChanged[0], "during ramp, round 1, step 1, concurrency 2") ||
		!strings.Contains(run.ConditionsChanged[0], w.time(16.5).UTC().Format(time.RFC3339)) {
		t.Errorf("conditions changed: %q", run.ConditionsChanged)
	}
	// 14 to 21: 7 intervals of which one lost what came before the restart.
	if r := run.Steps[1].Readings["output_tokens"]; r.Mean == nil || math.Abs(*r.Mean-60.0/7) > 1e-9 || *r.Max != 10 {
		t.Errorf("output tokens per second %+v", r)
	}
}

// Two engines behind one address: requests add up, the fullest cache counts.
func TestSeveralEngines(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r")
	spec.steps, spec.native = spec.steps[:1], false
	w.write(spec)
	for s := 0.0; s < 12; s++ {
		for i, phase := range []float64{0, 0.4} {
			l := []string{"instance", strconv.Itoa(i), "job", "vllm"}
			for _, replica := range []string{"a", "b"} { // of the Prometheus: the same things twice
				k := append(append([]string(nil), l...), "prometheus_replica", replica)
				w.put(s+phase, float64(3+i), "vllm:num_requests_waiting", k...)
				w.put(s+phase, 0.2*float64(1+i), "vllm:kv_cache_usage_perc", k...)
				w.put(s+phase, 10*s, "vllm:generation_tokens_total", k...)
			}
		}
	}
	run, _ := load(t, query.Options{URL: w.serve(), SLO: sloFile(t), RunID: "r"})
	for name, want := range map[string]float64{"requests_waiting": 7, "kv_cache_usage": 0.4, "output_tokens": 20} {
		if r := run.Steps[0].Readings[name]; r.Mean == nil || math.Abs(*r.Mean-want) > 1e-9 {
			t.Errorf("%s: %+v, want a mean of %v", name, r, want)
		}
	}
}
