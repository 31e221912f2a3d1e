package report

import (
	"fmt"
	"strings"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// Phase is a soak, a fluctuation, a trace or a drill, which came once after the rounds: did what the ladder
// showed hold in it, and how long was it until the service was back?
type Phase struct {
	Phase       string        `json:"phase"`
	Step        int           `json:"step"`
	Class       string        `json:"class,omitempty"`       // of the requests
	Name        string        `json:"name,omitempty"`        // of a drill, or a trace
	Shape       string        `json:"shape,omitempty"`       // of a fluctuation: square, spike, sine
	Concurrency int           `json:"concurrency,omitempty"` // the highest
	Rate        float64       `json:"rate,omitempty"`        // the highest, in requests per second
	Low         string        `json:"low,omitempty"`         // the lowest level of a fluctuation, or the mean of a trace, as text
	Held        verdict.State `json:"held"`                  // held, not_held, undecided
	Reasons     []string      `json:"reasons"`
	Back        *Back         `json:"back"` // null: it can't be said
	Parts       []Part        `json:"parts"`
	Valid       bool          `json:"valid"`
	Checks      []Check       `json:"checks"`
	Requests    int64         `json:"requests"`
	Latency     Latency       `json:"latency"`
	Throughput  Throughput    `json:"throughput"`
	Success     *float64      `json:"success_ratio"`
}

// Back is how long it took until the service was back, in seconds: in (from, to].
type Back struct {
	After    string   `json:"after"` // what it counts from
	Left     bool     `json:"left"`  // whether it left its objectives at all
	From     *float64 `json:"from"`
	To       *float64 `json:"to"` // null: it was not back when the phase ended, from seconds later, or never left
	Censored bool     `json:"censored"`
}

// Part is a part of a phase.
type Part struct {
	Part       string            `json:"part"` // whole, low, high, before, after
	Level      string            `json:"level"`
	Expected   verdict.State     `json:"expected"` // by the ladder
	Verdict    verdict.State     `json:"verdict"`
	Reasons    []string          `json:"reasons"`
	Objectives []ObjectiveResult `json:"objectives"`
}

func phases(res verdict.Result) []Phase {
	var out []Phase
	for _, p := range res.Phases {
		m := p.Round.Measured
		x := Phase{Phase: p.Phase, Step: p.Step, Class: p.Class, Name: p.Name, Shape: p.Shape, Concurrency: p.High.Concurrency, Rate: p.High.Rate,
			Held: p.Held, Reasons: list(p.Reasons), Parts: []Part{}, Valid: p.Round.Valid, Checks: checks(p.Round.Checks), Requests: m.Requests,
			Latency:    latency(p.Round.Latency.TTFT, p.Round.Latency.E2E, p.Round.Latency.TPOT),
			Throughput: throughput(m), Success: number(m.SuccessRatio)}
		if p.Low != p.High {
			x.Low = p.Low.String()
		}
		if b := p.Back; b != nil {
			x.Back = &Back{After: b.After, Left: b.Left, Censored: b.Censored}
			if b.Left {
				x.Back.From = number(&b.From)
			}
			if b.Left && !b.Censored {
				x.Back.To = number(&b.To)
			}
		}
		for _, part := range p.Parts {
			y := Part{Part: part.Part, Level: part.Level.String(), Expected: part.Expected, Verdict: part.Verdict, Reasons: list(part.Reasons), Objectives: []ObjectiveResult{}}
			for _, o := range part.Objectives {
				y.Objectives = append(y.Objectives, objectiveResult(o))
			}
			x.Parts = append(x.Parts, y)
		}
		out = append(out, x)
	}
	return out
}

// load is the load of a phase in words.
func (p Phase) load() string {
	high := level.Level{Concurrency: p.Concurrency, Rate: p.Rate}
	if p.Low == "" {
		return high.Words()
	}
	return fmt.Sprintf("%s %s to %s", high.Kind(), p.Low, high)
}

// title is a phase's name.
func (p Phase) title() string {
	title := p.Phase
	switch {
	case p.Name != "":
		title += " " + p.Name
	case p.Shape != "":
		title = p.Shape + " " + title
	}
	return title + ofClass(p.Class)
}

// text says how long it took until the service was back.
func (b *Back) text() string {
	switch {
	case b == nil:
		return "–"
	case !b.Left:
		return "it never left"
	case b.Censored:
		return fmt.Sprintf("not within %s after %s", optional(b.From, seconds), b.After)
	case b.From == nil || b.To == nil:
		return "–"
	}
	return fmt.Sprintf("%s to %s after %s", seconds(*b.From), seconds(*b.To), b.After)
}

// phaseTable says of each phase whether the conclusion held in it, and when it was back.
func (d *Document) phaseTable() table {
	t := table{Head: []string{"phase", "load", "the conclusion", "back", "n", "success", "TTFT P50 / P95 / P99", "why"}}
	for _, p := range d.Phases {
		t.row(text(p.title()), text(p.load()), state(p.Held), text(p.Back.text()), num(grouped(p.Requests)), num(optional(p.Success, percent)),
			num(triple(p.Latency.TTFT)), text(strings.Join(p.Reasons, "; ")))
	}
	return t
}

// partTable lists what was counted in each part of each phase.
func (d *Document) partTable() table {
	t := table{Head: []string{"phase", "part", "level", "by the ladder", "verdict", "objective", "missed", "95 % CI", "allowed", "why"}}
	for _, p := range d.Phases {
		for _, part := range p.Parts {
			for _, o := range part.Objectives {
				t.row(text(p.title()), text(part.Part), num(part.Level), state(part.Expected), state(part.Verdict), text(o.Name),
					num(grouped(o.Bad)+" of "+grouped(o.Total)), num(interval(o.CI)), num(allowed(o)), text(o.Reason))
			}
		}
	}
	return t
}

// junitPhase is a failure where the ladder's conclusion didn't hold.
func (d *Document) junitPhase(p Phase) junitCase {
	service := d.Service
	if service == "" {
		service = "service"
	}
	c := junitCase{Class: service + "." + p.Phase, Name: fmt.Sprintf("%s at %s: the ladder's conclusion holds", p.title(), p.load())}
	if p.Class != "" {
		c.Class += "." + p.Class
	}
	why := strings.Join(p.Reasons, "; ")
	switch p.Held {
	case verdict.NotHeld:
		c.Failure = &junitReason{Message: why, Type: "not_held", Text: "back: " + p.Back.text()}
	case verdict.Undecided:
		c.Skipped = &junitReason{Message: "undecided: " + why}
	}
	return c
}
