package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"firstbreach/analyze/verdict"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; look at the difference, then run with -update\n%s", path, diff)
	}
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"breach", "none", "inconclusive", "invalid", "killed", "empty"} {
		t.Run(name, func(t *testing.T) {
			d := describe(fixtures()[name])
			var md, junit bytes.Buffer
			if err := d.WriteMarkdown(&md); err != nil {
				t.Fatal(err)
			}
			if err := d.WriteJUnit(&junit); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".md", md.Bytes())
			golden(t, name+".junit.xml", junit.Bytes())
		})
	}
	d := describe(breachRun())
	var js, html bytes.Buffer
	if err := d.WriteJSON(&js); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	golden(t, "breach.json", js.Bytes())
	golden(t, "breach.html", html.Bytes())
}

func TestHeadline(t *testing.T) {
	for _, c := range []struct {
		name string
		want []string // a part of each line
	}{
		{"breach", []string{
			"First breach: ttft (95% of requests with TTFT ≤ 700 ms) at concurrency 4, last ok 2, in 3 of 3 rounds: 294 of 300 requests missed it (98 %, 95 % CI 95.7–99.3 %; allowed 5 %).",
			"requests waiting 1.9 (before: 0), over the limit of queue",
			"Owner: inference-platform. Do now: Cap concurrency at the last step that held"}},
		{"none", []string{"No breach up to concurrency 2, the highest tested", "Closest: ttft at concurrency 2, where 2 of 300", "test higher steps"}},
		{"inconclusive", []string{"Inconclusive: no first breach can be named; concurrency 2 held. Why: concurrencies 4 and 8 are undecided.", "At concurrency 4: ttft: 12 of 300", "more to decide it"}},
		{"invalid", []string{"Invalid measurement: no first breach can be named; concurrency 2 held. Why: concurrencies 4 and 8 are void.", "starved or throttled", "Mend the measurement"}},
		{"killed", []string{"Inconclusive: no first breach can be named; no step is known to have held. Why: concurrencies 1, 2, 4 and 8 are undecided; loadgen was killed", "2 valid rounds, a verdict needs 3", "Do now: Mend the measurement (step edges): ramp 2 round 2: no end of measuring"}},
		{"empty", []string{"No data", "Nothing was measured.", "Do now"}},
	} {
		lines := describe(fixtures()[c.name]).Headline()
		if len(lines) != 3 {
			t.Fatalf("%s: %d lines: %q", c.name, len(lines), lines)
		}
		for i, want := range c.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s, line %d: %q\nlacks %q", c.name, i+1, lines[i], want)
			}
		}
	}
}

// The headline leaves out what didn't change; the table beside the breach keeps it.
func TestHeadlineNamesWhatChanged(t *testing.T) {
	reading := func(signal string, mean float64, before *float64, crossed ...string) Beside {
		return Beside{Signal: signal, Mean: &mean, Before: before, Crossed: crossed}
	}
	at := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		name        string
		beside      []Beside
		want, never string
	}{
		{"a trickle from the disk", []Beside{{Signal: "disk_read_bytes", Unit: "bytes_per_second", Mean: at(1360), Before: at(0)}}, "none changed", "disk"},
		{"unchanged", []Beside{reading(signalWaiting, 4, at(0)), reading("preemptions", 0, at(0))}, "requests waiting 4 (before: 0)", "preemptions"},
		{"moved by less than a tenth", []Beside{reading(signalCPU, 1, at(0.91)), reading("queue_time", 2, at(1))}, "queue time", "cpu"},
		{"fell by more than a tenth", []Beside{reading(signalCPU, 0.85, at(1))}, "cpu", "none changed"},
		{"unchanged over its limit", []Beside{reading("kv_cache_usage", 1, at(1), "kv")}, "over the limit of kv", "none changed"},
		{"no step before", []Beside{reading(signalCPU, 1, nil)}, "cpu", "before"},
		{"nothing changed", []Beside{reading(signalCPU, 1, at(1)), reading(signalWaiting, 0, at(0))}, "none changed by 10 % or more", "cpu"},
		{"nothing was read", nil, "no service or resource reading is there", "changed"},
	} {
		got := (&Document{}).clues(&FirstBreach{Beside: c.beside})
		if !strings.Contains(got, c.want) || strings.Contains(got, c.never) {
			t.Errorf("%s: %q, want %q and never %q", c.name, got, c.want, c.never)
		}
	}
}

