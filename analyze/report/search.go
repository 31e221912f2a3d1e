package report

import (
	"fmt"
	"strings"
	"time"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// Search is what a search for the exact first breach declared, did and found.
type Search struct {
	Min          int           `json:"min"` // concurrencies
	Max          int           `json:"max"`
	Looks        int           `json:"looks"`          // at most, at one level
	Requests     int64         `json:"request_budget"` // warm-up and drain included; 0: none
	Seconds      float64       `json:"time_budget_s"`  // 0: none
	Sent         int64         `json:"requests_sent"`
	Took         float64       `json:"took_s"`
	Ended        string        `json:"ended"` // why, in words
	Exact        bool          `json:"exact"` // the last ok and the first breach are neighbours, or concurrency 1 broke
	LastOK       int           `json:"last_ok"`
	FirstBreach  int           `json:"first_breach"` // 0: none was found
	Open         []int         `json:"open"`         // levels between the two that neither held nor broke
	Void         []int         `json:"void"`         // levels of which no measurement counts
	Confirmation *Confirmation `json:"confirmation"` // null: they were not run once more
	Drift        string        `json:"drift,omitempty"`
}

// Confirmation is what the last ok and the first breach showed when they were run once more.
type Confirmation struct {
	Verdict verdict.State    `json:"verdict"` // confirmed, contradicted, undecided
	Text    string           `json:"text"`
	Levels  []ConfirmedLevel `json:"levels"`
}

// ConfirmedLevel is one of the two, by its new rounds alone.
type ConfirmedLevel struct {
	Concurrency int           `json:"concurrency"`
	Verdict     verdict.State `json:"verdict"`
	Rounds      int           `json:"rounds"`
	Bad         int64         `json:"bad"`
	Total       int64         `json:"total"`
}

func searchOf(s *verdict.SearchResult) *Search {
	if s == nil {
		return nil
	}
	out := &Search{Min: s.Min, Max: s.Max, Looks: s.Search.Looks, Requests: s.Requests, Seconds: s.Seconds, Sent: s.Sent, Took: s.Took, Ended: s.Ended,
		Exact: s.Exact, LastOK: s.LastOK, FirstBreach: s.FirstBreach, Open: list(s.Open), Void: list(s.Void)}
	if c := s.Confirmation; c != nil {
		out.Confirmation = &Confirmation{Verdict: c.Verdict, Text: c.Words(), Levels: []ConfirmedLevel{}}
		for _, l := range []*verdict.ConfirmedLevel{c.LastOK, c.Breach} {
			if l != nil {
				out.Confirmation.Levels = append(out.Confirmation.Levels, ConfirmedLevel(*l))
			}
		}
	}
	if s.Drift != nil {
		out.Drift = s.Drift.Words()
	}
	return out
}

// headline is what a search adds to the first line of a breach.
func (s *Search) headline() string {
	if s == nil {
		return ""
	}
	found := " The search can't say more closely where it lies"
	if s.Exact {
		found = " That is exact"
	}
	switch {
	case s.Confirmation == nil:
		return found + "; it was not run once more."
	case s.Confirmation.Verdict == verdict.Confirmed:
		return found + "; run once more, it was confirmed."
	case s.Confirmation.Verdict == verdict.Contradicted:
		return found + "; run once more, it was contradicted."
	}
	return found + "; run once more, it stayed open."
}

// searchFacts are the lines of the section about the search.
func (d *Document) searchFacts() []fact {
	s := d.Search
	if s == nil {
		return nil
	}
	ended := s.Ended
	if ended == "" {
		ended = "it was cut short"
	}
	facts := []fact{
		{"Declared", fmt.Sprintf("concurrency %d to %d, at most %s at a level, %s", s.Min, s.Max, counted(int64(s.Looks), "look"), s.budget())},
		{"Took", fmt.Sprintf("%s, warm-up included, in %s", counted(s.Sent, "request"), wholeSeconds(s.Took))},
		{"Ended", ended},
		{"Found", s.found()},
	}
	if len(s.Open) > 0 {
		facts = append(facts, fact{"Undecided", level.List(level.Ladder(s.Open, nil))})
	}
	if len(s.Void) > 0 {
		facts = append(facts, fact{"No measurement counts", level.List(level.Ladder(s.Void, nil)) + ": no bound"})
	}
	if s.Confirmation != nil {
		facts = append(facts, fact{"Confirmation", s.Confirmation.Text})
	}
	if s.Drift != "" {
		facts = append(facts, fact{"Drift", s.Drift})
	}
	return facts
}

// wholeSeconds writes a time of minutes, such as 5m3s.
func wholeSeconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// budget says what it was not to exceed.
func (s *Search) budget() string {
	var parts []string
	if s.Requests > 0 {
		parts = append(parts, counted(s.Requests, "request"))
	}
	if s.Seconds > 0 {
		parts = append(parts, wholeSeconds(s.Seconds))
	}
	if len(parts) == 0 {
		return "no budget"
	}
	return "budget " + strings.Join(parts, " and ")
}

// found says what is known in the end.
func (s *Search) found() string {
	held := "no level is known to have held"
	if s.LastOK > 0 {
		held = fmt.Sprintf("concurrency %d held", s.LastOK)
	}
	switch {
	case s.FirstBreach == 0:
		return held + ", no level is known to have broken"
	case s.Exact && s.LastOK == 0:
		return fmt.Sprintf("concurrency %d broke, and there is none below", s.FirstBreach)
	case s.Exact:
		return fmt.Sprintf("%s, %d broke: the first breach is exact", held, s.FirstBreach)
	}
	return fmt.Sprintf("%s, %d broke", held, s.FirstBreach)
}

// adviseSearch says how to go on where a search left something open.
func (d *Document) adviseSearch(add func(owner, text string)) {
	s := d.Search
	switch {
	case s == nil:
	case s.Drift != "":
		add("", "find out what changed at that time (a cache, another load, a throttled clock), and search again: "+s.Drift)
	case s.Confirmation != nil && s.Confirmation.Verdict == verdict.Contradicted:
		add("", "search again before acting on the exact number: "+s.Confirmation.Text)
	case strings.HasPrefix(s.Ended, "the budget"):
		add("", fmt.Sprintf("search again with a larger budget (%s): %s", s.Ended, s.found()))
	}
}
