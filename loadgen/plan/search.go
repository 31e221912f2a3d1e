package plan

import (
	"fmt"

	"firstbreach/internal/strictyaml"
)

// PhaseConfirm runs the last ok and the first breach of a search once more. No plan file has it: a search
// chooses its levels itself.
const PhaseConfirm Phase = "confirm"

// CheckSearch refuses a plan that can't be searched up to a concurrency. A search takes from a plan its target,
// what is fixed, baseline, recovery and the bounds of a step; its ladder is not run.
func (p *Plan) CheckSearch(most int) error {
	var bad []strictyaml.Problem
	reject := func(key, message, fix string) {
		bad = append(bad, strictyaml.Problem{File: p.Path, Key: key, Message: message, Fix: fix})
	}
	const without = ", or run the plan without --search"
	if len(p.Ramp.Rate) > 0 {
		reject("ramp.rate", "a search looks for a concurrency, not for a rate", "write a ladder of concurrencies"+without)
	}
	if len(p.Classes) > 0 {
		reject("classes", "a search looks for one first breach, and each class has its own", "remove classes"+without)
	}
	if p.Step.Duration > 0 {
		reject("step.duration", "a search chooses how many requests a step measures", "write step: {min_duration, max_duration}"+without)
	}
	if len(p.After()) > 0 {
		reject(afterKeys, "a search does not run what comes after the rounds", "remove it"+without)
	}
	if limit := p.Environment.maxConcurrency(); most > limit {
		reject("environment", fmt.Sprintf("--search.max %d: %s allows at most %d requests at once", most, p.Environment, limit), fmt.Sprintf("pass --search.max %d or less", limit))
	}
	if len(bad) == 0 {
		return nil
	}
	return &strictyaml.Error{Problems: bad}
}

// ForSearch is the plan with so many measured requests in a step, and with no fewer rounds than a verdict needs.
func (p *Plan) ForSearch(requests int) *Plan {
	out := *p
	out.Step.Requests = requests
	out.Rounds = p.searchRounds()
	return &out
}

func (p *Plan) searchRounds() int { return max(p.Rounds, MinRounds) }

// SearchStage is one step of a search: a level, measured once. Levels come as the search chooses them, so their
// concurrency numbers them.
func SearchStage(concurrency, round int, confirms bool) Stage {
	s := Stage{Phase: PhaseRamp, Round: round, Step: concurrency, Concurrency: concurrency}
	if confirms {
		s.Phase = PhaseConfirm
	}
	return s
}

// Around are the steps before and after a search: the baseline, and the recovery, in each round.
func (p *Plan) Around() (before, after []Stage) {
	for round := 1; round <= p.searchRounds(); round++ {
		before = append(before, p.baselineStage(round))
		after = append(after, p.recoveryStage(round))
	}
	return before, after
}
