package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"firstbreach/internal/figures"
	"firstbreach/internal/level"
)

// The phases that come once, after the rounds. They have a verdict of their own: whether what the
// ladder showed held in them.
const (
	PhaseSoak        = "soak"
	PhaseFluctuation = "fluctuation"
	PhaseTrace       = "trace"
	PhaseDrill       = "drill"
)

// AfterPhases lists the phases that come once, after the rounds.
func AfterPhases() []string { return []string{PhaseSoak, PhaseFluctuation, PhaseTrace, PhaseDrill} }

// IsAfter reports whether a phase comes once, after the rounds.
func IsAfter(phase string) bool { return slices.Contains(AfterPhases(), phase) }

// PhaseResult is the verdict on a phase that came once, after the rounds.
type PhaseResult struct {
	Phase     string
	Step      int
	Class     string      // of the requests; "" where the plan has none
	Name      string      // of a drill, or a trace
	Shape     string      // of a fluctuation
	Low, High level.Level // the same where the load was held; of a trace the mean and the highest
	Held      State       // held, not_held, undecided: did the ladder's conclusion hold in it?
	Reasons   []string
	Parts     []PartResult
	Back      *Back // how long it took until it was back; nil where it can't be said
	Round     RoundResult
}

// PartResult is one part of a phase: the times in which its load was low, those in which it was high,
// what was before a drill and what after.
type PartResult struct {
	Part       string
	Level      level.Level
	Expected   State // by the ladder: ok, breach, or inconclusive where it concludes nothing
	Verdict    State
	Reasons    []string
	Objectives []ObjectiveResult
}

// matches says whether the part was as expected.
func (p PartResult) matches() State {
	decided := func(s State) bool { return s == OK || s == Breach }
	switch {
	case !decided(p.Expected) || !decided(p.Verdict):
		return Undecided
	case p.Expected == p.Verdict:
		return Held
	}
	return NotHeld
}

// judgePhases judges the phases after the rounds against what the ladder showed.
func (r *Result) judgePhases(run Run, void []string, missing map[string]string) {
	var steps []Step
	for _, s := range run.Steps {
		if IsAfter(s.Phase) {
			steps = append(steps, s)
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(slices.Index(AfterPhases(), a.Phase), slices.Index(AfterPhases(), b.Phase)), cmp.Compare(a.Step, b.Step))
	})
	for _, s := range steps {
		j := phaseJudge{result: r, run: run, missing: missing, step: s}
		j.out = PhaseResult{Phase: s.Phase, Step: s.Step, Name: s.Name, Low: s.Level(), High: s.Level(), Round: judgeRound(run, s)}
		if s.Load != nil {
			j.out.Shape = s.Load.Shape
			j.out.Low, j.out.High = s.Load.Levels()
		}
		j.judge(void)
		r.Phases = append(r.Phases, j.out)
	}
}

// phaseJudge is the judging of one phase.
type phaseJudge struct {
	result  *Result
	run     Run
	missing map[string]string
	step    Step
	out     PhaseResult
}

func (j *phaseJudge) judge(void []string) {
	if why := slices.Concat(void, j.out.Round.Void()); len(why) > 0 {
		j.out.Round.Valid = false
		j.undecided(why...)
		return
	}
	if len(j.step.Progress) < 2 {
		j.undecided("its counts at each scrape are not in Prometheus: scrape more often, or make it longer")
		return
	}
	switch j.step.Phase {
	case PhaseSoak:
		j.soak()
	case PhaseFluctuation:
		j.fluctuation()
	case PhaseTrace:
		j.trace()
	default:
		j.drill()
	}
}

func (j *phaseJudge) undecided(why ...string) {
	j.out.Held, j.out.Reasons = Undecided, append(j.out.Reasons, why...)
}

// The least and the greatest number of parts a time is cut into, which stand for the rounds of a
// step, and the requests each should have.
const (
	leastParts      = minRounds
	mostParts       = 10
	requestsPerPart = 100
)

