package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"firstbreach/internal/level"
)

// The phases of a run, in the order in which their steps are listed.
const (
	PhaseBaseline = "baseline"
	PhaseRamp     = "ramp"
	PhaseRecovery = "recovery"
	PhaseConfirm  = "confirm" // the last ok and the first breach of a search, once more
	PhaseVerify   = "verify"  // behind the admission limits, after the run
)

// Judge judges a run: it gates every step of every round, pools the valid rounds of each step,
// tests each objective, and looks for the smallest step of the ladder that broke one. It is pure:
// the order of run.Steps makes no difference, and the same run gives the same result.
func Judge(run Run) Result {
	if classes := classesOf(run); len(classes) > 0 {
		return judgeClasses(run, classes)
	}
	return judgeOne(run)
}

// judgeOne judges a run whose requests are all alike.
func judgeOne(run Run) Result {
	var r Result
	missing := missingEdges(run)
	void := runChecks(run, missing)
	r.Checks = void
	steps := slices.DeleteFunc(slices.Clone(run.Steps), func(s Step) bool { return IsAfter(s.Phase) || s.Phase == PhaseVerify })
	slices.SortStableFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)), cmp.Compare(a.Phase, b.Phase),
			a.Level().Compare(b.Level()), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Round, b.Round), cmp.Compare(a.Step, b.Step))
	})
	for len(steps) > 0 {
		n := 1
		for n < len(steps) && steps[n].Phase == steps[0].Phase && steps[n].Level() == steps[0].Level() && steps[n].Class == steps[0].Class {
			n++
		}
		r.Steps = append(r.Steps, judgeStep(run, steps[:n], failures(void), missing))
		steps = steps[n:]
	}
	r.addUnreached(run)
	r.Checks = append(r.Checks, stepChecks(r.Steps)...)
	r.fitIsotonic(run.Objectives)
	r.takeBackNonMonotone(run.Objectives)
	r.findFirstBreach(run)
	r.judgeSearch(run)
	r.setState(run, failures(void))
	r.judgeCapacity(run)
	r.judgePhases(run, failures(void), missing)
	r.scale(run)
	r.trade()
	r.saturate()
	r.judgeRecovery(run)
	r.attribute(run)
	r.limit(run)
	r.verify(run, missing)
	return r
}

func phaseRank(phase string) int {
	return slices.Index([]string{PhaseBaseline, PhaseRamp, PhaseConfirm, PhaseRecovery, phase}, phase)
}

// failures returns the details of the checks that void the whole run.
func failures(checks []Check) []string {
	var why []string
	for _, c := range checks {
		if c.Status == Failed && (c.Name == checkSkew || c.Name == checkConditions) {
			why = append(why, c.Detail)
		}
	}
	return why
}

// judgeStep judges one level of one phase over its rounds. void are reasons for which no
// round of the run counts.
func judgeStep(run Run, rounds []Step, void []string, missing map[string]string) StepResult {
	if rounds[0].Phase == PhaseConfirm {
		run.Search = nil // it is looked at once, and by itself
	}
	r := StepResult{Phase: rounds[0].Phase, Concurrency: rounds[0].Concurrency, Rate: rounds[0].Rate, Class: rounds[0].Class}
	var valid []Step
	for _, s := range rounds {
		one := judgeRound(run, s)
		if one.Valid = one.Valid && len(void) == 0; one.Valid {
			valid = append(valid, s)
		}
		r.Rounds = append(r.Rounds, one)
	}
	valid = r.voidLate(run, missing, valid)
	r.ValidRounds = len(valid)
	r.Began = began(valid, rounds)
	r.Measured = pool(valid)
	r.Readings = poolReadings(valid)
	r.Objectives = judgeObjectives(run, missing, valid)
	takeBackUnloaded(r.Objectives, valid)
	for _, o := range run.Objectives {
		if o.Kind == "gauge" || o.Kind == "expression" {
			r.Gauges = append(r.Gauges, judgeGauge(o, valid))
		}
	}
	r.conclude(void)
	return r
}

// judgeObjectives judges every per-request objective over these rounds of a step.
func judgeObjectives(run Run, missing map[string]string, rounds []Step) []ObjectiveResult {
	var results []ObjectiveResult
	var cs []counts
	for _, o := range run.Objectives {
		if o.perRequest() {
			result, c := judgeObjective(o, missing[o.Name], rounds, run.rule())
			results, cs = append(results, result), append(cs, c)
		}
	}
	settle(results, cs)
	return results
}

// judgeRound gates one step of one round.
func judgeRound(run Run, s Step) RoundResult {
	r := RoundResult{Round: s.Round, Step: s.Step, Checks: gate(run, s), Stopped: s.Stopped, Measured: measuredOf(s),
		Latency: RoundLatency{s.TTFT, s.E2E, s.TPOT}}
	r.Valid = len(r.Void()) == 0
	if w := s.window(); w > 0 {
		l, f, b := s.OccupancySeconds/w, s.InFlightSeconds/w, s.BackoffSeconds/w
		r.Occupancy, r.InFlight = &l, &f
		if b > 0 {
			r.BackingOff = &b
		}
	}
	return r
}

// began is the earliest start among the valid rounds; among all of them when none is valid.
func began(valid, all []Step) *float64 {
	var first *float64
	if len(valid) > 0 {
		all = valid
	}
	for _, s := range all {
		if s.Start != nil && (first == nil || *s.Start < *first) {
			first = s.Start
		}
	}
	return first
}

