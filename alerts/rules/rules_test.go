package rules

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/rulefmt"

	"firstbreach/internal/burnrate"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
)

func parse(t *testing.T, head, objectives string) *slo.File {
	t.Helper()
	f, err := slo.Parse("slo.yaml", []byte("apiVersion: firstbreach/v1\nservice: chat\nengine: vllm\n"+head+
		"selectors: {engine: {job: vllm}, host: {job: exporter}, gpu: {job: exporter}, probe: {job: probe}}\nowners: {team: {contact: '#team'}}\nobjectives:\n"+objectives))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const success = "- {name: success, layer: user, signal: success_ratio, target: TARGET, owner: team, action: Act.}\n"

func burns(set *Set) []rulefmt.Rule {
	var list []rulefmt.Rule
	for _, a := range set.Alerts {
		if a.Rule.Alert == AlertBurn {
			list = append(list, a.Rule)
		}
	}
	return list
}

// Factors of 30 days are the SRE Workbook's: 14.4, 6, 3, 1. Limits are exact decimals: no float's
// residue, no rounding to nothing.
func TestWindows(t *testing.T) {
	target := func(text string) slo.Target {
		x, err := slo.ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	const day = 24 * time.Hour
	for _, c := range []struct {
		period  time.Duration
		target  string
		factors []string
		limits  []string
		floors  []int64
	}{
		{30 * day, "99%", []string{"14.4", "6", "3", "1"}, []string{"0.144", "0.06", "0.03", "0.01"}, []int64{7, 17, 34, 100}},
		{30 * day, "99.9%", []string{"14.4", "6", "3", "1"}, []string{"0.0144", "0.006", "0.003", "0.001"}, []int64{70, 167, 334, 1000}},
		{30 * day, "99.9995%", []string{"14.4", "6", "3", "1"}, []string{"0.000072", "0.00003", "0.000015", "0.000005"}, []int64{13889, 33334, 66667, 200000}},
		{28 * day, "95%", []string{"13.44", "5.6", "2.8", "0.933333"}, []string{"0.672", "0.28", "0.14", "0.046667"}, []int64{2, 4, 8, 22}},
		{7 * day, "95%", []string{"3.36", "1.4", "0.7", "0.233333"}, []string{"0.168", "0.07", "0.035", "0.011667"}, []int64{6, 15, 29, 86}},
	} {
		for i, p := range burnrate.Pairs() {
			if got := decimal(p.Factor(c.period)); got != c.factors[i] {
				t.Errorf("%v: factor %s, want %s", c.period, got, c.factors[i])
			}
			if got := decimal(p.Limit(c.period, target(c.target))); got != c.limits[i] {
				t.Errorf("%v %s: limit %s, want %s", c.period, c.target, got, c.limits[i])
			}
			if got := p.Floor(c.period, target(c.target)); got != c.floors[i] {
				t.Errorf("%v %s: floor %d, want %d", c.period, c.target, got, c.floors[i])
			}
			one := new(big.Rat).SetFrac64(1, c.floors[i])
			if c.floors[i] > 2 && one.Cmp(p.Limit(c.period, target(c.target))) > 0 {
				t.Errorf("%v %s: one bad request of %d is over the limit", c.period, c.target, c.floors[i])
			}
		}
	}
}

// A window that can't fire, or whose burn lasts longer than the period, is left out, and the notes say so.
func TestWindowsThatCannotFire(t *testing.T) {
	for _, c := range []struct {
		window, target string
		longs          string
		note           string
	}{
		{"30d", "99%", "1h 6h 1d 3d", ""},
		{"30d", "93%", "6h 1d 3d", "success: no alert over 1h and 5m: it would need more than 100.8% bad requests, which there can't be (14.4 × 0.07)"},
		{"30d", "90%", "6h 1d 3d", "144%"},
		{"30d", "50%", "3d", "300%"},
		{"7d", "99%", "1h 6h", "a budget that burns at 0.7 times its even rate lasts longer than the window"},
	} {
		set, err := Make(parse(t, "window: "+c.window+"\n", strings.Replace(success, "TARGET", c.target, 1)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var longs []string
		for _, r := range burns(set) {
			longs = append(longs, r.Labels[LabelLong])
		}
		if got := strings.Join(longs, " "); got != c.longs {
			t.Errorf("%s %s: alerts over %q, want %q", c.window, c.target, got, c.longs)
		}
		if notes := strings.Join(set.Notes, "\n"); !strings.Contains(notes, c.note) {
			t.Errorf("%s %s: the notes don't say %q:\n%s", c.window, c.target, c.note, notes)
		}
	}
}

// Periods that are a window already are recorded once.
func TestNoSeriesTwice(t *testing.T) {
	for _, window := range []string{"1d", "3d", "1w", "30d"} {
		set, err := Make(parse(t, "window: "+strings.Replace(window, "1w", "7d", 1)+"\n", strings.Replace(success, "TARGET", "99%", 1)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, g := range set.Groups {
			for _, r := range g.Rules {
				key := fmt.Sprint(r.Record, r.Alert, r.Labels)
				if seen[key] {
					t.Errorf("window %s: %s twice", window, key)
				}
				seen[key] = true
			}
		}
		if !seen[fmt.Sprint(Requests+window, "", map[string]string{"service": "chat", "slo": "success"})] {
			t.Errorf("window %s: its own requests are not recorded", window)
		}
	}
}

// Every alert carries every label that routing and inhibition look at, a summary, a description and
// an action; labels never hold a value that changes.
func TestEveryAlertIsComplete(t *testing.T) {
	f, err := slo.Load("../slo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := Make(f, Options{DashboardURL: "http://grafana:3000/", ReportURL: "http://analyze:10512"})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, a := range set.Alerts {
		names[a.Rule.Alert]++
		for _, l := range []string{LabelService, LabelSLO, LabelLayer, LabelOwner, LabelSeverity} {
			if v := a.Rule.Labels[l]; v == "" || strings.Contains(v, "$value") {
				t.Errorf("%s %s: label %s is %q", a.Rule.Alert, a.Objective, l, v)
			}
		}
		for _, n := range []string{noteSummary, noteDescription, noteAction, noteDashboard, noteReport} {
			if a.Rule.Annotations[n] == "" {
				t.Errorf("%s %s: no %s", a.Rule.Alert, a.Objective, n)
			}
		}
		if a.Rule.Alert == AlertBurn && !strings.HasPrefix(a.Rule.Annotations[noteRunbook], "https://runbooks.example.com/chat/") {
			t.Errorf("%s: runbook %q", a.Objective, a.Rule.Annotations[noteRunbook])
		}
	}
	want := map[string]int{AlertBurn: 20, AlertUnknown: 5, AlertThreshold: 2, AlertRecovery: 1, AlertDown: 2, AlertAbsent: 2}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// An objective without an owner and an action is recorded for the dashboards and never alerts.
func TestNoOwnerNoAlert(t *testing.T) {
	set, err := Make(parse(t, "", "- {name: ttft, layer: user, signal: time_to_first_token, p95: 1s}\n- {name: busy, layer: resource, signal: cpu_utilization, max: 90%}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Alerts) > 0 {
		t.Errorf("alerts: %v", set.Alerts)
	}
	if len(set.Groups) != 1 || set.Groups[0].Name != "chat/ttft" {
		t.Errorf("groups: %v", set.Groups)
	}
}

// What production can't answer is refused at its line, all at once, with what could.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ engine, objective, want string }{
		{signal.VLLM, "{name: ttft, layer: user, signal: time_to_first_token, p95: 2s, owner: team, action: Act.}",
			"slo.yaml:7: objective ttft: threshold: 2s is between two bucket edges of vllm:time_to_first_token_seconds, so that no rule could answer it exactly (fix: write 1s or 2.5s, or read"},
		{signal.VLLM, "{name: ttft, layer: user, signal: time_to_first_token, p95: 3h, owner: team, action: Act.}", "(fix: write 42m40s, or"},
		{signal.VLLM, "{name: ttft, layer: user, signal: time_to_first_token, p95: 500us, owner: team, action: Act.}", "(fix: write 1ms, or"},
		{signal.TGI, "{name: d, layer: user, signal: request_duration, p95: 10s, owner: team, action: Act.}", "between two bucket edges of tgi_request_duration"},
		{signal.LlamaCPP, "{name: kv, layer: service, signal: kv_cache_usage, max: 90%, owner: team, action: Act.}",
			"llama.cpp: its metric for kv_cache_usage, llamacpp:kv_cache_usage_ratio, was removed in b5428"},
		{signal.TGI, "{name: p, layer: service, signal: preemptions, max: 1/s, owner: team, action: Act.}", "TGI does not preempt"},
		{signal.Probe, "{name: c, layer: user, signal: capacity, min_concurrency: 4, owner: team, action: Act.}", "the probe can't say how many requests are in the service"},
	} {
		f := parse(t, "", "- "+c.objective+"\n- "+strings.TrimPrefix(strings.Replace(success, "TARGET", "99%", 1), "- "))
		f.Engine = c.engine
		_, err := Make(f, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s:\n%v\nwant %q", c.engine, c.objective, err, c.want)
		}
	}
}

// Without selectors the series of every service would be added up.
func TestNoSelectors(t *testing.T) {
	f := parse(t, "", strings.Replace(success, "TARGET", "99%", 1))
	f.Selectors.Engine = nil
	if _, err := Make(f, Options{}); err == nil || !strings.Contains(err.Error(), "no selectors.engine") {
		t.Error(err)
	}
}