func (j *phaseJudge) soak() {
	p := j.whole(j.step.Level())
	j.untilBack()
	j.conclude(p)
}

// whole judges all of the phase.
func (j *phaseJudge) whole(at level.Level) PartResult {
	parts := int(j.out.Round.Measured.Requests / requestsPerPart)
	return j.part("whole", at, cut(span{*j.step.MeasureFrom, *j.step.MeasureTo}, min(max(parts, leastParts), mostParts)))
}

// untilBack finds how long it took from when the service first broke until it was back.
func (j *phaseJudge) untilBack() {
	from, to := *j.step.MeasureFrom, *j.step.MeasureTo
	if b := j.step.back(j.run.Objectives, from, from, to); b != nil && !b.Left {
		j.out.Back = b
	}
	if broke, ok := j.step.leaves(j.run.Objectives, from, to); ok {
		if j.out.Back = j.step.back(j.run.Objectives, broke, broke, to); j.out.Back != nil {
			j.out.Back.After = "it first broke"
		}
	}
}

// trace judges a recorded load, which is another one at every moment. The ladder says that it holds where
// it does so of the highest load in it, and that it breaks where it does so of the mean. A ladder of
// rates is compared with the rates of the trace, one of concurrencies with what was in flight.
func (j *phaseJudge) trace() {
	mean, most, ok := j.traced()
	if !ok {
		j.undecided("what of the trace was replayed is only in the manifest: give the run directory with --run")
		return
	}
	j.out.Low, j.out.High = mean, most
	j.untilBack()
	switch {
	case j.result.expected(mean) == Breach:
		j.conclude(j.whole(mean))
	case j.result.expected(most) == OK:
		j.conclude(j.whole(most))
	default:
		p := j.whole(most)
		p.Expected = Inconclusive
		j.out.Parts = []PartResult{p}
		j.undecided(fmt.Sprintf("the ladder concludes nothing for a load of %s on average and %s at most", mean.Words(), most))
	}
	if t := j.step.Trace; j.out.Held == NotHeld && t != nil {
		j.out.Reasons = append(j.out.Reasons, fmt.Sprintf("a request of the trace has %s input and %s output tokens on average; one of the ladder: %s, %s output tokens",
			figures.Write(t.InputTokens, 4), figures.Write(t.OutputTokens, 4), j.run.Conditions["prompts"], j.run.Conditions["output_tokens"]))
	}
}

// traced is the mean and the highest load of a trace, of the ladder's kind.
func (j *phaseJudge) traced() (mean, most level.Level, ok bool) {
	if t := j.step.Trace; len(j.run.Rates) > 0 {
		if t == nil {
			return mean, most, false
		}
		return level.Level{Rate: t.Rate}, level.Level{Rate: t.Busiest}, true
	}
	s := j.step
	if s.Mix != nil {
		s = *s.Mix
	}
	n := int(math.Ceil(s.InFlightSeconds / s.window()))
	return level.Level{Concurrency: n}, level.Level{Concurrency: max(n, s.MostInFlight)}, true
}

// fluctuation judges the low and the high times of a load that changes apart. What is low is counted
// from when it was back after what was high before it.
func (j *phaseJudge) fluctuation() {
	s := j.step
	if s.Load == nil {
		j.undecided("how its load went is only in the manifest: give the run directory with --run")
		return
	}
	from, to := *s.MeasureFrom, *s.MeasureTo
	var low, high []span
	var fell bool
	var rose float64
	for _, x := range s.Load.Stretches(to - from) {
		at := span{from + x.From, from + x.To}
		if x.High {
			high, fell, rose = append(high, at), true, at.from
			continue
		}
		if fell {
			b := s.back(j.run.Objectives, rose, at.from, at.to)
			j.later(b)
			if b != nil && b.Censored {
				continue
			}
			if b != nil {
				at.from += b.To
			}
		}
		low = append(low, at)
	}
	if j.out.Back != nil {
		j.out.Back.After = "the load fell"
	}
	j.conclude(j.part("low", j.out.Low, atLeastParts(low)), j.part("high", j.out.High, atLeastParts(high)))
	if b := j.out.Back; b != nil && b.Censored && j.result.expected(j.out.Low) == OK {
		j.notBack(*b)
	}
}

