package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/combin"

	"firstbreach/internal/level"
)

// Search is a search for the exact first breach: what was declared before it began, and how it ended.
// Its levels are the ramp's steps, and a level's rounds are the times that it was measured.
type Search struct {
	Min, Max int // concurrencies
	// Looks is how many times a level is judged at most. Each look has an equal share of α.
	Looks    int
	Requests int64   // budget, warm-up and drain included; 0: none
	Seconds  float64 // budget; 0: none
	Sent     int64   // requests, warm-up and drain included
	Took     float64 // seconds
	Ended    string  // why it ended, in words; "" while it goes on
}

// RoundsAt is how many valid rounds a level has at a look, counted from 1: 3, 6, 12 and so on.
func (s Search) RoundsAt(look int) int { return minRounds << (look - 1) }

// rule is how strict the tests of a step are.
type rule struct {
	alpha float64
	// over of overOf rounds may be over the allowance in an ok.
	over, overOf int
	// atLimit has the spread between rounds measured against the chance that there is at the allowance,
	// where the share is below it: that of few bad requests is itself a matter of chance.
	atLimit bool
}

// once is the rule of a plan: one look.
var once = rule{alpha: Alpha, over: 0, overOf: 1}

// rule is that of the run. A search looks several times, so each test has its share of α. It may take
// a level's rounds to a dozen short ones: that none of them is over would then be too much to ask of
// a level that holds, and the bounds over all rounds are what protects from a false ok.
func (r Run) rule() rule {
	if r.Search == nil {
		return once
	}
	return rule{alpha: Alpha / float64(r.Search.Looks), over: 1, overOf: 3, atLimit: true}
}

// SearchResult is what a search knows in the end.
type SearchResult struct {
	Search
	LastOK       int    // the highest level that held below the first breach; 0: none
	FirstBreach  int    // the lowest level that broke; 0: none
	Exact        bool   // they are neighbours, or concurrency 1 broke
	Open         []int  // levels tested above LastOK, and below FirstBreach if there is one, that neither held nor broke
	Void         []int  // those that no measurement counts of: they are no bound
	Looks        []Seen // every level, as it looks by its rounds so far
	Confirmation *Confirmation
	Drift        *Drift // something changed with time and not with load; nil: nothing was seen
}

// Seen is what the rounds of a level look like, whether they decide anything or not.
type Seen struct {
	Concurrency int
	Rounds      int // valid ones
	Verdict     State
	Over        bool // the share of bad requests is over the allowance of an objective
}

// The outcomes of running the last ok and the first breach once more.
const (
	Confirmed    State = "confirmed"
	Contradicted State = "contradicted"
)

// Confirmation is what the last ok and the first breach showed when they were run once more: their new
// rounds, judged by themselves.
type Confirmation struct {
	Verdict State           // confirmed, contradicted, undecided
	LastOK  *ConfirmedLevel // nil: there was no lower level to run
	Breach  *ConfirmedLevel
	Reasons []string // why it isn't confirmed
}

// ConfirmedLevel is one of the two.
type ConfirmedLevel struct {
	Concurrency int
	Verdict     State
	Rounds      int   // valid ones
	Bad, Total  int64 // of the objective that decides
}

// Drift is a level whose rounds changed side at one moment, although its load was the same.
type Drift struct {
	Concurrency         int
	Objective           string
	BadBefore, OfBefore int64
	BadAfter, OfAfter   int64
	LastBefore          *float64 // unix seconds: end of the last round before
	FirstAfter          *float64 // start of the first one after
	Worse               bool     // the later rounds are the bad ones
}

// driftAlpha is the chance with which rounds that are alike look like a drift, for one level and one
// moment. It is small, because every level is looked at whenever it was measured again.
const driftAlpha = 0.001