// conclude sets the step's verdict from its objectives: breach if one broke, ok only if all held.
func (s *StepResult) conclude(void []string) {
	s.Reasons = nil
	if s.ValidRounds == 0 {
		s.Verdict = Invalid
		s.Reasons = slices.Clone(void)
		for _, r := range s.Rounds {
			for _, why := range r.Void() {
				s.Reasons = append(s.Reasons, fmt.Sprintf("round %d: %s", r.Round, why))
			}
		}
		for i := range s.Objectives {
			s.Objectives[i].Verdict, s.Objectives[i].Reason = Invalid, "no valid round"
		}
		return
	}
	seen := map[State]bool{}
	for _, o := range s.Objectives {
		seen[o.Verdict] = true
		if o.Reason != "" {
			s.Reasons = append(s.Reasons, o.Name+": "+o.Reason)
		}
	}
	switch {
	case seen[Breach]:
		s.Verdict = Breach
	case seen[NoData] || len(s.Objectives) == 0:
		s.Verdict = NoData
	case seen[Inconclusive]:
		s.Verdict = Inconclusive
	default:
		s.Verdict = OK
	}
	if len(s.Objectives) == 0 {
		s.Reasons = []string{"the SLO file has no per-request user objective: add a latency, success or timeout objective"}
	}
}

// ladder returns the indices of the ramp's steps, ascending by their load.
func (r *Result) ladder() []int {
	var is []int
	for i, s := range r.Steps {
		if s.Phase == PhaseRamp {
			is = append(is, i)
		}
	}
	return is
}

// addUnreached adds the planned steps of the ladder that no round came to.
func (r *Result) addUnreached(run Run) {
	for _, l := range level.Ladder(run.Ladder, run.Rates) {
		if r.At(PhaseRamp, l) != nil {
			continue
		}
		s := StepResult{Phase: PhaseRamp, Concurrency: l.Concurrency, Rate: l.Rate, Verdict: NoData, Reasons: []string{unreached(run, l)}, Readings: map[string]Reading{}, Measured: pool(nil)}
		for _, o := range run.Objectives {
			if o.perRequest() {
				s.Objectives = append(s.Objectives, ObjectiveResult{Name: o.Name, Verdict: NoData, Reason: "the step was not reached", Dispersion: 1})
			}
		}
		at := slices.IndexFunc(r.Steps, func(x StepResult) bool {
			return phaseRank(x.Phase) > phaseRank(PhaseRamp) || x.Phase == PhaseRamp && x.Level().Compare(l) > 0
		})
		if at < 0 {
			at = len(r.Steps)
		}
		r.Steps = slices.Insert(r.Steps, at, s)
	}
}

// unreached says why no round came to a step.
func unreached(run Run, at level.Level) string {
	if l, ok := cutBelow(run, at); ok {
		return "not reached: the stop rule ended the rounds at " + l.Words()
	}
	switch run.State {
	case "running":
		return "not reached: loadgen was killed, or is still running"
	case "interrupted":
		return "not reached: the run was interrupted"
	}
	return "not measured: no series of this step is in Prometheus"
}

// cutBelow returns the lowest level under the given one at which a stop rule ended a round.
func cutBelow(run Run, at level.Level) (lowest level.Level, found bool) {
	for _, s := range run.Steps {
		if s.Phase == PhaseRamp && s.endsRound() && s.Level().Compare(at) < 0 && (!found || s.Level().Compare(lowest) < 0) {
			lowest, found = s.Level(), true
		}
	}
	return lowest, found
}

// fitIsotonic fits each objective's share over the ladder.
func (r *Result) fitIsotonic(objectives []Objective) {
	for _, o := range objectives {
		var at []*ObjectiveResult
		var ys, ws []float64
		for _, i := range r.ladder() {
			if x := r.Steps[i].Objective(o.Name); x != nil && x.Share != nil {
				at, ys, ws = append(at, x), append(ys, *x.Share), append(ws, x.EffectiveN)
			}
		}
		for i, y := range isotonic(ys, ws) {
			at[i].Isotonic = &y
		}
	}
}

// takeBackNonMonotone takes back a breach below a step that held: more load can't mend a service,
// so something else happened, and which of the two is right is not known.
func (r *Result) takeBackNonMonotone(objectives []Objective) {
	var held level.Level
	for _, i := range r.ladder() {
		if r.Steps[i].Verdict == OK {
			held = r.Steps[i].Level()
		}
	}
	for _, i := range r.ladder() {
		s := &r.Steps[i]
		if s.Verdict != Breach || s.Level().Compare(held) >= 0 {
			continue
		}
		why := fmt.Sprintf("broke here, yet held at %s: look for an event (restart, cache, throttling, neighbour) and run both steps again", held.Words())
		for j := range s.Objectives {
			if o := &s.Objectives[j]; o.Verdict == Breach {
				o.Verdict, o.NonMonotone, o.Needed, o.Reason = Inconclusive, true, nil, why
			}
		}
		s.conclude(nil)
		r.Notes = append(r.Notes, fmt.Sprintf("%s broke and %s held: the breach at %s is not claimed.", capital(s.Level().Words()), held, s.Level()))
	}
}