// later keeps the longest of several returns.
func (j *phaseJudge) later(b *Back) {
	old := j.out.Back
	switch {
	case b == nil || old != nil && old.Censored:
	case old == nil || b.Censored || b.Left && (!old.Left || b.To > old.To):
		j.out.Back = b
	}
}

func (j *phaseJudge) notBack(b Back) {
	j.out.Held = NotHeld
	j.out.Reasons = append(j.out.Reasons, fmt.Sprintf("not back within %s s after %s", figures.Write(b.From, 3), b.After))
}

// drill judges what was before and what was after a drill.
func (j *phaseJudge) drill() {
	s := j.step
	var did, undid *Event
	for i := range s.Events {
		switch e := &s.Events[i]; e.Event {
		case "drill":
			did = e
		case "restore":
			undid = e
		}
	}
	switch {
	case did == nil && !j.run.Manifest:
		j.undecided("when the drill was is only in the manifest: give the run directory with --run")
		return
	case did == nil:
		j.undecided("the drill was not done: the phase ended before it")
		return
	case did.Error != "":
		j.undecided("the drill itself failed: " + did.Error)
		return
	}
	end := *s.MeasureTo
	since, after := did.From, "the drill began"
	if undid != nil && undid.To < end {
		since, after = undid.To, "it was undone"
		if undid.Error != "" {
			j.undecided("undoing the drill failed: " + undid.Error)
			return
		}
	}
	b := s.back(j.run.Objectives, did.From, since, end)
	if b == nil {
		j.undecided("too few requests after the drill to tell whether it was back: make the phase longer")
		return
	}
	b.After, j.out.Back = after, b
	rest := since
	if b.Left {
		rest += b.To
	}
	before := j.part("before", s.Level(), cut(span{*s.MeasureFrom, did.From}, leastParts))
	if b.Censored {
		j.conclude(before)
		j.notBack(*b)
		return
	}
	j.conclude(before, j.part("after", s.Level(), cut(span{rest, end}, leastParts)))
}

// conclude joins the parts: the ladder's conclusion held if it held in every part of which it says
// something, and didn't if it didn't in one.
func (j *phaseJudge) conclude(parts ...PartResult) {
	j.out.Parts = parts
	told, held := 0, 0
	for _, p := range parts {
		if p.Expected != OK && p.Expected != Breach {
			j.out.Reasons = append(j.out.Reasons, fmt.Sprintf("%s: the ladder concludes nothing for %s", p.Part, p.Level.Words()))
			continue
		}
		told++
		switch p.matches() {
		case Held:
			held++
		case NotHeld:
			j.out.Held = NotHeld
			j.out.Reasons = append(j.out.Reasons, fmt.Sprintf("%s: %s at %s, where the ladder says %s", p.Part, p.Verdict, p.Level.Words(), p.Expected))
		default:
			for _, why := range p.Reasons {
				j.out.Reasons = append(j.out.Reasons, p.Part+": "+why)
			}
		}
	}
	switch {
	case j.out.Held == NotHeld:
	case told > 0 && told == held:
		j.out.Held = Held
	default:
		j.out.Held = Undecided
	}
}