// A target that died under the load comes before every other advice: more requests don't help then.
func TestTargetGone(t *testing.T) {
	run := fixtures()["inconclusive"]
	for i := range run.Steps {
		if s := &run.Steps[i]; s.Phase == verdict.PhaseRecovery {
			s.Outcomes = map[string]int64{"ok": 0, "transport": 19, "server_error": 1}
			for name := range s.Counts {
				s.Counts[name] = verdict.Count{Total: 20, Failed: 20}
			}
		}
	}
	const want = "Look at the target first: after the load it failed all of 60 requests at concurrency 1 (transport 57, server error 3)."
	d := describe(run)
	if d.DoNow[0] != want || !strings.HasSuffix(d.Headline()[2], want) {
		t.Errorf("%q, %q\nwant first: %q", d.DoNow, d.Headline()[2], want)
	}
}

// The same run gives the same bytes, and the files of a directory are those of the writers.
func TestWriteDir(t *testing.T) {
	a, b := t.TempDir(), filepath.Join(t.TempDir(), "new", "dir")
	for _, dir := range []string{a, b, a} {
		if err := describe(breachRun()).WriteDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{FileJSON, FileMD, FileHTML, FileJUnit} {
		x, err := os.ReadFile(filepath.Join(a, f))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(b, f))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) || len(x) == 0 {
			t.Errorf("%s: two writings differ", f)
		}
	}
	files, err := os.ReadDir(a)
	if err != nil || len(files) != 4 {
		t.Errorf("%d files left behind, want 4 (%v)", len(files), err)
	}
}

func TestWriteDirSaysWhatFailed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := describe(breachRun()).WriteDir(filepath.Join(file, "below")); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("%v", err)
	}
}

// A text from outside can't become markup, and the page asks nobody for anything.
func TestPageIsSelfContained(t *testing.T) {
	outside := regexp.MustCompile(`(?i)(src|href)\s*=|url\(|@import|<script|<img|<link|<iframe`)
	for name, run := range fixtures() {
		var html bytes.Buffer
		d := describe(run)
		if err := d.WriteHTML(&html); err != nil {
			t.Fatal(err)
		}
		if at := outside.FindString(strings.ReplaceAll(html.String(), "x&#34;&gt;&lt;img src=x onerror=alert(1)&gt;", "")); at != "" {
			t.Errorf("%s: the page has %q", name, at)
		}
		if strings.Contains(html.String(), "#0DEC") {
			t.Errorf("%s: a colour of a chart doesn't follow the page", name)
		}
		if strings.Contains(html.String(), "NaN") || strings.Contains(html.String(), "Inf,") {
			t.Errorf("%s: the page has a NaN", name)
		}
		var md bytes.Buffer
		if err := d.WriteMarkdown(&md); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(md.String(), "<") {
			t.Errorf("%s: the Markdown holds markup", name)
		}
	}
}

