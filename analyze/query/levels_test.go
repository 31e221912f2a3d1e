package query_test

import (
	"fmt"
	"testing"

	"firstbreach/analyze/query"
	"firstbreach/analyze/verdict"
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
