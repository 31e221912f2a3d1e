package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"firstbreach/internal/level"
)

// findFirstBreach finds the smallest step of the ladder that broke.
func (r *Result) findFirstBreach(run Run) {
	var below []int
	for _, i := range r.ladder() {
		if r.Steps[i].Verdict == Breach {
			r.FirstBreach = breachAt(&r.Steps[i], run.Objectives)
			break
		}
		below = append(below, i)
	}
	if b := r.FirstBreach; b != nil {
		for _, i := range below {
			s := r.Steps[i]
			switch {
			case s.Verdict == OK && s.Rate > 0:
				b.LastOKRate, b.Widened = &s.Rate, false
			case s.Verdict == OK:
				b.LastOK, b.Widened = &s.Concurrency, false
				if run.Search != nil { // it doesn't decide the levels that it only passes
					b.Undecided = nil
				}
			case s.Rate > 0:
				b.UndecidedRates, b.Widened = append(b.UndecidedRates, s.Rate), true
			default:
				b.Undecided, b.Widened = append(b.Undecided, s.Concurrency), true
			}
		}
	}
	r.noteBaseline()
}

// breachAt describes the breach of one step by the objective with the smallest corrected p. Failed
// requests count as bad for every objective: a latency that broke by them alone comes after the
// objective that is about failures.
func breachAt(s *StepResult, objectives []Objective) *FirstBreach {
	var first *ObjectiveResult
	least := math.Inf(1)
	for _, borrowed := range []bool{false, true} {
		for i := range s.Objectives {
			o := &s.Objectives[i]
			if o.Verdict == Breach && *o.PBreachAdj < least && s.borrowed(o, objectives) == borrowed {
				first, least = o, *o.PBreachAdj
			}
		}
		if first != nil {
			break
		}
	}
	b := &FirstBreach{Concurrency: s.Concurrency, Rate: s.Rate, Objective: first.Name, Bad: first.Bad(), Total: first.Total, Slow: first.Slow, Failed: first.Failed,
		CI: first.CI, RoundsBreached: first.RoundsOver, Rounds: len(first.Rounds), Began: s.Began}
	for i := range s.Objectives {
		if o := &s.Objectives[i]; o.Verdict == Breach && o != first {
			b.Also = append(b.Also, o.Name)
		}
	}
	for _, o := range objectives {
		if o.Name == first.Name {
			b.Owner, b.Action, b.Runbook = o.Owner, o.Action, o.Runbook
		}
	}
	return b
}

// borrowed reports whether a latency objective broke only by failed requests, at a step where an
// objective about failures broke as well.
func (s *StepResult) borrowed(o *ObjectiveResult, objectives []Objective) bool {
	if kindOf(objectives, o.Name) != kindLatency || float64(o.Slow) > o.Allowance*float64(o.Total) {
		return false
	}
	return slices.ContainsFunc(s.Objectives, func(other ObjectiveResult) bool {
		return other.Verdict == Breach && kindOf(objectives, other.Name) != kindLatency
	})
}

func kindOf(objectives []Objective, name string) string {
	for _, o := range objectives {
		if o.Name == name {
			return o.Kind
		}
	}
	return ""
}

// noteBaseline says what a breach at the baseline means.
func (r *Result) noteBaseline() {
	for _, s := range r.Steps {
		if s.Phase != PhaseBaseline || s.Verdict != Breach {
			continue
		}
		note := fmt.Sprintf("The baseline itself broke at %s: the target misses the objective without load.", s.Level().Words())
		if first := r.ladder(); len(first) > 0 && r.Steps[first[0]].Level() == s.Level() && r.Steps[first[0]].Verdict == Breach {
			note = fmt.Sprintf("The baseline broke as well: %s is already too much, or the objective is out of reach for this target.", s.Level().Words())
		}
		r.Notes = append(r.Notes, note)
	}
}