// judgeSearch sums up a search. A first breach that drift may account for is taken back.
func (r *Result) judgeSearch(run Run) {
	if run.Search == nil {
		return
	}
	s := &SearchResult{Search: *run.Search}
	r.Search = s
	s.Drift = r.drift(run)
	if s.Drift != nil && r.FirstBreach != nil && s.Drift.Concurrency <= r.FirstBreach.Concurrency {
		r.Notes = append(r.Notes, fmt.Sprintf("The breach at %s is not claimed: %s.", r.FirstBreach.Level().Words(), s.Drift.Words()))
		r.FirstBreach = nil
	}
	if b := r.FirstBreach; b != nil {
		s.FirstBreach = b.Concurrency
		if b.LastOK != nil {
			s.LastOK = *b.LastOK
		}
		s.Exact = s.FirstBreach-s.LastOK == 1
	} else {
		s.LastOK = r.highestOK()
	}
	for _, i := range r.ladder() {
		step := &r.Steps[i]
		s.Looks = append(s.Looks, Seen{step.Concurrency, step.ValidRounds, step.Verdict, step.looksOver()})
		if step.Concurrency <= s.LastOK || s.FirstBreach > 0 && step.Concurrency >= s.FirstBreach {
			continue
		}
		if step.ValidRounds == 0 {
			s.Void = append(s.Void, step.Concurrency)
		} else {
			s.Open = append(s.Open, step.Concurrency)
		}
	}
	s.Confirmation = r.confirmation()
}

// looksOver reports whether the share of bad requests is over the allowance of an objective.
func (s *StepResult) looksOver() bool {
	return slices.ContainsFunc(s.Objectives, func(o ObjectiveResult) bool { return o.Share != nil && *o.Share > o.Allowance })
}

// confirmation sums up the steps in which the last ok and the first breach were run once more.
func (r *Result) confirmation() *Confirmation {
	var again []ConfirmedLevel
	for i := range r.Steps {
		step := &r.Steps[i]
		if step.Phase != PhaseConfirm {
			continue
		}
		l := ConfirmedLevel{Concurrency: step.Concurrency, Verdict: step.Verdict, Rounds: step.ValidRounds}
		if o := step.deciding(); o != nil {
			l.Bad, l.Total = o.Bad(), o.Total
		}
		again = append(again, l)
	}
	return confirms(again)
}

// deciding is the objective that a step's verdict rests on: that with the greatest share of its
// allowance used up.
func (s *StepResult) deciding() *ObjectiveResult {
	var most *ObjectiveResult
	var used float64
	for i := range s.Objectives {
		o := &s.Objectives[i]
		if o.Share != nil && (most == nil || *o.Share/o.Allowance > used) {
			most, used = o, *o.Share/o.Allowance
		}
	}
	return most
}

// confirms says what two levels, the lower one first, or the broken one alone, amount to. They were judged by
// their new rounds alone, and with all of α: there is one look.
func confirms(again []ConfirmedLevel) *Confirmation {
	if len(again) == 0 {
		return nil
	}
	c := &Confirmation{Verdict: Confirmed, Breach: &again[len(again)-1]}
	if len(again) > 1 {
		c.LastOK = &again[0]
	}
	expect := func(l *ConfirmedLevel, want, opposite State) {
		switch {
		case l == nil || l.Verdict == want:
			return
		case l.Verdict == opposite:
			c.Verdict = Contradicted
		case c.Verdict == Confirmed:
			c.Verdict = Undecided
		}
		c.Reasons = append(c.Reasons, fmt.Sprintf("%s was %s by itself (%d of %d missed)", level.Level{Concurrency: l.Concurrency}.Words(), words(string(l.Verdict)), l.Bad, l.Total))
	}
	expect(c.LastOK, OK, Breach)
	expect(c.Breach, Breach, OK)
	return c
}

