package ruletest_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"firstbreach/alerts/output"
	"firstbreach/alerts/rules"
	"firstbreach/internal/capacity"
	"firstbreach/internal/promplay"
	"firstbreach/internal/slo"
)

// sloHead is an SLO file down to its objectives; %s is the engine.
const sloHead = `apiVersion: firstbreach/v1
service: chat
engine: %s
selectors: {engine: {job: serving}, host: {job: exporter}, gpu: {job: exporter}, probe: {job: probe}}
owners: {team: {contact: '#team'}}
objectives:
`

// ruleText are the rules of an SLO file for one engine.
func ruleText(t *testing.T, engine, objectives string) []byte {
	t.Helper()
	return ruleTextOf(t, sloHead, engine, objectives)
}

// ruleTextOf is ruleText for a file with another head.
func ruleTextOf(t *testing.T, head, engine, objectives string) []byte {
	t.Helper()
	f, err := slo.Parse("slo.yaml", []byte(fmt.Sprintf(head, engine)+objectives))
	if err != nil {
		t.Fatal(err)
	}
	set, err := rules.Make(f, rules.Options{Capacity: &capacity.File{Service: "chat", Run: "r1", Concurrency: 8, At: time.Unix(0, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	files, err := output.Rules(f, set)
	if err != nil {
		t.Fatal(err)
	}
	return files[0].Content
}

const (
	ttft    = "- {name: ttft, layer: user, signal: time_to_first_token, p95: 1s, owner: team, action: Act.}\n"
	success = "- {name: success, layer: user, signal: success_ratio, target: 99%, owner: team, action: Act.}\n"
)

// series is shorter to write, and to read, than the struct with its keys.
func series(name string, labels map[string]string, at func(int) float64) promplay.Series {
	return promplay.Series{Name: name, Labels: labels, At: at}
}

// vllm is a page of vLLM's counters, per minute: answered, of them in time, failed.
func vllm(answered, inTime, failed func(int) float64) []promplay.Series {
	job := map[string]string{"job": "serving", "instance": "a:1"}
	with := func(more ...string) map[string]string {
		set := map[string]string{}
		for k, v := range job {
			set[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			set[more[i]] = more[i+1]
		}
		return set
	}
	api := "/v1/chat/completions"
	list := []promplay.Series{
		series("up", job, func(int) float64 { return 1 }),
		series("vllm:time_to_first_token_seconds_count", with("engine", "0"), answered),
		series("vllm:time_to_first_token_seconds_bucket", with("engine", "0", "le", "1.0"), inTime),
		series("http_requests_total", with("handler", api, "status", "2xx"), answered),
	}
	if failed != nil {
		list = append(list, series("http_requests_total", with("handler", api, "status", "5xx"), failed))
	}
	return list
}

// No counter of failures before the first failure: the ratio is 0, not nothing.
func TestNoFailureSeriesYet(t *testing.T) {
	p := promplay.New(t, ruleText(t, "vllm", ttft+success))
	p.Run(10, vllm(promplay.Counter(60), promplay.Counter(60), nil)...)
	for _, name := range []string{"ttft", "success"} {
		if v, ok := p.Value(`slo:bad_requests:ratio5m{slo="` + name + `"}`); !ok || v != 0 {
			t.Errorf("%s: bad share %v, %v; want 0", name, v, ok)
		}
	}
	if got := p.Firing(); len(got) > 0 {
		t.Error(got)
	}
}

// An idle stretch has no share, and doesn't make the budget of a month NaN.
func TestIdleIsNeitherGoodNorBad(t *testing.T) {
	p := promplay.New(t, ruleText(t, "vllm", success))
	busy := func(m int) float64 { return 60 * math.Min(float64(m), 20) }
	p.Run(130, vllm(busy, busy, nil)...)
	if v, ok := p.Value(`slo:bad_requests:ratio5m`); ok {
		t.Errorf("share of an idle service: %v", v)
	}
	if v, ok := p.Value(`slo:error_budget_remaining:ratio`); !ok || v != 1 {
		t.Errorf("budget left %v, %v; want 1", v, ok)
	}
	if got := p.Firing(); len(got) > 0 {
		t.Error(got)
	}
}

// Fast 503s are bad for the latency objective as well: they must not look like low latency.
func TestFailuresCountAgainstLatency(t *testing.T) {
	p := promplay.New(t, ruleText(t, "vllm", ttft))
	p.Run(70, vllm(promplay.Counter(6), promplay.Counter(6), promplay.Counter(54))...)
	if v, _ := p.Value(`slo:bad_requests:ratio1h`); math.Abs(v-0.9) > 1e-9 {
		t.Errorf("bad share %v, want 0.9", v)
	}
	want := []string{"FirstbreachErrorBudgetBurn ttft critical 1h", "FirstbreachErrorBudgetBurn ttft critical 6h", "FirstbreachErrorBudgetBurn ttft warning 1d", "FirstbreachErrorBudgetBurn ttft warning 3d"}
	if diff := cmp.Diff(want, p.Firing()); diff != "" {
		t.Error(diff)
	}
}

// Two data-parallel ranks of one instance are added up; a bucket of one is not matched with the other.
func TestRanksAreAddedUp(t *testing.T) {
	p := promplay.New(t, ruleText(t, "vllm", ttft))
	second := vllm(promplay.Counter(30), promplay.Counter(0), nil)
	for i := range second {
		if second[i].Labels["engine"] == "0" {
			second[i].Labels["engine"] = "1"
		}
	}
	p.Run(10, append(vllm(promplay.Counter(30), promplay.Counter(30), nil), second[1], second[2])...)
	if v, _ := p.Value(`slo:bad_requests:ratio5m`); v != 0.5 {
		t.Errorf("bad share %v, want 0.5", v)
	}
}

// One bad request on a quiet night wakes nobody; the same share of many does.
func TestLowTraffic(t *testing.T) {
	once := func(m int) float64 {
		if m < 30 {
			return 0
		}
		return 1
	}
	p := promplay.New(t, ruleText(t, "vllm", success))
	p.Run(60, vllm(func(m int) float64 { return math.Floor(float64(m) / 20) }, promplay.Counter(0), once)...)
	if got := p.Firing(); len(got) > 0 {
		t.Errorf("fires on one bad request: %v", got)
	}
}

func probe(ok, failed func(int) float64) []promplay.Series {
	set := func(outcome string) map[string]string {
		return map[string]string{"job": "probe", "instance": "p:1", "outcome": outcome}
	}
	return []promplay.Series{
		series("up", map[string]string{"job": "probe", "instance": "p:1"}, func(int) float64 { return 1 }),
		series("up", map[string]string{"job": "serving", "instance": "a:1"}, func(int) float64 { return 1 }),
		series("loadgen_requests_total", set("ok"), ok), series("loadgen_requests_total", set("dropped"), failed),
	}
}

// A probe sends few requests: no floor on them may mute it, and one that fails alone is no alarm.
func TestProbeIsNotMuted(t *testing.T) {
	p := promplay.New(t, ruleText(t, "probe", success))
	every5 := func(m int) float64 { return math.Floor(float64(m) / 5) }
	one := func(m int) float64 {
		if m < 60 {
			return 0
		}
		return 1
	}
	p.Run(70, probe(func(m int) float64 { return every5(m) - one(m) }, one)...)
	if got := p.Firing(); len(got) > 0 {
		t.Errorf("fires on one bad probe: %v", got)
	}
	p = promplay.New(t, ruleText(t, "probe", success))
	good := func(m int) float64 { return math.Min(every5(m), 12) }
	p.Run(80, probe(good, func(m int) float64 { return every5(m) - good(m) })...)
	got := strings.Join(p.Firing(), "; ")
	if !strings.Contains(got, "FirstbreachErrorBudgetBurn success critical 1h") {
		t.Errorf("three failed probes in a row: %q", got)
	}
}

// The engine that the file selects is watched where users are judged through the probe, too.
func TestEngineBehindAProbe(t *testing.T) {
	p := promplay.New(t, ruleText(t, "probe", success))
	page := probe(promplay.Counter(2), promplay.Counter(0))
	page[1].At = func(m int) float64 {
		if m < 10 {
			return 1
		}
		return 0
	}
	p.Run(9, page...)
	if got := p.Firing(); len(got) > 0 {
		t.Errorf("fires while all is well: %v", got)
	}
	p = promplay.New(t, ruleText(t, "probe", success))
	p.Run(14, page...)
	if diff := cmp.Diff([]string{"FirstbreachTargetDown success critical"}, p.Firing()); diff != "" {
		t.Error(diff)
	}
}

// A restart of the engine sets its counters to 0: that is no negative traffic.
func TestCounterReset(t *testing.T) {
	p := promplay.New(t, ruleText(t, "vllm", ttft))
	restarted := func(m int) float64 { return 60 * float64(m%30) }
	p.Run(70, vllm(restarted, restarted, nil)...)
	if v, ok := p.Value(`slo:bad_requests:ratio1h`); !ok || v != 0 {
		t.Errorf("bad share %v, %v; want 0", v, ok)
	}
}

// A dropped bucket leaves an objective that nobody measures: that is said, and nothing else fires.
func TestNotMeasured(t *testing.T) {
	p := promplay.New(t, ruleText(t, "vllm", ttft))
	page := vllm(promplay.Counter(60), promplay.Counter(60), nil)
	p.Run(30, page[0], page[1], page[3])
	if diff := cmp.Diff([]string{"FirstbreachObjectiveNotMeasured ttft warning"}, p.Firing()); diff != "" {
		t.Error(diff)
	}
}

// An alert for each full instance, and none for the sum of many that are well.
func TestCapacityIsPerInstance(t *testing.T) {
	p := promplay.New(t, ruleText(t, "vllm", success+"- {name: capacity, layer: user, signal: capacity, min_concurrency: 4, owner: team, action: Act.}\n"))
	gauge := func(name, instance string, v float64) promplay.Series {
		return series("vllm:num_requests_"+name, map[string]string{"job": "serving", "instance": instance, "engine": "0"}, func(int) float64 { return v })
	}
	up := series("up", map[string]string{"job": "serving", "instance": "a:1"}, func(int) float64 { return 1 })
	page := append(vllm(promplay.Counter(60), promplay.Counter(60), nil)[1:], up, gauge("running", "a:1", 8), gauge("waiting", "a:1", 0), gauge("running", "b:1", 8), gauge("waiting", "b:1", 0))
	p.Run(10, page...)
	if got := p.Firing(); len(got) > 0 {
		t.Errorf("fires at what was measured to hold: %v", got)
	}
	p = promplay.New(t, ruleText(t, "vllm", success+"- {name: capacity, layer: user, signal: capacity, min_concurrency: 4, owner: team, action: Act.}\n"))
	p.Run(10, append(page, gauge("running", "c:1", 8), gauge("waiting", "c:1", 1))...)
	if diff := cmp.Diff([]string{"FirstbreachCapacityExceeded capacity warning"}, p.Firing()); diff != "" {
		t.Error(diff)
	}
}

// An expression that gives several series makes one alert, not a rule that fails.
func TestExpressionOfManySeries(t *testing.T) {
	p := promplay.New(t, ruleText(t, "vllm", success+"- {name: db, layer: service, promql: 'db_latency', max: 0.2, owner: team, action: Act.}\n"))
	db := func(slo string, v float64) promplay.Series {
		return series("db_latency", map[string]string{"slo": slo, "owner": "other"}, func(int) float64 { return v })
	}
	p.Run(3, append(vllm(promplay.Counter(60), promplay.Counter(60), nil), db("x", 0.3), db("y", 0.4))...)
	if diff := cmp.Diff([]string{"FirstbreachThresholdCrossed db warning"}, p.Firing()); diff != "" {
		t.Error(diff)
	}
}

// sglang_ is how some proxies store sglang:.
func TestEscapedNames(t *testing.T) {
	p := promplay.New(t, ruleText(t, "sglang", ttft))
	set := func(more ...string) map[string]string {
		m := map[string]string{"job": "serving", "instance": "a:1", "model_name": "m"}
		if len(more) > 0 {
			m[more[0]] = more[1]
		}
		return m
	}
	p.Run(10, series("sglang_time_to_first_token_seconds_count", set(), promplay.Counter(60)),
		series("sglang_time_to_first_token_seconds_bucket", set("le", "1"), promplay.Counter(45)))
	if v, _ := p.Value(`slo:bad_requests:ratio5m`); v != 0.25 {
		t.Errorf("bad share %v, want 0.25", v)
	}
}
