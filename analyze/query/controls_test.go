package query_test

import (
	"math"
	"strings"
	"testing"

	"firstbreach/analyze/query"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/signal"
)

// control is a run whose cause is known: what engine and machine showed at each moment of a step,
// and how many of its hundred requests were slow.
type control struct {
	slow    map[int]int // by concurrency
	waiting func(conc int, into float64) float64
	running func(conc int) float64
	busy    func(phase string, conc int, into float64) float64 // share of both CPUs
	held    float64                                            // share of the load that the client held; 1 when 0
}

// steps are three rounds of baseline, 1, 2, 4 and recovery, 20 s each.
func (c control) steps() []stepSpec {
	var out []stepSpec
	at := 0.25
	for round := 1; round <= 3; round++ {
		for i, s := range []struct {
			phase string
			conc  int
		}{{"baseline", 1}, {"ramp", 1}, {"ramp", 2}, {"ramp", 4}, {"recovery", 1}} {
			slow := 0
			if s.phase == "ramp" {
				slow = c.slow[s.conc]
			}
			out = append(out, stepSpec{phase: s.phase, round: round, step: max(1, i), conc: s.conc, start: at, length: 20, ttft: spread(100, slow)})
			at += 22
		}
	}
	return out
}

// judge plays the control into a store and judges what is read of it.
func (c control) judge(t *testing.T) verdict.Result {
	t.Helper()
	w := newWorld(t)
	spec := runSpec{id: "r1", classic: true, edges: []float64{0.1, 0.5, 1, 5}, threshold: 1, steps: c.steps(), held: c.held}
	w.write(spec)
	c.show(w, spec.steps)
	m := w.manifest(spec)
	run, _ := load(t, query.Options{URL: w.serve(), SLO: sloFile(t), Manifest: m})
	return verdict.Judge(*run)
}

// show writes what engine and machine showed during the steps, once a second.
func (c control) show(w *world, steps []stepSpec) {
	cpu := [2]float64{} // busy, idle
	last := steps[len(steps)-1]
	for at := 0.0; at < last.start+last.length+5; at++ {
		phase, conc, into := "", 0, 0.0
		for _, s := range steps {
			if at >= s.start && at < s.start+s.length {
				phase, conc, into = s.phase, s.conc, at-s.start
			}
		}
		share := 0.05
		if conc > 0 || c.slow == nil {
			share = c.busy(phase, conc, into)
		}
		cpu[0] += 2 * share
		cpu[1] += 2 * (1 - share)
		for i, mode := range []string{"user", "idle"} {
			w.put(at, cpu[i], signal.HostCPUSeconds, "job", "exporter", "instance", "h", "role", "target", "cpu", "0", "mode", mode)
		}
		waiting, running := 0.0, 0.0
		if conc > 0 {
			waiting, running = c.waiting(conc, into), c.running(conc)
		}
		w.put(at, waiting, "vllm:num_requests_waiting", "job", "vllm", "instance", "e")
		w.put(at, running, "vllm:num_requests_running", "job", "vllm", "instance", "e")
	}
}

// over is what waits beyond a number of slots.
func over(slots int) func(int, float64) float64 {
	return func(conc int, _ float64) float64 { return math.Max(0, float64(conc-slots)) }
}

func upTo(slots int) func(int) float64 {
	return func(conc int) float64 { return math.Min(float64(slots), float64(conc)) }
}

// easy is a CPU that follows the load and stays far from full.
func easy(_ string, conc int, into float64) float64 {
	return 0.1 + 0.05*float64(conc) + 0.01*math.Mod(into, 2)
}

