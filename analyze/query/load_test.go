package query_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"firstbreach/analyze/query"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/slo"
)

// wantRamp is the ramp step of demoRun: 100 ok, 3 of them slow, 3 failed, 5 aborted.
func wantRamp() map[string]verdict.Count {
	return map[string]verdict.Count{
		"ttft":     {Total: 103, Slow: 3, Failed: 3},
		"success":  {Total: 103, Failed: 3},
		"timeouts": {Total: 103, Failed: 1},
	}
}

func TestExactCounts(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r1")
	other := demoRun("r2") // at the same time, with other numbers
	for i := range other.steps {
		other.steps[i].ttft = spread(77, 30)
	}
	w.write(spec)
	w.write(other)
	url := w.serve()

	run, log := load(t, query.Options{URL: url, SLO: sloFile(t), Manifest: w.manifest(spec)})
	if len(run.Steps) != 6 {
		t.Fatalf("%d steps, want 6", len(run.Steps))
	}
	for i, s := range run.Steps {
		if len(s.ManifestDiffers) > 0 || s.Resets != 0 {
			t.Errorf("step %d: differs %q, %d resets", i, s.ManifestDiffers, s.Resets)
		}
		if s.Start == nil || *s.Start != w.t0+spec.steps[i].start || *s.End != w.t0+spec.steps[i].start+10 ||
			*s.MeasureFrom != *s.Start+1 || *s.MeasureTo != *s.Start+9 {
			t.Errorf("step %d: edges %v %v %v %v", i, *s.Start-w.t0, *s.MeasureFrom-w.t0, *s.MeasureTo-w.t0, *s.End-w.t0)
		}
		if s.Scrapes != 10 || s.ScrapesExpected != 10 {
			t.Errorf("step %d: %d scrapes of %d", i, s.Scrapes, s.ScrapesExpected)
		}
	}
	s := run.Steps[3]
	if s.Phase != "ramp" || s.Round != 2 {
		t.Fatalf("step 3 is %s %d", s.Phase, s.Round)
	}
	if d := cmp.Diff(wantRamp(), s.Counts); d != "" {
		t.Errorf("counts (-want +got):\n%s", d)
	}
	if s.Outcomes["ok"] != 100 || s.Outcomes["rejected"] != 2 || s.Outcomes["aborted"] != 5 || s.Timeouts["total"] != 1 || s.Good != 97 {
		t.Errorf("outcomes %v, timeouts %v, good %d", s.Outcomes, s.Timeouts, s.Good)
	}
	if s.OutputTokens != 6400 || s.PromptTokens != 25600 || s.CachedPromptTokens != 1000 {
		t.Errorf("tokens %d %d %d", s.OutputTokens, s.PromptTokens, s.CachedPromptTokens)
	}
	near(t, "sum of TTFT", s.SumTTFT, 3*2+97*0.1)
	near(t, "sum of TPOT", s.SumTPOT, 3*2+97*0.1)
	near(t, "in-flight seconds", s.InFlightSeconds, 16)
	near(t, "occupancy", s.OccupancySeconds, 16)
	near(t, "backing off", s.BackoffSeconds, 0.16)
	if s.CountTPOT != 100 {
		t.Errorf("count of TPOT %d", s.CountTPOT)
	}
	// Native buckets are at most 10 % wide; the classic ones would say 0.05.
	if p := s.TTFT.P50; p == nil || math.Abs(*p-0.1) > 0.01 {
		t.Errorf("P50 of TTFT %v, want 0.1", p)
	}
	if len(run.Latency) != 2 || run.Latency[1].Phase != "ramp" || run.Latency[1].TTFT.P99 == nil || math.Abs(*run.Latency[1].TTFT.P99-2) > 0.2 {
		t.Errorf("pooled latency %+v", run.Latency)
	}
	near(t, "scrape interval", run.ScrapeInterval, 1)
	if len(run.Warnings) > 0 {
		t.Errorf("warnings %q", run.Warnings)
	}
	if run.ClockSkew == nil || math.Abs(*run.ClockSkew) > 1 {
		t.Errorf("clock skew %v", run.ClockSkew)
	}
	for _, q := range log.Queries {
		if q.Name == "" || q.Expr == "" || q.Type == "" || q.Error != "" {
			t.Errorf("log entry %+v", q)
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Errorf("%s %v, want %v", what, got, want)
	}
}

// The number of queries doesn't grow with the steps, and with or without a manifest the numbers
// are the same.
func TestWithoutManifest(t *testing.T) {
	w := newWorld(t)
	long := demoRun("long")
	short := demoRun("short")
	short.steps = short.steps[:2]
	w.write(long)
	w.write(short)
	url := w.serve()

	with, logWith := load(t, query.Options{URL: url, SLO: sloFile(t), Manifest: w.manifest(long)})
	without, logWithout := load(t, query.Options{URL: url, SLO: sloFile(t), RunID: "long"})
	if without.Manifest || !with.Manifest || without.State != "" {
		t.Errorf("manifest %v %v, state %q", with.Manifest, without.Manifest, without.State)
	}
	if d := cmp.Diff(with.Steps, without.Steps); d != "" {
		t.Errorf("steps with and without a manifest:\n%s", d)
	}
	_, logShort := load(t, query.Options{URL: url, SLO: sloFile(t), RunID: "short"})
	if n, m := len(logWithout.Queries), len(logShort.Queries); n != m || n != len(logWith.Queries) {
		t.Errorf("%d queries for 6 steps, %d for 2, %d with a manifest", n, m, len(logWith.Queries))
	}
	again, _ := load(t, query.Options{URL: url, SLO: sloFile(t), RunID: "long"})
	again.ClockSkew, without.ClockSkew = nil, nil
	if d := cmp.Diff(without, again); d != "" {
		t.Errorf("the same run reads differently:\n%s", d)
	}
}

func TestHistogramForms(t *testing.T) {
	cases := []struct {
		name    string
		change  func(*runSpec)
		missing string // in the count of ttft; "" when it counts
	}{
		{"native and classic", func(*runSpec) {}, ""},
		{"classic alone", func(r *runSpec) { r.native = false }, ""},
		{"edges as Prometheus 2 writes them", func(r *runSpec) {
			r.native = false
			r.le = func(v float64) string { return strings.TrimSuffix(labelsFloat(v), ".0") }
		}, ""},
		{"native alone", func(r *runSpec) { r.classic = false }, "always_scrape_classic_histograms: true"},
		{"no edge at the threshold", func(r *runSpec) { r.edges = []float64{0.1, 0.5, 5} }, `le="1"; the edges are …, 0.5, 5, …`},
		{"threshold over the last edge", func(r *runSpec) { r.edges = []float64{0.1, 0.5} }, "up to 0.5"},
		{"+Inf alone", func(r *runSpec) { r.edges = nil }, "+Inf alone"},
		{"no histogram", func(r *runSpec) { r.native, r.classic = false, false }, "no samples of loadgen_time_to_first_token_seconds"},
	}
	w := newWorld(t)
	for i, c := range cases {
		spec := demoRun(c.name)
		spec.id = string(rune('a' + i))
		spec.steps = spec.steps[:2]
		c.change(&spec)
		w.write(spec)
	}
	url := w.serve()
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run, _ := load(t, query.Options{URL: url, SLO: sloFile(t), RunID: string(rune('a' + i))})
			s := find(t, run, "ramp", 1)
			got := s.Counts["ttft"]
			if c.missing != "" {
				if !strings.Contains(got.Missing, c.missing) || got.Total != 0 {
					t.Errorf("count %+v, want it missing for %q", got, c.missing)
				}
			} else if got != wantRamp()["ttft"] {
				t.Errorf("count %+v, want %+v", got, wantRamp()["ttft"])
			}
			if s.Counts["success"] != wantRamp()["success"] {
				t.Errorf("success %+v", s.Counts["success"])
			}
			if c.name == "no histogram" {
				return
			}
			near(t, "sum of TTFT", s.SumTTFT, 3*2+97*0.1)
			if s.TTFT.P95 == nil || s.E2E.P99 == nil || s.TPOT.P50 == nil {
				t.Errorf("quantiles %+v %+v %+v", s.TTFT, s.E2E, s.TPOT)
			}
			if len(run.Warnings) > 0 {
				t.Errorf("warnings %q", run.Warnings)
			}
		})
	}
}