func TestJUnitCounts(t *testing.T) {
	for _, c := range []struct {
		name                             string
		tests, failures, errors, skipped int
	}{
		{"breach", 9, 3, 0, 1}, // ttft at 4 and 8 and the capacity broke; 9 failed of 300 is undecided at 8
		{"none", 5, 0, 0, 1},
		{"inconclusive", 9, 0, 0, 3},
		{"invalid", 9, 0, 4, 1},
		{"empty", 0, 0, 0, 0},
	} {
		var buf bytes.Buffer
		if err := describe(fixtures()[c.name]).WriteJUnit(&buf); err != nil {
			t.Fatal(err)
		}
		var got junitSuites
		if err := xml.Unmarshal(buf.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Tests != c.tests || got.Failures != c.failures || got.Errors != c.errors || got.Skipped != c.skipped {
			t.Errorf("%s: %d tests, %d failures, %d errors, %d skipped; want %+v\n%s", c.name, got.Tests, got.Failures, got.Errors, got.Skipped, c, buf.String())
		}
	}
}

// The keys that readers of report.json rely on.
func TestKeys(t *testing.T) {
	var buf bytes.Buffer
	if err := describe(breachRun()).WriteJSON(&buf); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(buf.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"schema", "run", "state", "first_breach.concurrency", "first_breach.last_ok", "first_breach.objective", "first_breach.bad", "first_breach.total",
		"first_breach.ci", "first_breach.rounds_breached", "first_breach.rounds", "first_breach.owner", "first_breach.action",
		"steps.0.phase", "steps.0.concurrency", "steps.0.verdict", "steps.0.valid", "steps.0.objectives.0.name", "steps.0.objectives.0.verdict",
		"steps.0.objectives.0.good", "steps.0.objectives.0.total", "steps.0.objectives.0.slow", "steps.0.objectives.0.failed", "steps.0.objectives.0.ci",
		"steps.0.objectives.0.needed", "steps.0.latency.ttft.p50", "steps.0.latency.e2e.p95", "steps.0.latency.tpot.p99",
		"steps.0.throughput.requests_per_second", "steps.0.throughput.output_tokens_per_second", "steps.0.throughput.goodput_per_second",
		"steps.0.success_ratio", "steps.0.queue.mean", "steps.0.resources.cpu_utilization.mean", "recovery.baseline", "validity", "conditions.model",
	} {
		if !has(doc, strings.Split(path, ".")) {
			t.Errorf("report.json has no %s", path)
		}
	}
}

func has(v any, path []string) bool {
	for _, key := range path {
		switch x := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = x[key]; !ok {
				return false
			}
		case []any:
			if key != "0" || len(x) == 0 {
				return false
			}
			v = x[0]
		default:
			return false
		}
	}
	return true
}

// Whatever numbers a run holds, the four files can be written, JSON parses, and nothing is NaN.
func TestAnyRunCanBeWritten(t *testing.T) {
	odd := rapid.SampledFrom([]*float64{nil, ptr(0.), ptr(1e-9), ptr(3.7), ptr(1e12), ptr(nan()), ptr(inf())})
	rapid.Check(t, func(t *rapid.T) {
		run := breachRun()
		run.Steps = run.Steps[:rapid.IntRange(0, len(run.Steps)).Draw(t, "steps")]
		for i := range run.Steps {
			s := &run.Steps[i]
			n := rapid.Int64Range(0, 150).Draw(t, "total")
			s.Counts = map[string]verdict.Count{"ttft": {Total: n, Slow: rapid.Int64Range(0, n).Draw(t, "slow")}}
			s.TTFT.P95 = odd.Draw(t, "p95")
			s.Readings["cpu_utilization"] = verdict.Reading{Layer: "resource", Unit: "ratio", Mean: odd.Draw(t, "mean"), Max: odd.Draw(t, "max"), Samples: 1}
			if rapid.IntRange(0, 5).Draw(t, "edge") == 0 {
				s.MeasureTo = odd.Draw(t, "to")
			}
		}
		for i := range run.Latency {
			run.Latency[i].TTFT.P95 = odd.Draw(t, "pooled")
		}
		run.Timeline[0].Points[0].V = *ptr(nan())
		d := describe(run)
		var buf bytes.Buffer
		if err := d.WriteJSON(&buf); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(buf.Bytes()) || bytes.Contains(buf.Bytes(), []byte("NaN")) {
			t.Fatal("not JSON")
		}
		writers := []func(io.Writer) error{d.WriteMarkdown, d.WriteJUnit}
		if rapid.IntRange(0, 4).Draw(t, "page") == 0 { // its charts take their time
			writers = append(writers, d.WriteHTML)
		}
		for _, write := range writers {
			if err := write(&buf); err != nil {
				t.Fatal(err)
			}
		}
	})
}
