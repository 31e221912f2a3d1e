package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"firstbreach/internal/level"
)

// Class is one kind of request of a mix.
type Class struct {
	Name       string
	Objectives []string // the per-request objectives that it is held to; nil: all
}

// ClassResult is the judgement of one class: that of a run of which only its requests are looked at.
type ClassResult struct {
	Name        string
	Objectives  []string // names of the per-request objectives that it was held to
	State       State
	Reason      string
	FirstBreach *FirstBreach
	Top         level.Level // the highest level that held with none broken below it; zero when there is none
}

// classesOf lists the classes of a run: as they are declared, or as they are found in its steps.
func classesOf(run Run) []Class {
	classes := slices.Clone(run.Classes)
	for _, s := range run.Steps {
		if s.Class != "" && !slices.ContainsFunc(classes, func(c Class) bool { return c.Name == s.Class }) {
			classes = append(classes, Class{Name: s.Class})
		}
	}
	return classes
}

// of is the run of one class alone.
func (c Class) of(run Run) Run {
	one := run
	one.Classes, one.Steps, one.Objectives = nil, nil, nil
	for _, s := range run.Steps {
		if s.Class == c.Name {
			mix := mixOf(run.Steps, s)
			s.Mix = &mix
			one.Steps = append(one.Steps, s)
		}
	}
	for _, o := range run.Objectives {
		if !o.perRequest() || c.Objectives == nil || slices.Contains(c.Objectives, o.Name) {
			one.Objectives = append(one.Objectives, o)
		}
	}
	return one
}

// mixOf adds up the classes of a step in what the load as a whole is checked by: the load generator
// holds the mix, not each class.
func mixOf(steps []Step, of Step) Step {
	sum := of
	sum.Outcomes, sum.InFlightSeconds, sum.MostInFlight, sum.OccupancySeconds, sum.SumE2E = map[string]int64{}, 0, 0, 0, 0
	sum.BackoffSeconds = 0
	for _, s := range steps {
		if s.Phase != of.Phase || s.Round != of.Round || s.Step != of.Step || s.Level() != of.Level() {
			continue
		}
		for outcome, n := range s.Outcomes {
			sum.Outcomes[outcome] += n
		}
		sum.InFlightSeconds += s.InFlightSeconds
		sum.MostInFlight += s.MostInFlight // at least: the classes may peak at other times
		sum.OccupancySeconds += s.OccupancySeconds
		sum.BackoffSeconds += s.BackoffSeconds
		sum.SumE2E += s.SumE2E
		if p := s.E2E.P99; p != nil && (sum.E2E.P99 == nil || *p > *sum.E2E.P99) {
			sum.E2E.P99 = p
		}
	}
	return sum
}

// judgeClasses judges each class by itself. The run's first breach is the lowest of theirs.
func judgeClasses(run Run, classes []Class) Result {
	var r Result
	for i, c := range classes {
		own := c.of(run)
		one := judgeOne(own)
		x := ClassResult{Name: c.Name, Objectives: []string{}, State: one.State, Reason: one.Reason, FirstBreach: one.FirstBreach, Top: one.highestHeld()}
		for _, o := range own.Objectives {
			if o.perRequest() {
				x.Objectives = append(x.Objectives, o.Name)
			}
		}
		for j := range one.Steps {
			one.Steps[j].Class = c.Name
		}
		for j := range one.Phases {
			one.Phases[j].Class = c.Name
		}
		for _, note := range one.Notes {
			r.Notes = append(r.Notes, fmt.Sprintf("Class %s: %s", c.Name, note))
		}
		if b := one.FirstBreach; b != nil {
			b.Class = c.Name
			if r.FirstBreach == nil || b.Level().Compare(r.FirstBreach.Level()) < 0 {
				r.FirstBreach = b
				r.explainBy(one)
			}
		}
		if i == 0 && one.FirstBreach == nil {
			r.explainBy(one)
		}
		r.Steps, r.Phases, r.Classes = append(r.Steps, one.Steps...), append(r.Phases, one.Phases...), append(r.Classes, x)
		r.joinCapacity(one.Capacity, i == 0)
	}
	slices.SortStableFunc(r.Steps, func(a, b StepResult) int {
		return cmp.Or(cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)), cmp.Compare(a.Phase, b.Phase), a.Level().Compare(b.Level()))
	})
	missing := missingEdges(run)
	r.Checks = append(runChecks(run, missing), stepChecks(r.Steps)...)
	r.joinStates()
	return r
}

// explainBy takes over what explains a run from the class that broke first, else from the first class.
func (r *Result) explainBy(one Result) {
	r.Scaling, r.TradeOffs, r.Saturation = one.Scaling, one.TradeOffs, one.Saturation
	r.Recovery, r.Attribution, r.Limits, r.Verification = one.Recovery, one.Attribution, one.Limits, one.Verification
}

// joinStates gives the run the state of the class that says most: a breach of one is a breach, and
// nothing broke only where nothing broke in any.
func (r *Result) joinStates() {
	by := map[State][]string{}
	for _, c := range r.Classes {
		why := "class " + c.Name
		if c.Reason != "" {
			why += ": " + c.Reason
		}
		by[c.State] = append(by[c.State], why)
	}
	for _, s := range []State{Breach, Invalid, NoData, Inconclusive, None} {
		if len(by[s]) == 0 {
			continue
		}
		if r.State = s; s != Breach && s != None {
			r.Reason = strings.Join(by[s], "; ")
		}
		return
	}
	r.State = NoData
}

// joinCapacity keeps of each capacity objective the worst of its verdicts.
func (r *Result) joinCapacity(of []CapacityResult, first bool) {
	if first {
		r.Capacity = of
		return
	}
	rank := func(s State) int { return slices.Index([]State{Held, Undecided, NotHeld}, s) }
	for i := range r.Capacity {
		if rank(of[i].Verdict) > rank(r.Capacity[i].Verdict) {
			r.Capacity[i] = of[i]
		}
	}
}