func TestReplicasAreOneRun(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r")
	for i, replica := range []string{"a", "b"} {
		spec.labels = []string{"instance", "h" + replica + ":10511", "job", "loadgen", "prometheus_replica", replica}
		if i == 1 { // the second one was down at the end and lacks final values
			spec.skip = func(t float64) bool { return t > 60 }
			spec.native = false
		}
		w.write(spec)
	}
	run, _ := load(t, query.Options{URL: w.serve(), SLO: sloFile(t), Manifest: w.manifest(spec)})
	for _, s := range run.Steps {
		if len(s.ManifestDiffers) > 0 {
			t.Errorf("%s %d: %q", s.Phase, s.Round, s.ManifestDiffers)
		}
	}
	if s := find(t, run, "ramp", 3); s.Counts["ttft"] != wantRamp()["ttft"] || s.Scrapes != 10 {
		t.Errorf("counts %+v, %d scrapes", s.Counts, s.Scrapes)
	}
}

func TestShardsAddUp(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r")
	for i, shard := range []string{"0", "1"} {
		spec.labels = []string{"instance", "h" + shard + ":10511", "shard", shard}
		if i == 1 {
			spec.steps = append([]stepSpec(nil), spec.steps...)
			for j := range spec.steps {
				spec.steps[j].start += 0.25 // they never start at the same moment
			}
		}
		w.write(spec)
	}
	run, _ := load(t, query.Options{URL: w.serve(), SLO: sloFile(t), RunID: "r"})
	s := find(t, run, "ramp", 1)
	if want := (verdict.Count{Total: 206, Slow: 6, Failed: 6}); s.Counts["ttft"] != want {
		t.Errorf("counts %+v, want %+v", s.Counts["ttft"], want)
	}
	if *s.Start != w.t0+12.25 || *s.End != w.t0+22.5 || s.Scrapes != 10 {
		t.Errorf("from %v to %v, %d scrapes", *s.Start-w.t0, *s.End-w.t0, s.Scrapes)
	}
}

