package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// headline answers the run in three lines.
func (d *Document) headline() []string {
	switch {
	case d.FirstBreach != nil:
		return d.breachLines()
	case d.State == verdict.None:
		return d.noneLines()
	}
	return d.openLines()
}

func (d *Document) breachLines() []string {
	b := d.FirstBreach
	o, _ := d.objectiveNamed(b.Objective)
	r := d.resultAt(b.Level(), b.Class, b.Objective)
	first := fmt.Sprintf("First breach: %s (%s)%s at %s, %s, in %d of %d rounds: %s of %s missed it (%s, 95 %% CI %s; allowed %s).",
		b.Objective, o.Text, ofClass(b.Class), b.Level().Words(), bracket(b), b.RoundsBreached, b.Rounds, grouped(b.Bad), counted(b.Total, "request"),
		percent(float64(b.Bad)/float64(b.Total)), interval(b.CI), percent(r.Allowance))
	if len(b.Also) > 0 {
		first += " Also broken there: " + strings.Join(b.Also, ", ") + "."
	}
	second := fmt.Sprintf("%s began %s", capital(b.Level().Words()), clock(b.Began))
	if b.Onset != nil {
		second += fmt.Sprintf("; it broke within %s", b.Onset.between())
	}
	second += fmt.Sprintf(". %sBeside it: %s.", d.layerLine(), d.clues(b))
	first += d.Search.headline()
	if rest := d.otherClasses(); rest != "" {
		first += " " + rest
	}
	third := ownerLine(b.Owner, b.Action, b.Runbook)
	if d.Recovery != nil {
		third = "Recovery: " + d.Recovery.words() + " " + third
	}
	return []string{first, second, third}
}

// bracket says between which steps the breach lies.
func bracket(b *FirstBreach) string {
	var s string
	if l, ok := b.LastOKLevel(); ok {
		s = fmt.Sprintf("last ok %s", l)
	} else {
		s = "no lower step held"
	}
	if undecided := b.undecided(); len(undecided) > 0 {
		s += fmt.Sprintf(" (%s undecided)", level.List(undecided))
	}
	return s
}

const (
	clueCount   = 3   // readings that the headline has room for
	leastChange = 0.1 // of the larger of two means; what moved less, or less than means anything in its unit (verdict.LeastRise), is no clue
)