// drift finds the lowest level whose rounds were all within the allowance up to a moment and all over
// it from then on, or the other way round, and differ more than chance allows.
func (r *Result) drift(run Run) *Drift {
	for _, i := range r.ladder() {
		step := &r.Steps[i]
		for j := range step.Objectives {
			if d := driftOf(&step.Objectives[j]); d != nil {
				d.Concurrency = step.Concurrency
				d.place(run, step.Objectives[j].Rounds)
				return d
			}
		}
	}
	return nil
}

// driftOf looks at one objective of a level.
func driftOf(o *ObjectiveResult) *Drift {
	if len(o.Rounds) < minRounds {
		return nil
	}
	cut := 1
	for cut < len(o.Rounds) && o.Rounds[cut].Over == o.Rounds[0].Over {
		cut++
	}
	for _, x := range o.Rounds[cut:] {
		if x.Over == o.Rounds[0].Over { // it went to and fro: that is no drift
			return nil
		}
	}
	d := &Drift{Objective: o.Name, Worse: !o.Rounds[0].Over}
	for i, x := range o.Rounds {
		if i < cut {
			d.BadBefore, d.OfBefore = d.BadBefore+x.Bad, d.OfBefore+x.Total
		} else {
			d.BadAfter, d.OfAfter = d.BadAfter+x.Bad, d.OfAfter+x.Total
		}
	}
	few, of := d.BadBefore, d.OfBefore
	if !d.Worse {
		few, of = d.BadAfter, d.OfAfter
	}
	if cut == len(o.Rounds) || fisher(few, of, d.BadBefore+d.BadAfter, d.OfBefore+d.OfAfter) > driftAlpha {
		return nil
	}
	return d
}

// fisher is the probability that, of all requests with so many bad ones among them, a part chosen at
// random holds at most few bad ones: Fisher's exact test (J. R. Statist. Soc. 98, 1935).
func fisher(few, of, bad, total int64) float64 {
	ways := func(n, k int64) float64 { return combin.LogGeneralizedBinomial(float64(n), float64(k)) }
	var p float64
	for k := max(0, of+bad-total); k <= few; k++ {
		p += math.Exp(ways(bad, k) + ways(total-bad, of-k) - ways(total, of))
	}
	return p
}

// place finds when it happened.
func (d *Drift) place(run Run, rounds []RoundCount) {
	at := func(n RoundCount) *Step {
		for i := range run.Steps {
			if s := &run.Steps[i]; s.Phase == PhaseRamp && s.Concurrency == d.Concurrency && s.Round == n.Round {
				return s
			}
		}
		return nil
	}
	for i := 1; i < len(rounds); i++ {
		if rounds[i].Over != rounds[0].Over {
			if s := at(rounds[i-1]); s != nil {
				d.LastBefore = s.End
			}
			if s := at(rounds[i]); s != nil {
				d.FirstAfter = s.Start
			}
			return
		}
	}
}

// Words says what drifted.
func (d *Drift) Words() string {
	was, is := "held", "missed"
	if !d.Worse {
		was, is = "missed", "held"
	}
	return fmt.Sprintf("%s %s %s in its first rounds (%d of %d missed) and %s it later (%d of %d): something changed with time, not with load", level.Level{Concurrency: d.Concurrency}.Words(),
		was, d.Objective, d.BadBefore, d.OfBefore, is, d.BadAfter, d.OfAfter)
}

// Words says how the confirmation went.
func (c *Confirmation) Words() string {
	of := func(l *ConfirmedLevel) string {
		return fmt.Sprintf("%d %s (%d of %d missed)", l.Concurrency, words(string(l.Verdict)), l.Bad, l.Total)
	}
	s := "run once more"
	if c.LastOK != nil {
		s = "run once more, alternately: " + of(c.LastOK) + ", " + of(c.Breach)
	} else {
		s += ": " + of(c.Breach)
	}
	switch c.Verdict {
	case Confirmed:
		return "confirmed; " + s
	case Contradicted:
		return "contradicted; " + s
	}
	return "neither confirmed nor contradicted; " + s + ": " + strings.Join(c.Reasons, "; ")
}
