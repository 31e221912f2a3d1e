package verdict

import (
	"strings"
	"testing"

	"firstbreach/internal/level"
)

// afterRun is a ladder that held at 4 and broke at 8, and one phase after it.
func afterRun(s Step) Run {
	run := ladderRun(map[int][]int64{2: {0, 0, 0}, 4: {0, 0, 0}, 8: {50, 50, 50}}, 2, 4, 8)
	run.Steps = append(run.Steps, s)
	return run
}

// phaseStep is a phase of 60 s that answers ten requests a second, scraped every second. bad says how
// many of those of a second missed the objective, answered how many there were.
func phaseStep(phase string, concurrency int, bad func(second int) int64) Step {
	s := goodStep(phase, 1, concurrency, 0, 600)
	from := *s.MeasureFrom
	s.MeasureTo, s.End, s.Scrapes, s.ScrapesExpected = ptr(from+60), ptr(from+61), 61, 61
	s.InFlightSeconds, s.OccupancySeconds = float64(concurrency)*60, float64(concurrency)*60
	var total, slow int64
	s.Progress = append(s.Progress, Progress{T: from - 0.5, Counts: map[string]Count{"ttft": {}}})
	for second := range 60 {
		answered, b := int64(10), bad(second)
		if b < 0 { // nobody was answered
			answered, b = 0, 0
		}
		total, slow = total+answered, slow+b
		s.Progress = append(s.Progress, Progress{T: from + float64(second) + 0.5, Counts: map[string]Count{"ttft": {Total: total, Slow: slow}}})
	}
	s.Counts = map[string]Count{"ttft": {Total: total, Slow: slow}}
	return s
}

// between says whether a second lies in [from, to).
func between(second, from, to int) bool { return second >= from && second < to }

func TestPhases(t *testing.T) {
	none := func(int) int64 { return 0 }
	all := func(int) int64 { return 10 }
	in := func(from, to int, n int64) func(int) int64 {
		return func(s int) int64 {
			if between(s, from, to) {
				return n
			}
			return 0
		}
	}
	square := &level.Curve{Shape: level.Square, Low: 2, High: 8, Period: 20}
	spike := &level.Curve{Shape: level.Spike, Low: 2, High: 8, At: 20, For: 10}
	fluctuating := func(c *level.Curve, bad func(int) int64) Step {
		s := phaseStep(PhaseFluctuation, 8, bad)
		s.Load = c
		s.InFlightSeconds = c.Mean(60) * 60
		return s
	}
	highOfSquare := func(slow int64, longer int) func(int) int64 {
		return func(s int) int64 {
			if s%20 >= 10 || s > 20 && s%20 < longer {
				return slow
			}
			return 0
		}
	}
	drill := func(bad func(int) int64, events ...Event) Step {
		s := phaseStep(PhaseDrill, 2, bad)
		for i := range events {
			events[i].From, events[i].To = events[i].From+*s.MeasureFrom, events[i].To+*s.MeasureFrom
		}
		s.Events = events
		return s
	}
	did, undid := Event{Event: "drill", From: 20, To: 20.1}, Event{Event: "restore", From: 30, To: 30.1}
	failed := did
	failed.Error = "exit status 3"
	for name, tc := range map[string]struct {
		step     Step
		held     State
		why      string
		left     bool
		from, to float64 // of the return
		censored bool
		noBack   bool
	}{
		"a soak that holds":  {step: phaseStep(PhaseSoak, 4, none), held: Held},
		"a soak that breaks": {step: phaseStep(PhaseSoak, 4, all), held: NotHeld, why: "whole: breach at concurrency 4, where the ladder says ok", left: true, censored: true, from: 60},
		"a soak that breaks for a while": {
			step: phaseStep(PhaseSoak, 4, in(20, 30, 10)), held: Undecided, why: "whole: ttft: the rounds differ too much to tell: from 0 % to 100 % bad", left: true, from: 10, to: 11,
		},
		"a soak above the breach":      {step: phaseStep(PhaseSoak, 8, all), held: Held, left: true, censored: true, from: 60},
		"a soak where nothing is said": {step: phaseStep(PhaseSoak, 6, none), held: Undecided, why: "the ladder concludes nothing for concurrency 6"},
		"a square that breaks while it is high": {
			step: fluctuating(square, highOfSquare(9, 0)), held: Held, left: true, from: 0, to: 0.5,
		},
		"a square that takes three seconds": {
			step: fluctuating(square, highOfSquare(9, 3)), held: Held, left: true, from: 2.5, to: 3.5,
		},
		"a square that the service bears": {
			step: fluctuating(square, none), held: NotHeld, why: "high: ok at concurrency 8, where the ladder says breach",
		},
		"a square whose queue never empties": {
			step: fluctuating(square, in(10, 60, 9)), held: NotHeld, why: "not back within 9.5 s after the load fell", left: true, censored: true, from: 9.5,
		},
		"a spike": {step: fluctuating(spike, in(20, 34, 9)), held: Held, left: true, from: 3.5, to: 4.5},
		"a drill that is over when it is undone": {
			step: drill(in(20, 33, 10), did, undid), held: Held, left: true, from: 2.4, to: 3.4,
		},
		"a drill in which nobody was answered": {
			step: drill(in(20, 36, -1), did), held: Held, left: true, from: 15.5, to: 16.5,
		},
		"a drill that nobody felt":  {step: drill(none, did), held: Held},
		"a drill it never got over": {step: drill(in(20, 60, 10), did, undid), held: NotHeld, why: "not back within 29.4 s after it was undone", left: true, censored: true, from: 29.4},
		"broken before the drill":   {step: drill(in(0, 20, 10), did), held: NotHeld, why: "before: breach at concurrency 2"},
		"a drill that failed":       {step: drill(none, failed), held: Undecided, why: "the drill itself failed: exit status 3", noBack: true},
		"a drill that was not done": {step: drill(none), held: Undecided, why: "the drill was not done", noBack: true},
		"nothing at each scrape":    {step: goodStep(PhaseSoak, 1, 4, 0, 100), held: Undecided, why: "its counts at each scrape are not in Prometheus", noBack: true},
	} {
		r := Judge(afterRun(tc.step))
		if r.State != Breach || r.FirstBreach.Concurrency != 8 || len(r.Phases) != 1 || len(r.Steps) != 3 {
			t.Fatalf("%s: %s, %d phases, %d steps", name, r.State, len(r.Phases), len(r.Steps))
		}
		p := r.Phases[0]
		if p.Held != tc.held || !strings.Contains(strings.Join(p.Reasons, "; "), tc.why) {
			t.Errorf("%s: %s %q, want %s %q", name, p.Held, p.Reasons, tc.held, tc.why)
		}
		switch b := p.Back; {
		case b == nil:
			if !tc.noBack {
				t.Errorf("%s: nothing is said of the return", name)
			}
		case tc.noBack, b.Left != tc.left, b.Censored != tc.censored, !near(b.From, tc.from), !near(b.To, tc.to):
			t.Errorf("%s: back %+v, want left %v in (%v, %v], censored %v", name, *b, tc.left, tc.from, tc.to, tc.censored)
		}
	}
}

