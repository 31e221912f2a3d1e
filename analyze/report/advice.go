package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// doNow lists what to do, the most urgent first, each with who does it where the SLO file says so.
func (d *Document) doNow() []string {
	out := []string{}
	add := func(owner, text string) {
		if text = capital(text); owner != "" {
			text = owner + ": " + text
		}
		if text = sentence(text); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	d.adviseTarget(add)
	if b := d.FirstBreach; b != nil {
		if b.Action != "" {
			add(b.Owner, b.Action)
		}
		for _, name := range b.Also {
			if o, ok := d.objectiveNamed(name); ok && o.Action != "" {
				add(o.Owner, o.Action)
			}
		}
	}
	for _, c := range d.Capacity {
		if c.Verdict == verdict.NotHeld && c.Action != "" {
			add(c.Owner, c.Action)
		}
	}
	if d.Recovery != nil {
		for _, o := range d.Recovery.Objectives {
			if o.Verdict == verdict.NotHeld && o.Action != "" {
				add(o.Owner, o.Action)
			}
		}
	}
	if l := d.Limits; l != nil && len(l.Snippets) > 0 && d.FirstBreach != nil {
		add("", fmt.Sprintf("set admission limits: at most %d at once, %d waiting, Retry-After %g s (see Admission limits)", l.MaxConcurrency, l.QueueCap, l.RetryAfter))
	}
	d.adviseSearch(add)
	d.adviseMeasurement(add)
	if d.State == verdict.None {
		ladder := d.ladder()
		add("", fmt.Sprintf("test above %s to find the first breach", ladder[len(ladder)-1].Level().Words()))
	}
	return out
}

// adviseTarget puts first what makes everything else wait: a target that was gone after the load. No
// number of further requests helps then.
func (d *Document) adviseTarget(add func(owner, text string)) {
	for _, s := range d.Steps {
		var all int64
		for outcome, n := range s.Outcomes {
			if outcome != "aborted" {
				all += n
			}
		}
		if s.Phase == verdict.PhaseRecovery && all > 0 && s.Outcomes["ok"] == 0 {
			add("", fmt.Sprintf("look at the target first: after the load it failed all of %s at %s (%s)", counted(all, "request"), s.Level().Words(), outcomesOf(s)))
		}
	}
}

// outcomesOf counts a step's outcomes in words, the most frequent first.
func outcomesOf(s Step) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Outcomes)), func(o string) bool { return s.Outcomes[o] == 0 || o == "aborted" })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(s.Outcomes[b], s.Outcomes[a]) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", plain(name), s.Outcomes[name])
	}
	return strings.Join(names, ", ")
}

// adviseMeasurement says how to mend what kept steps from a verdict.
func (d *Document) adviseMeasurement(add func(owner, text string)) {
	for _, c := range d.Validity {
		if c.Status == verdict.Failed {
			add("", "mend the measurement ("+plain(c.Name)+"): "+c.Detail)
		}
	}
	if d.Search != nil { // it gives levels requests by its own rule
		return
	}
	var short []level.Level
	for _, s := range d.ladder() {
		if s.Verdict != verdict.Inconclusive || d.FirstBreach != nil && s.Level().Compare(d.FirstBreach.Level()) > 0 {
			continue
		}
		if s.RoundsValid < minRounds {
			short = append(short, s.Level())
		} else if n, ok := s.needed(); ok {
			add("", fmt.Sprintf("give %s about %s more to decide it", s.Level().Words(), counted(n, "request")))
		} else {
			add("", fmt.Sprintf("run %s again in further rounds: %s", s.Level().Words(), s.undecidable()))
		}
	}
	if len(short) > 0 {
		add("", fmt.Sprintf("run further rounds: a verdict needs %d valid ones, and %s %s %s", minRounds, short[0].Kind(), level.List(short), haveFewer(len(short))))
	}
}

func haveFewer(n int) string {
	if n == 1 {
		return "has fewer"
	}
	return "have fewer"
}

// minRounds is how many valid rounds a verdict needs.
const minRounds = 3

// needed is how many further requests decide every open objective of a step; false when requests
// alone do not.
func (s Step) needed() (int64, bool) {
	var most int64
	for _, o := range s.Objectives {
		if o.Verdict != verdict.Inconclusive {
			continue
		}
		if o.Needed == nil {
			return 0, false
		}
		most = max(most, *o.Needed)
	}
	return most, most > 0
}

// undecidable is the reason of the first objective that more requests do not decide.
func (s Step) undecidable() string {
	for _, o := range s.Objectives {
		if o.Verdict == verdict.Inconclusive && o.Needed == nil {
			return o.Name + " " + o.Reason
		}
	}
	return "more requests alone do not decide it"
}

// claimLimits says how far the answer carries.
func (d *Document) claimLimits() []string {
	out := []string{}
	ladder := d.ladder()
	if len(ladder) > 0 {
		var tested []level.Level
		for _, s := range ladder {
			if s.Valid {
				tested = append(tested, s.Level())
			}
		}
		tested = slices.Compact(tested) // classes share their levels
		if len(tested) > 0 {
			out = append(out, fmt.Sprintf("Tested at %s %s, and nowhere between or above.", tested[0].Kind(), level.List(tested)))
		}
	}
	if b := d.FirstBreach; b != nil {
		from, _ := b.LastOKLevel()
		if b.Rate > 0 || b.Concurrency-from.Concurrency > 1 {
			out = append(out, fmt.Sprintf("The true limit lies somewhere above %s and at or below %s. Steps in between would narrow it.", from, b.Level()))
		}
	}
	if d.State == verdict.None {
		out = append(out, "Nothing broke, so where it breaks is not known; it is above the highest step.")
	}
	out = append(out,
		"Each claim of a breach, and each of ok, is wrong at most once in twenty runs, as far as requests within a round are alike.",
		d.loopLimits(),
		"The prompts, output length, model and settings were those under Conditions. Others have another limit.",
		"A layer that turned first is where to look, not the proof of a cause: a change of one thing and a second run is. A resource alone is a clue.")
	var undefined []string
	for _, s := range ladder {
		for _, o := range s.Objectives {
			if o.Undefined > 0 {
				undefined = append(undefined, fmt.Sprintf("%d at %s for %s", o.Undefined, s.Level().Words(), o.Name))
			}
		}
	}
	if len(undefined) > 0 {
		out = append(out, "Answered requests without a value are in no count: "+strings.Join(undefined, ", ")+".")
	}
	return out
}

// loopLimits says what the kind of load leaves out.
func (d *Document) loopLimits() string {
	if len(d.Rates) > 0 {
		return "An open loop lets requests arrive at a rate, whatever is in flight. What a user waited is counted from when the request was due."
	}
	return "A closed loop holds the number of requests in flight. It tests no bursts, and no demand that grows while answers are slow."
}
