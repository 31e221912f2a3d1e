package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// Window is a stretch of time in which something happened; of a moment nothing is claimed.
type Window struct {
	From *time.Time `json:"from"`
	To   *time.Time `json:"to"`
}

// Attribution says which layer turned first, as far as the run can tell.
type Attribution struct {
	FirstLayer string        `json:"first_layer"` // "": nothing is attributed
	Certainty  verdict.State `json:"certainty"`   // consistent, undetermined; "" when nothing is attributed
	Rounds     int           `json:"rounds"`      // that agree
	Of         int           `json:"of"`
	Text       string        `json:"text"`
	Onsets     []Onset       `json:"onsets"`
	Hypotheses []Hypothesis  `json:"hypotheses"`
	Clues      []string      `json:"clues"`
}

// Onset is when a signal left its normal range; a user objective, its allowance.
type Onset struct {
	Signal      string       `json:"signal"`
	Layer       string       `json:"layer"`
	Concurrency int          `json:"concurrency,omitempty"` // first step at which two thirds of the rounds had
	Rate        float64      `json:"rate,omitempty"`
	Follows     bool         `json:"follows_load"` // rises with load as it should
	Normal      *float64     `json:"normal"`       // median of the baseline
	Rounds      []RoundOnset `json:"rounds"`
	Of          int          `json:"of"`
	Reason      string       `json:"reason,omitempty"`

	at *level.Level
}

// RoundOnset is the onset in one round.
type RoundOnset struct {
	Round       int     `json:"round"`
	Concurrency int     `json:"concurrency,omitempty"`
	Rate        float64 `json:"rate,omitempty"`
	Window
	Inside bool `json:"while_load_was_held"`
}

// Hypothesis is an explanation of the breach.
type Hypothesis struct {
	Name     string        `json:"name"`
	Verdict  verdict.State `json:"verdict"` // supported, not_supported, undetermined, not_tested
	For      []string      `json:"for"`
	Against  []string      `json:"against"`
	Untested string        `json:"untested"` // what would settle it
}

func attribution(a *verdict.Attribution) *Attribution {
	if a == nil {
		return nil
	}
	out := &Attribution{FirstLayer: a.FirstLayer, Certainty: a.Certainty, Rounds: a.Rounds, Of: a.Of, Text: a.Text, Clues: list(a.Clues), Onsets: []Onset{}, Hypotheses: []Hypothesis{}}
	for _, s := range a.Onsets {
		o := Onset{Signal: s.Signal, Layer: s.Layer, Follows: s.Follows, Of: s.Of, Reason: s.Reason, Rounds: []RoundOnset{}, at: s.At}
		if s.At != nil {
			o.Concurrency, o.Rate = s.At.Concurrency, s.At.Rate
		}
		if s.Normal != nil && s.Normal.Samples > 0 {
			o.Normal = number(&s.Normal.Median)
		}
		for _, r := range s.Rounds {
			o.Rounds = append(o.Rounds, RoundOnset{r.Round, r.Level.Concurrency, r.Level.Rate, Window{instant(&r.Within.From), instant(&r.Within.To)}, r.Inside})
		}
		out.Onsets = append(out.Onsets, o)
	}
	for _, h := range a.Hypotheses {
		out.Hypotheses = append(out.Hypotheses, Hypothesis{h.Name, h.Verdict, list(h.For), list(h.Against), h.Untested})
	}
	return out
}

// layerLine is the attribution in a few words.
func (d *Document) layerLine() string {
	a := d.Attribution
	if a == nil || d.FirstBreach == nil {
		return ""
	}
	if a.FirstLayer == "" {
		return "First abnormal layer: undetermined. "
	}
	return fmt.Sprintf("First abnormal layer: %s%s, %s in %d of %d rounds. ", a.FirstLayer, d.layerSigns(), a.Certainty, a.Rounds, a.Of)
}

