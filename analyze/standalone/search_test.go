package standalone

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"firstbreach/analyze/report"
	"firstbreach/analyze/search"
	"firstbreach/analyze/verdict"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/run"
	"firstbreach/loadgen/sim"
)

// beginSearch starts a search on an engine with two slots: from three clients on one waits for a whole
// service time.
func beginSearch(t *testing.T, o search.Options) *job {
	t.Helper()
	cfg := sim.Default()
	cfg.Slots, cfg.PrefillTime, cfg.StepBase = 2, 40*time.Millisecond, 5*time.Millisecond
	theory := cfg.FirstBreach([]int{1, 2, 3, 4}, promptTokens, outputTokens, sim.Goal{Signal: sim.SignalTTFT, Threshold: limitTTFT, Target: 0.9})
	if theory.Concurrency != 3 || theory.LastOK != 2 || !theory.Decided {
		t.Fatalf("the parameters imply %+v", theory)
	}
	j := begin(t, startEngine(t, cfg), []int{1, 8}, "rounds: 3", "rounds: 1") // the ladder and the rounds are not the search's
	j.Search = &o
	if err := j.checkSearch(j.files); err != nil {
		t.Fatal(errors.Join(err, j.stop()))
	}
	return j
}

// TestSearch finds the exact first breach on real sockets, confirms it, and keeps a run that can be reported again.
func TestSearch(t *testing.T) {
	inRealTime(t)
	j := beginSearch(t, search.Options{Min: 1, Max: 8, Looks: 2})
	out, err := j.measure(t.Context())
	if err := errors.Join(err, j.stop()); err != nil {
		t.Fatal(err)
	}
	s := out.Report.Search
	if out.State != verdict.Breach || s.FirstBreach != 3 || s.LastOK != 2 || !s.Exact || s.Ended != "found" {
		t.Fatalf("%s, %+v: %q", out.State, s, out.Report.Headline())
	}
	if s.Confirmation == nil || s.Confirmation.Verdict != verdict.Confirmed {
		t.Errorf("confirmation %+v", s.Confirmation)
	}
	checkTotals(t, j.Dir)
	m := j.runner.Manifest()
	if !slices.Contains(m.Ladder, 3) || slices.Contains(m.Ladder, 8) || m.Rounds != 3 || m.Search.Sent == 0 {
		t.Errorf("ladder %v, %d rounds, %+v", m.Ladder, m.Rounds, m.Search)
	}
	baselines, recoveries := 0, 0
	for _, step := range m.Steps {
		switch step.Phase {
		case "baseline":
			baselines++
		case "recovery":
			recoveries++
		}
	}
	if baselines != 3 || recoveries != 3 || out.Report.Recovery.State == verdict.NotMeasured {
		t.Errorf("%d baselines, %d recoveries, recovery %s", baselines, recoveries, out.Report.Recovery.State)
	}
	md, err := os.ReadFile(filepath.Join(j.Dir, record.ReportMD))
	for _, want := range []string{"That is exact; run once more, it was confirmed.", "## The search", "the first breach is exact", "Confirmation: confirmed"} {
		if err != nil || !strings.Contains(string(md), want) {
			t.Errorf("the report doesn't say %q (%v)", want, err)
		}
	}
}

// TestSearchCutShort keeps what a search knew when it was interrupted, or when its budget was used up.
func TestSearchCutShort(t *testing.T) {
	inRealTime(t)
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		j := beginSearch(t, search.Options{Min: 1, Max: 8, Looks: 2})
		ctx, cancel := context.WithCancel(t.Context())
		go j.whenIn(ctx, 6, cancel)
		out, err := j.measure(ctx)
		if err := j.stop(); err != nil {
			t.Error(err)
		}
		if !errors.Is(err, run.ErrInterrupted) || !out.Interrupted {
			t.Fatalf("%v", err)
		}
		s := whatIsKnown(t, j, out.Report)
		if !strings.Contains(s.Ended, "cut short") || j.runner.Manifest().State != record.Interrupted {
			t.Errorf("%s, %+v", j.runner.Manifest().State, s)
		}
	})
	t.Run("budget of requests", func(t *testing.T) {
		t.Parallel()
		j := beginSearch(t, search.Options{Min: 1, Max: 8, Looks: 2, Requests: 300})
		out, err := j.measure(t.Context())
		if err := errors.Join(err, j.stop()); err != nil {
			t.Fatal(err)
		}
		s := whatIsKnown(t, j, out.Report)
		if s.Sent > 300 || !strings.Contains(s.Ended, "the budget of requests") || j.runner.Manifest().State != record.Complete {
			t.Errorf("%s, %+v", j.runner.Manifest().State, s)
		}
		if !slices.ContainsFunc(out.Report.DoNow, func(line string) bool { return strings.Contains(line, "larger budget") }) {
			t.Errorf("what to do now: %q", out.Report.DoNow)
		}
	})
}

// whatIsKnown is the search of a report that is open: no first breach but the true one is named.
func whatIsKnown(t *testing.T, j *job, doc *report.Document) *report.Search {
	t.Helper()
	if doc == nil || doc.Search == nil {
		t.Fatal("no report of the search")
	}
	if s := doc.Search; s.FirstBreach != 0 && s.FirstBreach < 3 || s.LastOK > 2 {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat(filepath.Join(j.Dir, record.ReportHTML)); err != nil {
		t.Error(err)
	}
	return doc.Search
}