// part judges some times of the phase, each of which stands for a round.
func (j *phaseJudge) part(name string, at level.Level, times []span) PartResult {
	p := PartResult{Part: name, Level: at, Expected: j.result.expected(at)}
	var rounds []Step
	for i, t := range times {
		rounds = append(rounds, j.step.during(t, i+1))
	}
	s := StepResult{ValidRounds: len(rounds), Objectives: judgeObjectives(j.run, j.missing, rounds)}
	if len(rounds) == 0 {
		p.Verdict, p.Reasons = NoData, []string{"no time of it is left to count"}
		return p
	}
	if j.step.Phase == PhaseSoak { // in the other phases it is meant that the load isn't the same all the time
		takeBackUnloaded(s.Objectives, []Step{j.step})
	}
	s.conclude(nil)
	p.Verdict, p.Reasons, p.Objectives = s.Verdict, s.Reasons, s.Objectives
	if late := j.step.late(); p.Verdict == Breach && late > 0 {
		s.Objectives = judgeObjectives(j.run, j.missing, j.step.earliestOf(rounds))
		if s.conclude(nil); s.Verdict != Breach {
			p.Verdict, p.Reasons = Inconclusive, []string{fmt.Sprintf("the client read late, so for %s of the phase it can't be told whether the threshold was met", count(late, "value"))}
		}
	}
	return p
}

// earliestOf are parts of the step as they would be had every chunk of the step that the client read too
// late to tell been in one of these parts, spread over its slow requests, and within the threshold.
func (s Step) earliestOf(parts []Step) []Step {
	slow := map[string]int64{}
	for _, p := range parts {
		for name, c := range p.Counts {
			slow[name] += c.Slow
		}
	}
	out := slices.Clone(parts)
	for i, p := range parts {
		out[i].Counts = map[string]Count{}
		for name, c := range p.Counts {
			if late := min(s.Counts[name].Late, slow[name]); late > 0 {
				c.Slow -= (c.Slow*late + slow[name] - 1) / slow[name]
			}
			c.Slow = max(c.Slow, 0)
			out[i].Counts[name] = c
		}
	}
	return out
}

// expected is what the ladder says of a level: ok up to the last that held, breach from the first
// breach on, inconclusive between and beyond.
func (r *Result) expected(at level.Level) State {
	if r.State == Invalid {
		return Inconclusive
	}
	sameKind := func(l level.Level) bool { return l.Kind() == at.Kind() }
	if b := r.FirstBreach; b != nil && sameKind(b.Level()) && at.Compare(b.Level()) >= 0 {
		return Breach
	}
	if top := r.highestHeld(); !top.IsZero() && sameKind(top) && at.Compare(top) <= 0 {
		return OK
	}
	return Inconclusive
}

// span is a time, in unix seconds.
type span struct{ from, to float64 }

// cut cuts a time into equal parts.
func cut(s span, n int) []span {
	if s.to <= s.from {
		return nil
	}
	var parts []span
	for i := range n {
		step := (s.to - s.from) / float64(n)
		parts = append(parts, span{s.from + float64(i)*step, s.from + float64(i+1)*step})
	}
	return parts
}

// atLeastParts cuts times further until there are enough of them to stand for rounds.
func atLeastParts(times []span) []span {
	if len(times) == 0 || len(times) >= leastParts {
		return times
	}
	var parts []span
	for _, t := range times {
		parts = append(parts, cut(t, (leastParts+len(times)-1)/len(times))...)
	}
	return parts
}

// during is what the step counted in a time, between the scrapes at or before its ends.
func (s Step) during(t span, round int) Step {
	a, b := s.at(t.from), s.at(t.to)
	counts := map[string]Count{}
	for name, c := range b.Counts {
		old := a.Counts[name]
		counts[name] = Count{Total: c.Total - old.Total, Slow: c.Slow - old.Slow, Failed: c.Failed - old.Failed}
	}
	return Step{Phase: s.Phase, Round: round, Step: s.Step, Concurrency: s.Concurrency, Rate: s.Rate, Counts: counts}
}

// at are the counts at or before a time.
func (s Step) at(t float64) Progress {
	i, found := slices.BinarySearchFunc(s.Progress, t, func(p Progress, t float64) int { return cmp.Compare(p.T, t) })
	if found {
		return s.Progress[i]
	}
	if i == 0 {
		return Progress{}
	}
	return s.Progress[i-1]
}
