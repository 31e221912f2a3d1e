package query_test

import (
	"fmt"
	"testing"

	"firstbreach/analyze/query"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
	"firstbreach/loadgen/record"
)

// levelsOf writes steps, or pooled latencies, in short.
func levelsOf(run *verdict.Run) (steps, pooled []string) {
	for _, s := range run.Steps {
		steps = append(steps, fmt.Sprintf("%s %d %s %s", s.Phase, s.Round, s.Level(), s.Class))
	}
	for _, l := range run.Latency {
		pooled = append(pooled, fmt.Sprintf("%s %s %s", l.Phase, l.Level(), l.Class))
	}
	return steps, pooled
}

// A step is a concurrency or a rate; two rates of one step number, and the classes of one step, are
// kept apart, and agree with the manifest.
func TestRatesAndClasses(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r1")
	base, ramp := spec.steps[0], spec.steps[1]
	spec.steps = []stepSpec{base}
	at := base.start + 20
	for round := 1; round <= 2; round++ {
		for i, rate := range []float64{0.5, 2, 12.5} {
			for _, class := range []string{"batch", "chat"} {
				s := ramp
				s.round, s.step, s.conc, s.rate, s.class, s.start = round, i+1, 0, rate, class, at
				if class == "batch" {
					s.ttft = s.ttft[:40]
				}
				spec.steps = append(spec.steps, s)
			}
			at += 20
		}
	}
	w.write(spec)
	m := w.manifest(spec)
	m.Ladder, m.Rates = nil, []float64{0.5, 2, 12.5}
	url := w.serve()
	run, _ := load(t, query.Options{URL: url, SLO: sloFile(t), Manifest: m})
	steps, pooled := levelsOf(run)
	if got, want := fmt.Sprint(steps[:5]), "[baseline 1 1  ramp 1 0.5/s batch ramp 1 0.5/s chat ramp 1 2/s batch ramp 1 2/s chat]"; got != want || len(steps) != 13 {
		t.Errorf("steps %s, want %s and 13 in all", got, want)
	}
	if got, want := fmt.Sprint(pooled), "[baseline 1  ramp 0.5/s batch ramp 2/s batch ramp 12.5/s batch ramp 0.5/s chat ramp 2/s chat ramp 12.5/s chat]"; got != want {
		t.Errorf("pooled %s, want %s", got, want)
	}
	for _, s := range run.Steps {
		want := int64(100)
		if s.Class != "chat" {
			want = 40
		}
		if s.Outcomes["ok"] != want || len(s.ManifestDiffers) > 0 {
			t.Errorf("%s %s %s: %d ok, differs %q", s.Phase, s.Level(), s.Class, s.Outcomes["ok"], s.ManifestDiffers)
		}
	}
	if fmt.Sprint(run.Rates) != "[0.5 2 12.5]" || len(run.Ladder) != 0 {
		t.Errorf("rates %v, ladder %v", run.Rates, run.Ladder)
	}
}

// A phase that is judged over its own time brings its counts at each scrape; the last are the totals.
func TestProgress(t *testing.T) {
	w := newWorld(t)
	spec := demoRun("r1")
	soak := spec.steps[1]
	soak.phase, soak.round, soak.step, soak.start = "soak", 1, 1, spec.steps[len(spec.steps)-1].start+20
	spec.steps = append(spec.steps, soak)
	w.write(spec)
	m := w.manifest(spec)
	last := &m.Steps[len(m.Steps)-1]
	last.Name, last.Events = "cut", []record.Event{{Event: "drill", StartedAt: w.time(soak.start + 2), EndedAt: w.time(soak.start + 2.5), Error: "exit status 1"}}
	last.Load = &level.Curve{Shape: level.Square, Low: 1, High: 4, Period: 4}
	last.Trace = &record.Replay{Rate: 2.5, Busiest: 4, InputTokens: 900, OutputTokens: 80}
	url := w.serve()
	run, _ := load(t, query.Options{URL: url, SLO: sloFile(t), Manifest: m})
	for _, s := range run.Steps {
		if want := s.Concurrency; s.MostInFlight != want {
			t.Errorf("%s: %d in flight at most, want %d", s.Phase, s.MostInFlight, want)
		}
		if s.Phase != "soak" {
			if got := s.Progress != nil; got != (s.Phase != "baseline") {
				t.Errorf("%s has its counts at each scrape: %v", s.Phase, got)
			}
			continue
		}
		if len(s.Progress) < 10 {
			t.Fatalf("%d scrapes", len(s.Progress))
		}
		first, end := s.Progress[0], s.Progress[len(s.Progress)-1]
		if first.Counts["ttft"].Total != 0 {
			t.Errorf("at the first scrape %+v", first.Counts["ttft"])
		}
		for name, c := range s.Counts {
			if got := end.Counts[name]; got.Total != c.Total || got.Slow != c.Slow || got.Failed != c.Failed {
				t.Errorf("%s: at the last scrape %+v, in all %+v", name, got, c)
			}
		}
		for i := 1; i < len(s.Progress); i++ {
			if a, b := s.Progress[i-1], s.Progress[i]; b.T <= a.T || b.Counts["success"].Total < a.Counts["success"].Total {
				t.Errorf("scrape %d: %+v after %+v", i, b, a)
			}
		}
		if s.Name != "cut" || len(s.Events) != 1 || s.Events[0].Event != "drill" || s.Events[0].Error != "exit status 1" || s.Load == nil || s.Load.Period != 4 {
			t.Fatalf("%q, events %+v, load %+v", s.Name, s.Events, s.Load)
		}
		if s.Trace == nil || *s.Trace != (verdict.Trace{Rate: 2.5, Busiest: 4, InputTokens: 900, OutputTokens: 80}) {
			t.Errorf("trace %+v", s.Trace)
		}
		near(t, "begin of the drill", s.Events[0].From, w.t0+soak.start+2)
		near(t, "end of the drill", s.Events[0].To, w.t0+soak.start+2.5)
	}
}