// A known cause must be found, and nothing where there is none.
func TestNegativeControls(t *testing.T) {
	for _, c := range []struct {
		name    string
		control control
		state   verdict.State
		layer   string
		check   func(t *testing.T, r verdict.Result)
	}{
		{"no fault", control{slow: map[int]int{}, waiting: over(8), running: upTo(8), busy: easy}, verdict.None, "", func(t *testing.T, r verdict.Result) {
			if len(r.Attribution.Hypotheses) > 0 || len(r.Attribution.Clues) > 0 {
				t.Errorf("attributed %+v", r.Attribution)
			}
		}},
		{"one slot", control{slow: map[int]int{2: 95, 4: 100}, waiting: over(1), running: upTo(1), busy: easy}, verdict.Breach, "service", func(t *testing.T, r verdict.Result) {
			a := r.Attribution
			if a.Certainty != verdict.Consistent || a.Rounds != 3 {
				t.Errorf("%s in %d rounds, want consistent in 3", a.Certainty, a.Rounds)
			}
			h := named(t, a, "slots")
			if h.Verdict != verdict.Supported {
				t.Errorf("slots: %+v", h)
			}
			if h := named(t, a, "compute"); h.Verdict != verdict.NotSupported || !strings.Contains(h.Against[0], "%") {
				t.Errorf("compute must be rejected with its number: %+v", h)
			}
			for _, o := range a.Onsets {
				for _, x := range o.Rounds {
					if !(x.Within.From < x.Within.To) {
						t.Errorf("%s: a point, not an interval: %+v", o.Signal, x)
					}
				}
			}
		}},
		{"slots full on a full CPU", control{slow: map[int]int{4: 98}, waiting: over(2), running: upTo(2),
			busy: func(_ string, conc int, _ float64) float64 { return math.Min(1, 0.5*float64(conc)) }}, verdict.Breach, "service", func(t *testing.T, r verdict.Result) {
			if h := named(t, r.Attribution, "slots"); h.Verdict != verdict.Undetermined {
				t.Errorf("slots against compute must stay open: %+v", h)
			}
			if !strings.Contains(r.Attribution.Text, "cpu utilization (from concurrency 2) had turned at a lower step") {
				t.Errorf("the CPU is an earlier clue: %s", r.Attribution.Text)
			}
		}},
		{"CPU hog", control{slow: map[int]int{2: 60, 4: 100}, running: upTo(8),
			waiting: func(conc int, into float64) float64 {
				if conc > 1 && into > 9 {
					return 2
				}
				return 0
			},
			busy: func(phase string, conc int, into float64) float64 {
				if phase == "ramp" && (conc == 2 && into > 7 || conc == 4) {
					return 1
				}
				return 0.2
			}}, verdict.Breach, "resource and service", func(t *testing.T, r verdict.Result) {
			if h := named(t, r.Attribution, "something else"); h.Verdict != verdict.Supported {
				t.Errorf("neighbour: %+v", h)
			}
		}},
		{"throttled client", control{slow: map[int]int{4: 98}, waiting: over(2), running: upTo(2), busy: easy, held: 0.6}, verdict.Invalid, "", nil},
		{"busy neighbour without load", control{slow: map[int]int{}, waiting: over(8), running: upTo(8),
			busy: func(string, int, float64) float64 { return 0.97 }}, verdict.None, "", func(t *testing.T, r verdict.Result) {
			if len(r.Attribution.Clues) != 1 || !strings.Contains(r.Attribution.Clues[0], "at the baseline already") {
				t.Errorf("clues %q", r.Attribution.Clues)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.control.judge(t)
			if r.State != c.state {
				t.Fatalf("%s (%s), want %s", r.State, r.Reason, c.state)
			}
			if r.Attribution.FirstLayer != c.layer {
				t.Errorf("first layer %q, want %q: %s", r.Attribution.FirstLayer, c.layer, r.Attribution.Text)
			}
			if c.check != nil {
				c.check(t, r)
			}
		})
	}
}

func named(t *testing.T, a *verdict.Attribution, part string) verdict.Hypothesis {
	t.Helper()
	for _, h := range a.Hypotheses {
		if strings.Contains(h.Name, part) {
			return h
		}
	}
	t.Fatalf("no hypothesis about %s", part)
	return verdict.Hypothesis{}
}
