package run_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/internal/slo"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/run"
)

// withClasses gives a plan two classes, three to one, and the SLO file an objective for each.
func withClasses(o *run.Options) {
	o.Plan.Classes = []plan.Class{{Name: "chat", Weight: 3, Objectives: []string{"ttft"}}, {Name: "batch", Weight: 1, Objectives: []string{"strict"}}}
	o.SLO.Objectives = append(o.SLO.Objectives,
		slo.Objective{Name: "strict", Layer: slo.User, Kind: slo.Latency, Signal: slo.SignalTTFT, Threshold: 10 * time.Millisecond})
}

func TestClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{}, 2, 4)
		o.Plan.Rounds = 1
		withClasses(&o)
		r := start(t, o)
		_, stop := scraping(t, r.Handler())
		if err := errors.Join(r.RunRounds(t.Context()), r.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		stop()
		m := r.Manifest()
		var got []string
		for _, s := range m.Steps {
			t := s.Totals["measure"]
			got = append(got, fmt.Sprintf("%s %s %s: %d ok, %d good", s.Phase, s.Level(), s.Class, t.Outcomes["ok"], t.Good))
			if s.Unscraped || s.MeasureFrom == nil || s.EndedAt == nil {
				got = append(got, "unfinished")
			}
		}
		// Every answer takes 100 ms to its first text: chat's objective holds, batch's never does.
		equal(t, "steps", got[2:6], []string{
			"ramp 2 chat: 15 ok, 15 good", "ramp 2 batch: 5 ok, 0 good", "ramp 4 chat: 15 ok, 15 good", "ramp 4 batch: 5 ok, 0 good",
		})
		equal(t, "classes", m.Classes, []record.ManifestClass{{Name: "chat", Weight: 3, Objectives: []string{"ttft"}}, {Name: "batch", Weight: 1, Objectives: []string{"strict"}}})
		equal(t, "final scrape", m.FinalScrape, "confirmed")
		entries, err := record.ReadLedger(o.Dir + "/ledger.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, e := range entries {
			seen[e.Class]++
		}
		if seen["chat"] < 2*seen["batch"] || seen["batch"] == 0 || len(seen) != 2 {
			t.Errorf("ledger by class: %v", seen)
		}
	})
}

// Nobody scrapes: both classes of a step are marked.
func TestClassesUnscraped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{}, 2)
		o.Plan.Rounds = 1
		withClasses(&o)
		r := start(t, o)
		if err := errors.Join(r.RunRounds(t.Context()), r.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Manifest().Steps {
			equal(t, s.Phase+" "+s.Class+" unscraped", s.Unscraped, true)
		}
	})
}

func TestAClassWithoutItsObjective(t *testing.T) {
	o := options(t, &target{}, 2)
	withClasses(&o)
	o.SLO.Objectives = o.SLO.Objectives[:1]
	if _, err := run.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "strict is no per-request objective of the SLO file") {
		t.Errorf("got %v", err)
	}
}