// clues names the readings that stood out at the step of the breach: those over their limit first,
// then those that changed since the last step that held, the queue before the machine. The table beside the breach has all.
func (d *Document) clues(b *FirstBreach) string {
	if len(b.Beside) == 0 {
		return "no service or resource reading is there"
	}
	ranked := slices.DeleteFunc(slices.Clone(b.Beside), func(x Beside) bool { return !stoodOut(x) })
	if len(ranked) == 0 {
		return fmt.Sprintf("no service or resource reading over its limit, none changed by %s or more", percent(leastChange))
	}
	slices.SortStableFunc(ranked, func(a, b Beside) int { return clueRank(a) - clueRank(b) })
	var parts []string
	for _, x := range ranked[:min(clueCount, len(ranked))] {
		s := plain(x.Signal) + " " + value(*x.Mean, x.Unit)
		if x.Before != nil {
			s += fmt.Sprintf(" (before: %s)", value(*x.Before, x.Unit))
		}
		if len(x.Crossed) > 0 {
			s += ", over the limit of " + strings.Join(x.Crossed, ", ")
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// stoodOut says whether a reading is over a limit, or has changed since the last step that held. One without such a step may have.
func stoodOut(x Beside) bool {
	if len(x.Crossed) > 0 || x.Before == nil {
		return true
	}
	now, before := *x.Mean, *x.Before
	return math.Abs(now-before) >= math.Max(leastChange*math.Max(math.Abs(now), math.Abs(before)), verdict.LeastRise(x.Unit))
}

// clueRank orders readings for the headline.
func clueRank(x Beside) int {
	order := []string{signalWaiting, "queue_time", "kv_cache_usage", "preemptions", "rejections", signalCPU, signalGPU}
	rank := slices.Index(order, x.Signal)
	if rank < 0 {
		rank = len(order)
	}
	if len(x.Crossed) == 0 {
		rank += len(order) + 1
	}
	return rank
}

func ownerLine(owner, action, runbook string) string {
	s := "Owner: " + owner + "."
	if owner == "" {
		s = "Owner: none is named in the SLO file."
	}
	if action == "" {
		s += " Do now: no action is named; without one this objective is for analysis only."
	} else {
		s += " Do now: " + sentence(action)
	}
	if runbook != "" {
		s += " Runbook: " + runbook
	}
	return s
}

// sentence ends a text with a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}

func (d *Document) noneLines() []string {
	ladder := d.ladder()
	top := ladder[len(ladder)-1]
	first := fmt.Sprintf("No breach up to %s, the highest tested: every objective held at each of %s.", top.Level().Words(), counted(int64(len(ladder)), "step"))
	second := "Not one request of the ladder missed an objective."
	if s, o, ok := d.closest(); ok {
		second = fmt.Sprintf("Closest: %s at %s, where %s of %s missed it (%s, 95 %% CI %s; allowed %s).", o.Name, s.Level().Words(),
			grouped(o.Bad), counted(o.Total, "request"), percent(*o.Share), interval(o.CI), percent(o.Allowance))
	}
	return []string{first, second, fmt.Sprintf("Do now: nothing broke in this range. The first breach lies above %s: test higher steps to find it.", top.Level())}
}

// closest finds the objective that used up most of its allowance.
func (d *Document) closest() (Step, ObjectiveResult, bool) {
	var at Step
	var best ObjectiveResult
	var most float64
	found := false
	for _, s := range d.ladder() {
		for _, o := range s.Objectives {
			if o.Share == nil || o.Bad == 0 {
				continue
			}
			if used := *o.Share / o.Allowance; !found || used > most {
				at, best, most, found = s, o, used, true
			}
		}
	}
	return at, best, found
}

// openLines are for a run without an answer: what is open, why, what to do.
func (d *Document) openLines() []string {
	name := map[verdict.State]string{verdict.Inconclusive: "Inconclusive", verdict.Invalid: "Invalid measurement", verdict.NoData: "No data"}[d.State]
	held := "no step is known to have held"
	if top := d.topHeld(); !top.IsZero() {
		held = top.Words() + " held"
	}
	first := fmt.Sprintf("%s: no first breach can be named; %s. Why: %s.", name, held, strings.TrimSuffix(d.Reason, "."))
	second := "Nothing was measured."
	if s, why := d.openStep(); why != "" {
		second = fmt.Sprintf("At %s: %s.", s.Level().Words(), strings.TrimSuffix(why, "."))
	}
	third := "Do now: run it again."
	if len(d.DoNow) > 0 {
		third = "Do now: " + d.DoNow[0]
	}
	return []string{first, second, third}
}

func (d *Document) topHeld() (top level.Level) {
	for _, s := range d.ladder() {
		if s.Verdict == verdict.OK {
			top = s.Level()
		}
	}
	return top
}

// openStep is the lowest step of the ladder that bears the run's state, and its first reason.
func (d *Document) openStep() (Step, string) {
	for _, s := range d.ladder() {
		if s.Verdict == d.State && len(s.Reasons) > 0 {
			return s, s.Reasons[0]
		}
	}
	return Step{}, ""
}

func (d *Document) objectiveNamed(name string) (Objective, bool) {
	for _, o := range d.Objectives {
		if o.Name == name {
			return o, true
		}
	}
	return Objective{}, false
}

func (d *Document) resultAt(at level.Level, class, name string) ObjectiveResult {
	if s := d.step(verdict.PhaseRamp, at, class); s != nil {
		for _, o := range s.Objectives {
			if o.Name == name {
				return o
			}
		}
	}
	return ObjectiveResult{}
}