func TestTwoGeneratorsWithOneID(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r")
	w.write(spec)
	spec.labels = []string{"instance", "elsewhere:10511"}
	for i := range spec.steps {
		spec.steps[i].start += 3
	}
	w.write(spec)
	_, _, err := query.Load(t.Context(), query.Options{URL: w.serve(), SLO: sloFile(t), RunID: "r"})
	if err == nil || !strings.Contains(err.Error(), "more than one load generator") {
		t.Errorf("error %v", err)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r")
	manifest := w.manifest(spec)
	cut := demoRun("r")
	cut.skip = func(t float64) bool { return t >= 16 && t < 20 || t >= 45 && t < 48.5 || t >= 60 }
	w.write(cut)
	run, _ := load(t, query.Options{URL: w.serve(), SLO: sloFile(t), Manifest: manifest})

	if s := run.Steps[1]; s.Scrapes != 6 || len(s.ManifestDiffers) != 0 {
		t.Errorf("outage in mid-step: %d scrapes, differs %q", s.Scrapes, s.ManifestDiffers)
	}
	// The last scrapes of ramp 2 (36.25 to 46.25) are missing.
	s := run.Steps[3]
	if s.End != nil || !strings.Contains(strings.Join(s.ManifestDiffers, "\n"), "drain requests with outcome ok: 2 in the manifest, 0 in Prometheus") {
		t.Errorf("end %v, differs %q", s.End, s.ManifestDiffers)
	}
	// Ramp 3 was never scraped.
	s = run.Steps[5]
	if s.Outcomes != nil || len(s.ManifestDiffers) != 1 || s.Counts["ttft"].Missing == "" || s.Counts["success"].Missing == "" || s.Counts["timeouts"].Missing == "" {
		t.Errorf("step that wasn't scraped: %+v", s)
	}
	for name, r := range s.Readings {
		if r.Missing == "" {
			t.Errorf("reading %s of a step that wasn't scraped: %+v", name, r)
		}
	}
}

func TestNothingScraped(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("other")
	w.write(spec)
	url := w.serve()
	lost := demoRun("lost")
	run, _ := load(t, query.Options{URL: url, SLO: sloFile(t), Manifest: w.manifest(lost)})
	if len(run.Steps) != 6 || run.Steps[0].Outcomes != nil || run.Steps[0].Counts["ttft"].Missing == "" {
		t.Errorf("steps %+v", run.Steps)
	}
	if len(run.Warnings) != 1 || !strings.Contains(run.Warnings[0], `no series of run "lost"`) {
		t.Errorf("warnings %q", run.Warnings)
	}

	_, log, err := query.Load(t.Context(), query.Options{URL: url, SLO: sloFile(t), RunID: "lost"})
	var missing *query.NotFoundError
	if !errors.As(err, &missing) || len(missing.There) != 1 || missing.There[0] != "other" || !strings.Contains(err.Error(), "it has runs other") {
		t.Errorf("error %v", err)
	}
	if len(log.Queries) == 0 {
		t.Error("the log of a failed load is empty")
	}
}

// A store whose clock is off by more than a scrape voids the run: what is read at a time is then not
// what was meant.
func TestClockThatIsOff(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r")
	w.write(spec)
	url, manifest := w.serve(), w.manifest(spec)
	for _, off := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		now := func() time.Time { return time.Now().Add(off) }
		run, _ := load(t, query.Options{URL: url, SLO: sloFile(t), Manifest: manifest, Now: now})
		if run.ClockSkew == nil || math.Abs(*run.ClockSkew+off.Seconds()) > 5 {
			t.Fatalf("our clock off by %s: skew %v", off, run.ClockSkew)
		}
		res := verdict.Judge(*run)
		if res.State != verdict.Invalid || !strings.Contains(res.Reason, "NTP") {
			t.Errorf("our clock off by %s: %s: %s", off, res.State, res.Reason)
		}
	}
}

