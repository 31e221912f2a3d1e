package verdict

import (
	"strings"
	"testing"
)

// Each fault voids the round it is in, so that two valid rounds are left: nothing is claimed. In
// every round it voids the step and the run.
func TestGate(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Step)
		check string
		says  string
	}{
		{"unscraped", func(s *Step) { s.Unscraped = true }, checkScraped, "--scrape.wait"},
		{"manifest differs", func(s *Step) { s.ManifestDiffers = []string{"outcome ok: 99 in Prometheus, 100 in the manifest"} }, checkManifest, "99 in Prometheus"},
		{"counter reset mid-step", func(s *Step) { s.Resets = 1 }, checkResets, "1 counter reset"},
		{"scrapes missing", func(s *Step) { s.Scrapes, s.ScrapesExpected = 8, 10 }, checkScrapes, "8 of 10"},
		{"target dead after the step", func(s *Step) { s.End = nil }, checkEdges, "no end"},
		{"killed in the warm-up", func(s *Step) { s.MeasureFrom, s.MeasureTo, s.End = nil, nil, nil }, checkEdges, "begin of measuring"},
		{"interrupted with requests aborted", func(s *Step) { s.Stopped, s.Outcomes["aborted"] = "interrupted", 2 }, checkEdges, "2 requests aborted"},
		{"nothing measured", func(s *Step) { s.Outcomes = map[string]int64{"ok": 0} }, checkRequests, "no measured request"},
		{"only aborted", func(s *Step) { s.Outcomes = map[string]int64{"aborted": 4} }, checkRequests, "no measured request"},
		{"counts that can't be", func(s *Step) { s.Counts["ttft"] = Count{Total: 10, Slow: 20} }, checkCounts, "20 slow"},
		{"client limited", func(s *Step) { s.Limited = []string{"cpu", "late"} }, checkClient, "cpu, late"},
		{"throttled generator, X·R = 0.6 N", func(s *Step) { s.OccupancySeconds *= 0.6; s.SumE2E *= 0.6 }, checkLittle, "starved"},
		{"requests counted twice", func(s *Step) { s.OccupancySeconds *= 2 }, checkLittle, "twice"},
		{"throttled, and every tenth request failed", func(s *Step) {
			s.Outcomes = map[string]int64{"ok": 90, "server_error": 10}
			s.OccupancySeconds *= 0.6
			s.InFlightSeconds, s.SumE2E = s.OccupancySeconds, s.OccupancySeconds-0.1
		}, checkConcurrency, "could not hold the load"},
		{"slots idle", func(s *Step) { s.InFlightSeconds *= 0.94 }, checkConcurrency, "could not hold the load"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := ladderRun(map[int][]int64{4: {0, 0, 0}}, 4)
			c.spoil(&run.Steps[1])
			r := Judge(run)
			s := r.Steps[0]
			if s.Verdict != Inconclusive || s.ValidRounds != 2 || s.Rounds[1].Valid {
				t.Fatalf("%s with %d valid rounds", s.Verdict, s.ValidRounds)
			}
			if got := find(t, s.Rounds[1].Checks, c.check); got.Status != Failed || !strings.Contains(got.Detail, c.says) {
				t.Errorf("%+v", got)
			}
			if got := find(t, r.Checks, c.check); got.Status != Failed || !strings.Contains(got.Detail, "ramp 4 round 2") {
				t.Errorf("%+v", got)
			}
			for i := range run.Steps {
				if i != 1 {
					c.spoil(&run.Steps[i])
				}
			}
			r = Judge(run)
			if r.State != Invalid || r.Steps[0].Verdict != Invalid || r.Steps[0].Objectives[0].Verdict != Invalid {
				t.Errorf("run %s, step %s, objective %s", r.State, r.Steps[0].Verdict, r.Steps[0].Objectives[0].Verdict)
			}
		})
	}
}

// What looks like a fault and is none.
func TestGateLetsThrough(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Step)
		check string
		want  Status
	}{
		{"one scrape fewer by the phase", func(s *Step) { s.Scrapes, s.ScrapesExpected = 4, 5 }, checkScrapes, Passed},
		{"interval unknown", func(s *Step) { s.Scrapes, s.ScrapesExpected = 0, 0 }, checkScrapes, NotChecked},
		{"a few of many scrapes missing", func(s *Step) { s.Scrapes, s.ScrapesExpected = 95, 100 }, checkScrapes, Warn},
		{"drained after Ctrl-C", func(s *Step) { s.Stopped = "interrupted" }, checkEdges, Passed},
		{"long requests at the edges", func(s *Step) { s.OccupancySeconds *= 0.85; s.E2E.P99 = ptr(3.) }, checkLittle, Passed},
		{"window shorter than its requests", func(s *Step) { s.OccupancySeconds *= 0.8; s.E2E.P99 = ptr(30.) }, checkLittle, NotChecked},
		{"refused at once, faster than the client sends", func(s *Step) {
			s.Outcomes = map[string]int64{"ok": 100, "rejected": 20000}
			s.SumE2E = 40
			s.OccupancySeconds, s.InFlightSeconds = 60, 60
		}, checkLittle, Warn},
		{"target gone", func(s *Step) {
			s.Outcomes = map[string]int64{"ok": 10, "transport": 100000}
			s.OccupancySeconds, s.SumE2E, s.InFlightSeconds = 40, 20, 40
		}, checkConcurrency, Warn},
		{"backed off from refusals", func(s *Step) {
			s.Outcomes = map[string]int64{"ok": 100, "rejected": 20}
			s.SumE2E = s.OccupancySeconds / 2
			s.BackoffSeconds = s.OccupancySeconds / 2
			s.OccupancySeconds, s.InFlightSeconds = s.OccupancySeconds/2, s.InFlightSeconds/2
		}, checkConcurrency, Warn},
		{"backed off from refusals, by Little's law", func(s *Step) {
			s.SumE2E = s.OccupancySeconds / 2
			s.BackoffSeconds = s.OccupancySeconds / 2
			s.OccupancySeconds, s.InFlightSeconds = s.OccupancySeconds/2, s.InFlightSeconds/2
		}, checkLittle, Passed},
		{"timeouts hold their slot longest", func(s *Step) {
			s.Outcomes = map[string]int64{"ok": 98, "timeout": 2}
			s.OccupancySeconds *= 0.75
			s.SumE2E = s.OccupancySeconds - 10 // two that took 5 s each
		}, checkLittle, Passed},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := ladderRun(map[int][]int64{4: {0, 0, 0}}, 4)
			for i := range run.Steps {
				c.spoil(&run.Steps[i])
			}
			r := Judge(run)
			if got := find(t, r.Steps[0].Rounds[0].Checks, c.check); got.Status != c.want || r.Steps[0].ValidRounds != 3 {
				t.Errorf("%+v, %d valid rounds: %v", got, r.Steps[0].ValidRounds, r.Steps[0].Reasons)
			}
		})
	}
}

