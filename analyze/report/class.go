package report

import (
	"fmt"
	"strings"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// Class is the verdict on one class of requests of a mix.
type Class struct {
	Name        string        `json:"name"`
	Objectives  []string      `json:"objectives"` // that it was held to
	State       verdict.State `json:"state"`
	Reason      string        `json:"reason"`
	FirstBreach *ClassBreach  `json:"first_breach"`
	Top         string        `json:"held_up_to,omitempty"` // the highest level that held, as text
}

// ClassBreach is where a class broke first.
type ClassBreach struct {
	Objective      string  `json:"objective"`
	Concurrency    int     `json:"concurrency"`
	Rate           float64 `json:"rate,omitempty"`
	Bad            int64   `json:"bad"`
	Total          int64   `json:"total"`
	RoundsBreached int     `json:"rounds_breached"`
	Rounds         int     `json:"rounds"`
}

func (b ClassBreach) level() level.Level {
	return level.Level{Concurrency: b.Concurrency, Rate: b.Rate}
}

func classes(res verdict.Result) []Class {
	var out []Class
	for _, c := range res.Classes {
		x := Class{Name: c.Name, Objectives: list(c.Objectives), State: c.State, Reason: c.Reason}
		if !c.Top.IsZero() {
			x.Top = c.Top.String()
		}
		if b := c.FirstBreach; b != nil && c.State == verdict.Breach {
			x.FirstBreach = &ClassBreach{Objective: b.Objective, Concurrency: b.Concurrency, Rate: b.Rate, Bad: b.Bad, Total: b.Total,
				RoundsBreached: b.RoundsBreached, Rounds: b.Rounds}
		}
		out = append(out, x)
	}
	return out
}

// ofClass names a class in the middle of a sentence.
func ofClass(name string) string {
	if name == "" {
		return ""
	}
	return " of class " + name
}

// otherClasses says in one sentence where the classes stand that didn't break first.
func (d *Document) otherClasses() string {
	var parts []string
	for _, c := range d.Classes {
		switch {
		case d.FirstBreach != nil && c.Name == d.FirstBreach.Class:
		case c.FirstBreach != nil:
			parts = append(parts, fmt.Sprintf("%s broke %s at %s", c.Name, c.FirstBreach.Objective, c.FirstBreach.level()))
		case c.State == verdict.None:
			parts = append(parts, c.Name+" held throughout")
		default:
			parts = append(parts, c.Name+" is "+verdictWord(c.State))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Of the other classes " + strings.Join(parts, ", ") + "."
}

// classTable is the verdict on each class.
func (d *Document) classTable() table {
	t := table{Head: []string{"class", "verdict", "first breach", "last held", "missed there", "rounds", "held to", "why"}}
	for _, c := range d.Classes {
		first, missed, rounds := "–", "–", "–"
		if b := c.FirstBreach; b != nil {
			first = fmt.Sprintf("%s at %s", b.Objective, b.level())
			missed, rounds = grouped(b.Bad)+" of "+grouped(b.Total), fmt.Sprintf("%d of %d", b.RoundsBreached, b.Rounds)
		}
		top := c.Top
		if top == "" {
			top = "–"
		}
		t.row(text(c.Name), state(c.State), text(first), num(top), num(missed), num(rounds), text(strings.Join(c.Objectives, ", ")), text(c.Reason))
	}
	return t
}