func TestResets(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r")
	spec.steps = spec.steps[:2]
	w.write(spec)
	// A counter that falls after the step's end, as if another process went on with the labels.
	base := append([]string{"run", "r", "instance", "127.0.0.1:10511", "job", "loadgen", "role", "client", "window", "measure", "outcome", "ok"}, spec.steps[1].id()...)
	w.put(30, 1, "loadgen_requests_total", base...)
	run, _ := load(t, query.Options{URL: w.serve(), SLO: sloFile(t), RunID: "r"})
	if a, b := run.Steps[0].Resets, run.Steps[1].Resets; a != 0 || b != 1 {
		t.Errorf("resets %d and %d, want 0 and 1", a, b)
	}
	if c := run.Steps[1].Counts["ttft"]; !strings.Contains(c.Missing, "samples are missing") {
		t.Errorf("count %+v: the histogram and the outcomes disagree", c)
	}
}

// No request at all: 0 of 0 is a count of 0, and no quantile, not NaN.
func TestEmptyStep(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r")
	spec.steps = spec.steps[:1]
	spec.steps[0].ttft = nil
	w.write(spec)
	run, _ := load(t, query.Options{URL: w.serve(), SLO: sloFile(t), RunID: "r"})
	s := run.Steps[0]
	if s.Counts["ttft"] != (verdict.Count{}) || s.Counts["success"] != (verdict.Count{}) {
		t.Errorf("counts %+v", s.Counts)
	}
	if s.TTFT != (verdict.Quantiles{}) {
		t.Errorf("quantiles of nothing %+v", s.TTFT)
	}
}

func TestServerTrouble(t *testing.T) {
	var status, calls int
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.WriteHeader(status)
	}))
	defer srv.Close()
	for _, c := range []struct {
		status, calls int
		want          string
	}{
		{503, 3, "overloaded"},
		{500, 1, "server error: 500"},
		{404, 1, "base of a Prometheus HTTP API"},
		{401, 1, "credentials"},
		{200, 1, "base of a Prometheus HTTP API"},
	} {
		status, calls = c.status, 0
		_, _, err := query.Load(t.Context(), query.Options{URL: srv.URL, SLO: sloFile(t), RunID: "r", Pause: time.Millisecond})
		if err == nil || !strings.Contains(err.Error(), c.want) || calls != c.calls {
			t.Errorf("status %d: %d calls, error %v; want %d calls and %q", c.status, calls, err, c.calls, c.want)
		}
	}
	srv.Close()
	_, _, err := query.Load(t.Context(), query.Options{URL: srv.URL, SLO: sloFile(t), RunID: "r", Pause: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "can't be reached") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := query.Load(ctx, query.Options{URL: srv.URL, SLO: sloFile(t), RunID: "r"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestOptions(t *testing.T) {
	_, _, err := query.Load(t.Context(), query.Options{})
	for _, want := range []string{"no Prometheus to ask", "no SLO file", "no run ID"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	bad := sloFile(t, slo.Objective{Name: "db", Layer: slo.Service, Kind: slo.Expression, PromQL: "sum(", Line: 12},
		slo.Objective{Name: "text", Layer: slo.Service, Kind: slo.Expression, PromQL: `"x"`, Line: 13})
	_, _, err = query.Load(t.Context(), query.Options{URL: "http://127.0.0.1:1", SLO: bad, RunID: "r"})
	for _, want := range []string{"slo.yaml:12: objective db", "slo.yaml:13: objective text", "string"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, _, err := query.Load(t.Context(), query.Options{URL: "localhost:9090", SLO: sloFile(t), RunID: "r"}); err == nil || !strings.Contains(err.Error(), "not the URL") {
		t.Errorf("error %v", err)
	}
}