func near(a, b float64) bool { return a-b < 0.051 && b-a < 0.051 }

// A phase whose measurement is void says nothing, whatever it counted.
func TestAVoidPhase(t *testing.T) {
	s := phaseStep(PhaseSoak, 4, func(int) int64 { return 10 })
	s.Unscraped = true
	p := Judge(afterRun(s)).Phases[0]
	if p.Held != Undecided || p.Round.Valid {
		t.Errorf("%s, valid %v", p.Held, p.Round.Valid)
	}
	late := phaseStep(PhaseSoak, 8, func(int) int64 { return 5 })
	late.Counts = map[string]Count{"ttft": {Total: 600, Slow: 300, Late: 20}}
	if p := Judge(afterRun(late)).Phases[0]; p.Held != Held {
		t.Errorf("20 of 300 slow ones read late: %s %q", p.Held, p.Reasons)
	}
	late.Counts = map[string]Count{"ttft": {Total: 600, Slow: 300, Late: 280}}
	if p := Judge(afterRun(late)).Phases[0]; p.Held != Undecided || !strings.Contains(p.Reasons[0], "the client read late") {
		t.Errorf("280 of 300 slow ones read late: %s %q", p.Held, p.Reasons)
	}
	slow := phaseStep(PhaseSoak, 4, func(int) int64 { return 10 })
	slow.InFlightSeconds = 60
	if p := Judge(afterRun(slow)).Phases[0]; p.Held != Undecided {
		t.Errorf("a client that didn't hold the load: %s", p.Held)
	}
}

// One request a second, of which some missed: what is left of the phase holds too few to tell, and nothing
// is claimed of the service. The same with ten times as many says that it was back.
func TestTooFewToTellAReturn(t *testing.T) {
	step := func(thin int64) Step {
		s := phaseStep(PhaseDrill, 2, func(second int) int64 {
			if between(second, 40, 44) {
				return 10
			}
			return 0
		})
		for _, p := range s.Progress {
			c := p.Counts["ttft"]
			p.Counts["ttft"] = Count{Total: c.Total / thin, Slow: c.Slow / thin}
		}
		s.Events = []Event{{Event: "drill", From: *s.MeasureFrom + 40, To: *s.MeasureFrom + 40.1}}
		return s
	}
	p := Judge(afterRun(step(10))).Phases[0]
	if p.Held != Undecided || p.Back != nil || !strings.Contains(p.Reasons[0], "too few requests after the drill") {
		t.Errorf("one a second: %s %q, back %+v", p.Held, p.Reasons, p.Back)
	}
	if p := Judge(afterRun(step(1))).Phases[0]; p.Held != Held || p.Back == nil || !near(p.Back.From, 3.5) {
		t.Errorf("ten a second: %s %q, back %+v", p.Held, p.Reasons, p.Back)
	}
}
