package standalone

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"firstbreach/analyze/analysis"
	"firstbreach/analyze/store"
	"firstbreach/analyze/verdict"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/run"
	"firstbreach/loadgen/sim"
)

// twoSlots is an engine that breaks at four clients.
func twoSlots() sim.Config {
	cfg := sim.Default()
	cfg.Slots, cfg.PrefillTime, cfg.StepBase = 2, pace*30*time.Millisecond, pace*5*time.Millisecond
	return cfg
}

// begin starts a run of scenarioPlan, edited, and returns it with a function that measures it.
func begin(t *testing.T, base string, ladder []int, edit ...string) *job {
	t.Helper()
	work := t.TempDir()
	plan := strings.NewReplacer(edit...).Replace(scenarioPlan(base, ladder))
	o := Options{
		PlanFile: writeFile(t, work, "plan.yaml", plan), SLOFile: writeFile(t, work, "slo.yaml", scenarioSLO()),
		Dir: filepath.Join(work, "run"), ScrapeInterval: 200 * time.Millisecond,
	}.withDefaults()
	f, err := o.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j := &job{Options: o, files: f}
	if err := j.start(t.Context()); err != nil {
		t.Fatal(errors.Join(err, j.stop()))
	}
	return j
}

// whenIn calls f once the run is in the given step, counted over all rounds from 1.
func (j *job) whenIn(ctx context.Context, step int, f func()) {
	for len(j.runner.Manifest().Steps) < step {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	f()
}

// TestPrometheusGoneMidRun takes the store away for some seconds in the middle of the run. The rounds that
// it missed are void, run again, and the verdict is the right one.
func TestPrometheusGoneMidRun(t *testing.T) {
	inRealTime(t)
	j := begin(t, startEngine(t, twoSlots()), []int{1, 4}, "requests: 30, min_duration: 1200ms", "requests: 30, min_duration: 1500ms")
	gone := make(chan error, 1)
	go j.whenIn(t.Context(), 6, func() {
		time.Sleep(300 * time.Millisecond)
		address := strings.TrimPrefix(j.store.URL(), "http://")
		err := j.store.Close()
		time.Sleep(4 * time.Second)
		again, openErr := store.Open(t.Context(), store.Options{
			Dir: filepath.Join(j.Dir, record.StoreDir), ListenAddress: address, ScrapeInterval: j.ScrapeInterval, Targets: j.targets(),
		})
		if openErr == nil {
			j.store = again
		}
		gone <- errors.Join(err, openErr)
	})
	out, err := j.measure(t.Context())
	if err := errors.Join(err, <-gone, j.stop()); err != nil {
		t.Fatal(err)
	}
	if b := out.Report.FirstBreach; b == nil || b.Concurrency != 4 || b.LastOK == nil || *b.LastOK != 1 {
		t.Errorf("%s: %q", out.State, out.Report.Headline())
	}
	if m := j.runner.Manifest(); m.Rounds != 4 {
		t.Errorf("%d rounds, want 4: one in place of the one that Prometheus missed", m.Rounds)
	}
}

// TestKilledMidStep analyses what a kill -9 in the middle of a run leaves: the directory as it is at that
// moment.
func TestKilledMidStep(t *testing.T) {
	inRealTime(t)
	j := begin(t, startEngine(t, twoSlots()), []int{1, 4})
	left := filepath.Join(t.TempDir(), "left")
	copied := make(chan error, 1)
	go j.whenIn(t.Context(), 7, func() { // round 2, the ladder's first step is over
		time.Sleep(300 * time.Millisecond)
		copied <- os.CopyFS(left, os.DirFS(j.Dir))
	})
	_, err := j.measure(t.Context())
	if err := errors.Join(err, <-copied, j.stop()); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(left, record.StoreDir, "lock")) // its holder is gone
	src, err := analysis.ReadDir(left)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := record.ReadLedger(filepath.Join(left, record.LedgerFile))
	if err != nil || len(entries) < 100 || src.Manifest.State != record.Running {
		t.Errorf("%d lines in the ledger, state %s, %v", len(entries), src.Manifest.State, err)
	}
	s, err := analysis.OpenDir(t.Context(), left, discard())
	if err != nil {
		t.Fatal(err)
	}
	doc, res, err := analysis.Run(t.Context(), analysis.Options{Source: src, Prometheus: analysis.Prometheus{URL: s.URL()}})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if res.State == verdict.Breach || res.State == verdict.None {
		t.Errorf("%s: %q", res.State, doc.Headline())
	}
	for _, step := range res.Steps {
		for _, r := range step.Rounds {
			if done := r.Round == 1 || r.Round == 2 && step.Phase == verdict.PhaseBaseline || r.Round == 2 && step.Concurrency == 1 && step.Phase == verdict.PhaseRamp; r.Valid != done {
				t.Errorf("%s %d round %d: valid %v: %q", step.Phase, step.Concurrency, r.Round, r.Valid, r.Void())
			}
		}
		if step.Verdict == verdict.OK || step.Verdict == verdict.Breach {
			t.Errorf("%s %d: %s with fewer than three rounds", step.Phase, step.Concurrency, step.Verdict)
		}
	}
}

