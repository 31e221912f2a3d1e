package verdict

import (
	"slices"
	"strings"
	"testing"

	"firstbreach/internal/level"
)

// A trace is compared with the ladder by the load that it was on average and at its highest.
func TestTrace(t *testing.T) {
	none := func(int) int64 { return 0 }
	all := func(int) int64 { return 10 }
	step := func(mean float64, most int, bad func(int) int64) Step {
		s := phaseStep(PhaseTrace, 0, bad)
		s.Rate, s.InFlightSeconds, s.MostInFlight = 10, mean*60, most
		s.Trace = &Trace{Rate: 10, Busiest: 14, InputTokens: 2200, OutputTokens: 77.25}
		return s
	}
	for name, c := range map[string]struct {
		step     Step
		held     State
		low, top int
		expected State
		why      string
	}{
		"light, and it holds":          {step(1.4, 3, none), Held, 2, 3, OK, ""},
		"light, and it breaks":         {step(1.4, 3, all), NotHeld, 2, 3, OK, "whole: breach at concurrency 3, where the ladder says ok; a request of the trace has 2200 input and 77.25 output tokens on average; one of the ladder: synthetic, 256 input tokens, 64 output tokens"},
		"beyond the breach, and so":    {step(9.2, 40, all), Held, 10, 40, Breach, ""},
		"beyond the breach, yet it is": {step(9.2, 40, none), NotHeld, 10, 40, Breach, "whole: ok at concurrency 10, where the ladder says breach"},
		"light but for a burst":        {step(1.4, 12, all), Undecided, 2, 12, Inconclusive, "the ladder concludes nothing for a load of concurrency 2 on average and 12 at most"},
		"between":                      {step(5.5, 6, none), Undecided, 6, 6, Inconclusive, "the ladder concludes nothing for a load of concurrency 6 on average and 6 at most"},
	} {
		run := afterRun(c.step)
		run.Conditions = map[string]string{"prompts": "synthetic, 256 input tokens", "output_tokens": "64"}
		p := Judge(run).Phases[0]
		if !p.Round.Valid || p.Held != c.held || p.Low.Concurrency != c.low || p.High.Concurrency != c.top || p.Parts[0].Expected != c.expected || !strings.HasPrefix(strings.Join(p.Reasons, "; "), c.why) {
			t.Errorf("%s: %s, %s to %s, %q, valid %v", name, p.Held, p.Low, p.High, p.Reasons, p.Round.Valid)
		}
		if slices.ContainsFunc(p.Round.Checks, func(k Check) bool { return k.Name == checkRate || k.Name == checkConcurrency }) {
			t.Errorf("%s: its load is held to be constant", name)
		}
	}
}

// Where the ladder was one of rates, the rates of the trace count, which only the manifest has.
func TestTraceAfterALadderOfRates(t *testing.T) {
	run := ladderRun(nil)
	run.Rates = []float64{2, 8, 20}
	for round := 1; round <= 3; round++ {
		run.Steps = append(run.Steps, rateStep(round, 2, 0, 100), rateStep(round, 8, 0, 100), rateStep(round, 20, 50, 100))
	}
	s := phaseStep(PhaseTrace, 0, func(int) int64 { return 0 })
	s.Rate, s.MostInFlight, s.InFlightSeconds = 5, 3, 90
	run.Steps = append(run.Steps, s)
	if p := Judge(run).Phases[0]; p.Held != Undecided || !strings.Contains(p.Reasons[0], "only in the manifest") {
		t.Errorf("without a manifest: %s, %q", p.Held, p.Reasons)
	}
	run.Steps[len(run.Steps)-1].Trace = &Trace{Rate: 5, Busiest: 7.5}
	p := Judge(run).Phases[0]
	if p.Held != Held || p.Low != (level.Level{Rate: 5}) || p.High != (level.Level{Rate: 7.5}) {
		t.Errorf("%s, %s to %s, %q; %q", p.Held, p.Low, p.High, p.Reasons, p.Round.Void())
	}
}