// layerSigns are the signals of the layer that is named, with their steps.
func (d *Document) layerSigns() string {
	var out []string
	for _, o := range d.Attribution.Onsets {
		if o.at != nil && !o.Follows && o.Layer != "user" && strings.Contains(d.Attribution.FirstLayer, o.Layer) && o.at.Compare(d.FirstBreach.Level()) <= 0 && len(out) < 2 {
			out = append(out, plain(o.Signal)+" from "+o.at.String())
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// breachOnset is when the objective that broke first did so, in the first round that shows it.
func (d *Document) breachOnset() *RoundOnset {
	if d.Attribution == nil || d.FirstBreach == nil {
		return nil
	}
	for _, o := range d.Attribution.Onsets {
		for i, r := range o.Rounds {
			if o.Layer == "user" && o.Signal == d.FirstBreach.Objective && (level.Level{Concurrency: r.Concurrency, Rate: r.Rate}) == d.FirstBreach.Level() {
				return &o.Rounds[i]
			}
		}
	}
	return nil
}

// between writes an interval of time on one day shortly.
func (w Window) between() string {
	if w.From == nil || w.To == nil {
		return noData
	}
	return w.From.UTC().Format("15:04:05.0") + "–" + w.To.UTC().Format("15:04:05.0")
}

// onsetTable lists when each signal turned, with a line of the breach's round for the eye.
func (d *Document) onsetTable() table {
	t := table{Head: []string{"signal", "layer", "from step", "rounds", "interval in its first round, UTC", "in that round"}}
	if d.Attribution == nil || d.FirstBreach == nil {
		return t
	}
	round, from, to := d.drawnRound()
	for _, o := range d.Attribution.Onsets {
		if len(o.Rounds) == 0 {
			continue
		}
		at := "–"
		if o.at != nil {
			at = o.at.String()
		}
		name := plain(o.Signal)
		if o.Follows {
			name += " (follows the load)"
		}
		bar := ""
		for _, r := range o.Rounds {
			if r.Round == round {
				bar = onsetBar(r.Window, from, to)
			}
		}
		line := text(bar)
		line.Code = bar != ""
		t.row(text(name), text(o.Layer), num(at), num(fmt.Sprintf("%d of %d", len(o.Rounds), o.Of)), text(o.Rounds[0].between()), line)
	}
	if len(t.Rows) > 0 {
		t.note(fmt.Sprintf("The line is the ladder of round %d, from its first step to its last: before the bar nothing was seen, after it the signal had turned; where bars overlap the order is undetermined.", round))
	}
	return t
}

// drawnRound is the round whose ladder is drawn, and its length.
func (d *Document) drawnRound() (round int, from, to float64) {
	round = 1
	if b := d.breachOnset(); b != nil {
		round = b.Round
	}
	from, to = math.Inf(1), math.Inf(-1)
	for _, s := range d.run.Steps {
		if s.Phase == verdict.PhaseRamp && s.Round == round && s.Start != nil && s.End != nil {
			from, to = math.Min(from, *s.Start), math.Max(to, *s.End)
		}
	}
	return round, from, to
}

const barWidth = 40

// onsetBar draws an interval: "······====>>>>".
func onsetBar(w Window, from, to float64) string {
	if w.From == nil || w.To == nil || !(to > from) {
		return ""
	}
	place := func(t *time.Time) int {
		return min(max(int((unixOf(t)-from)/(to-from)*barWidth), 0), barWidth-1)
	}
	a, b := place(w.From), place(w.To)
	return strings.Repeat(".", a) + strings.Repeat("=", b-a+1) + strings.Repeat(">", barWidth-1-b)
}

// hypothesisTable lists the explanations.
func (d *Document) hypothesisTable() table {
	t := table{Head: []string{"hypothesis", "verdict", "for", "against", "what would settle it"}}
	if d.Attribution == nil {
		return t
	}
	for _, h := range d.Attribution.Hypotheses {
		t.row(text(h.Name), text(verdictWord(h.Verdict)), text(orDash(strings.Join(h.For, "; "))), text(orDash(strings.Join(h.Against, "; "))), text(h.Untested))
	}
	return t
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