// TestInterrupted ends the run as a Ctrl-C does: what was measured is kept and reported.
func TestInterrupted(t *testing.T) {
	j := begin(t, startEngine(t, twoSlots()), []int{1, 4})
	ctx, cancel := context.WithCancelCause(t.Context())
	go j.whenIn(ctx, 6, func() { cancel(errors.New("interrupt")) })
	out, err := j.measure(ctx)
	if !errors.Is(err, run.ErrInterrupted) || !out.Interrupted {
		t.Errorf("%v", err)
	}
	if err := j.stop(); err != nil {
		t.Error(err)
	}
	if out.Report == nil || out.State == verdict.Breach || out.State == verdict.None {
		t.Fatalf("state %s", out.State)
	}
	for _, name := range []string{record.ReportJSON, record.ReportMD, record.ReportHTML, record.ReportJUnit} {
		if _, err := os.Stat(filepath.Join(j.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	if m := j.runner.Manifest(); m.State != record.Interrupted || !strings.Contains(m.Reason, "interrupt") {
		t.Errorf("%s: %s", m.State, m.Reason)
	}
}

// TestTargetGoneMidRun has the engine crash for good in the second round: from then on every request
// fails, and what fails misses its objectives.
func TestTargetGoneMidRun(t *testing.T) {
	cfg := twoSlots()
	base := startEngine(t, cfg)
	j := begin(t, base, []int{1, 2}, "stop: {error_ratio: 0}", "stop: {error_ratio: 0.5, after: 20}")
	go j.whenIn(t.Context(), 5, func() { postFault(t, base, "crash:down=10m") })
	out, err := j.measure(t.Context())
	if err := errors.Join(err, j.stop()); err != nil {
		t.Fatal(err)
	}
	if out.State == verdict.None || out.State == verdict.OK {
		t.Errorf("%s: %q", out.State, out.Report.Headline())
	}
	if b := out.Report.FirstBreach; b != nil && b.Objective != "success" {
		t.Errorf("named %s: %q", b.Objective, out.Report.Headline())
	}
}

func postFault(t *testing.T, base, fault string) {
	resp, err := http.Post(base+"/sim/fault", "text/plain", strings.NewReader(fault))
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Errorf("POST /sim/fault: %s", resp.Status)
	}
}

// TestStopRuleAtTheFourthStep has the stop rule cut the fourth step in every round: what was measured until
// then counts, and is a breach.
func TestStopRuleAtTheFourthStep(t *testing.T) {
	inRealTime(t)
	cfg := twoSlots()
	cfg.Slots, cfg.ErrorShare, cfg.ErrorAbove = 16, 1, 4
	j := begin(t, startEngine(t, cfg), []int{1, 2, 4, 8, 16}, "stop: {error_ratio: 0}", "stop: {error_ratio: 0.5, after: 20}")
	out, err := j.measure(t.Context())
	if err := errors.Join(err, j.stop()); err != nil {
		t.Fatal(err)
	}
	b := out.Report.FirstBreach
	if b == nil || b.Concurrency != 8 || b.LastOK == nil || *b.LastOK != 4 || b.Objective != "success" || b.Rounds != 3 {
		t.Errorf("%s: %q", out.State, out.Report.Headline())
	}
	for _, s := range j.runner.Manifest().Steps {
		if s.Concurrency == 16 {
			t.Errorf("round %d went on to 16 after 8 was stopped", s.Round)
		}
	}
}