// setState gives the run its state. Without a breach a void or missing step of the ladder voids
// the claim that nothing broke; only a ladder that held from end to end is none.
func (r *Result) setState(run Run, void []string) {
	switch {
	case len(void) > 0:
		r.State, r.Reason = Invalid, strings.Join(void, "; ")
		return
	case r.FirstBreach != nil:
		r.State = Breach
		return
	}
	ladder := r.ladder()
	if len(ladder) == 0 {
		r.State, r.Reason = NoData, "no step of a ladder was measured: check the run id, and that Prometheus scraped loadgen"
		return
	}
	by := map[State][]level.Level{}
	for _, i := range ladder {
		s := r.Steps[i]
		state := s.Verdict
		if run.Search != nil && s.Level().Compare(r.highestHeld()) < 0 {
			state = OK // more load can't mend a service: what held above speaks for it
		}
		if _, cut := cutBelow(run, s.Level()); cut && state == NoData && len(s.Rounds) == 0 {
			continue // what the stop rule kept from being measured decides nothing
		}
		by[state] = append(by[state], s.Level())
	}
	switch {
	case r.Search != nil && r.Search.Drift != nil:
		r.State, r.Reason = Inconclusive, r.Search.Drift.Words()
	case len(by[Invalid]) > 0:
		r.State, r.Reason = Invalid, stepsAre(by[Invalid], "void")
	case len(by[NoData]) > 0:
		r.State, r.Reason = NoData, stepsAre(by[NoData], "without data")
	case len(by[Inconclusive]) > 0:
		r.State, r.Reason = Inconclusive, stepsAre(by[Inconclusive], "undecided")
	case len(by[OK]) < len(ladder):
		r.State, r.Reason = Inconclusive, "the stop rule ended the ladder, and no objective broke"
	case r.baselineBroke():
		r.State, r.Reason = Inconclusive, "the baseline broke, yet the whole ladder held: something else than load was at work"
	default:
		r.State = None
		return
	}
	switch run.State {
	case "running":
		r.Reason += "; loadgen was killed, or is still running"
	case "interrupted":
		r.Reason += "; the run was interrupted"
	}
}

func (r *Result) baselineBroke() bool {
	for _, s := range r.Steps {
		if s.Phase == PhaseBaseline && s.Verdict == Breach {
			return true
		}
	}
	return false
}

func stepsAre(levels []level.Level, what string) string {
	verb := "are"
	if len(levels) == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s %s %s", level.WordsOf(levels), verb, what)
}

// judgeCapacity judges the capacity objectives from the finished ladder.
func (r *Result) judgeCapacity(run Run) {
	for _, o := range run.Objectives {
		if o.Kind != "capacity" {
			continue
		}
		c := CapacityResult{Name: o.Name, MinConcurrency: o.MinConcurrency, Owner: o.Owner, Action: o.Action, Runbook: o.Runbook}
		c.Verdict, c.Reason = r.capacity(o.MinConcurrency)
		r.Capacity = append(r.Capacity, c)
	}
}

// capacity asks whether the ladder holds up to and including least. A step that held speaks for
// the lower ones as well: more load can't mend a service.
func (r *Result) capacity(least int) (State, string) {
	if slices.ContainsFunc(r.ladder(), func(i int) bool { return r.Steps[i].Rate > 0 }) {
		return Undecided, "the ladder is one of rates: how many requests were in flight is an outcome of it, not a setting"
	}
	if r.State == Invalid && r.FirstBreach == nil && r.highestOK() < least {
		return Undecided, r.Reason
	}
	if b := r.FirstBreach; b != nil && r.State == Breach && b.Concurrency <= least {
		return NotHeld, fmt.Sprintf("%s broke at concurrency %d", b.Objective, b.Concurrency)
	}
	if top := r.highestOK(); top >= least {
		return Held, fmt.Sprintf("held at concurrency %d", top)
	}
	if b := r.FirstBreach; b != nil && b.Concurrency > least {
		return Undecided, fmt.Sprintf("no step between %d and the breach at %d held", least, b.Concurrency)
	}
	return Undecided, fmt.Sprintf("no step at or above %d was decided", least)
}

// highestOK is the highest concurrency that held with none broken below it; 0 when there is none.
func (r *Result) highestOK() int { return r.highestHeld().Concurrency }

// highestHeld is the highest level that held with none broken below it; zero when there is none.
func (r *Result) highestHeld() (top level.Level) {
	for _, i := range r.ladder() {
		switch r.Steps[i].Verdict {
		case OK:
			top = r.Steps[i].Level()
		case Breach:
			return top
		}
	}
	return top
}