// Where the client backed off, nothing can be ok: what held, held for less than the step's load. A
// breach stays one, and a little backing off changes nothing.
func TestBackOffTakesBackWhatHeld(t *testing.T) {
	for _, c := range []struct {
		name  string
		share float64 // of the load
		bad   int64
		want  State
		says  string
	}{
		{"a tenth", 0.10, 0, Inconclusive, "10 % of the load was backing off"},
		{"less than one in twenty", 0.04, 0, OK, ""},
		{"a tenth of a breach", 0.10, 40, Breach, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := ladderRun(map[int][]int64{4: {c.bad, c.bad, c.bad}}, 4)
			for i := range run.Steps {
				s := &run.Steps[i]
				s.BackoffSeconds = c.share * s.InFlightSeconds
				s.InFlightSeconds -= s.BackoffSeconds
				s.OccupancySeconds -= s.BackoffSeconds
			}
			s := Judge(run).Steps[0]
			if s.Verdict != c.want || s.ValidRounds != 3 || !strings.Contains(strings.Join(s.Reasons, "; "), c.says) {
				t.Errorf("%s (%d valid rounds): %v", s.Verdict, s.ValidRounds, s.Reasons)
			}
			if got := find(t, s.Rounds[0].Checks, checkConcurrency); c.share == 0.10 && (got.Status != Warn || !strings.Contains(got.Detail, "0.4 backing off")) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestWholeRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Run)
		check string
		want  Status
		state State
	}{
		{"clean", func(*Run) {}, checkState, Passed, Breach},
		{"clock half a scrape off", func(r *Run) { r.ClockSkew = ptr(-0.6) }, checkSkew, Warn, Breach},
		{"clock more than a scrape off", func(r *Run) { r.ClockSkew = ptr(-1.1) }, checkSkew, Failed, Invalid},
		{"one hour off", func(r *Run) { r.ClockSkew = ptr(3600.) }, checkSkew, Failed, Invalid},
		{"clock not read", func(r *Run) { r.ClockSkew = nil }, checkSkew, NotChecked, Breach},
		{"conditions changed", func(r *Run) { r.ConditionsChanged = []string{"engine version 1 → 2 from round 2"} }, checkConditions, Failed, Invalid},
		{"no manifest", func(r *Run) { r.Manifest, r.State = false, "" }, checkManifest, NotChecked, Breach},
		{"interrupted, all steps complete", func(r *Run) { r.State, r.Reason = "interrupted", "Ctrl-C" }, checkState, Warn, Breach},
		{"query warnings", func(r *Run) { r.Warnings = []string{"w"} }, checkWarnings, Warn, Breach},
		{"two rounds planned", func(r *Run) { r.Rounds = 2 }, checkRounds, Warn, Breach},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := ladderRun(map[int][]int64{1: {0, 0, 0}, 2: {50, 50, 50}}, 1, 2)
			c.spoil(&run)
			r := Judge(run)
			if got := find(t, r.Checks, c.check); got.Status != c.want || r.State != c.state {
				t.Errorf("%s %+v; want %s, %s", r.State, got, c.state, c.want)
			}
			for _, s := range r.Steps {
				if c.state == Invalid && s.Verdict != Invalid {
					t.Errorf("step %d is %s in a void run", s.Concurrency, s.Verdict)
				}
			}
		})
	}
}

// loadgen killed in round 2, step 2: what was complete is reported, what is missing is never ok.
func TestKilled(t *testing.T) {
	run := ladderRun(map[int][]int64{1: {0, 0}, 2: {0, 0}}, 1, 2, 4)
	run.State = "running"
	for i := range run.Steps {
		if s := &run.Steps[i]; s.Round == 2 && s.Concurrency == 2 {
			s.MeasureTo, s.End, s.Outcomes = nil, nil, nil
			s.Counts["ttft"] = Count{Missing: "not scraped"} // of this step alone: no setting to change
		}
	}
	r := Judge(run)
	if r.State != NoData || verdicts(r) != "1:inconclusive 2:inconclusive 4:no_data" {
		t.Errorf("%s %s", r.State, verdicts(r))
	}
	if c := find(t, r.Checks, checkEdges); !strings.Contains(c.Detail, "killed") {
		t.Errorf("%+v", c)
	}
	if why := r.Step(PhaseRamp, 4).Reasons[0]; !strings.Contains(why, "killed") {
		t.Error(why)
	}
}
