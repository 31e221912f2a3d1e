package verdict

import (
	"fmt"
	"math"
	"strings"

	"firstbreach/internal/figures"
	"firstbreach/internal/level"
)

// leastChange is the relative change from which a trade-off is worth a word.
const leastChange = 0.05

// TradeOff is what became better and what became worse from one step to the next.
type TradeOff struct {
	From, To      level.Level
	Better, Worse []Change
	Text          string
}

// Change is one value at two neighbouring steps. It is named only if it moved by 5 % or more, and the
// same way in every pair of rounds.
type Change struct {
	What, Unit    string
	Before, After float64
}

// Ratio is after ÷ before.
func (c Change) Ratio() float64 { return c.After / c.Before }

// words is the change as people say it: "up 8 %", "up 3.1×".
func (c Change) words() string {
	switch r := c.Ratio(); {
	case r >= 2:
		return fmt.Sprintf("%s up %s×", c.What, figures.Write(r, 2))
	case r >= 1:
		return fmt.Sprintf("%s up %s %%", c.What, figures.Write(100*(r-1), 2))
	default:
		return fmt.Sprintf("%s down %s %%", c.What, figures.Write(100*(1-r), 2))
	}
}

// trade compares each step of the ladder with the one above it.
func (r *Result) trade() {
	steps := r.measuredLadder()
	for i := 1; i < len(steps); i++ {
		r.TradeOffs = append(r.TradeOffs, tradeOff(steps[i-1], steps[i]))
	}
}

// quantity is one number of a round that a trade-off looks at.
type quantity struct {
	what, unit string
	of         func(RoundResult) *float64
	more       bool // more of it is better
}

func quantities() []quantity {
	return []quantity{
		{"throughput", "requests_per_second", func(r RoundResult) *float64 { return r.Measured.RequestsPerSecond }, true},
		{"output tokens", "tokens_per_second", func(r RoundResult) *float64 { return r.Measured.OutputTokensPerSecond }, true},
		{"goodput", "requests_per_second", func(r RoundResult) *float64 { return r.Measured.GoodputPerSecond }, true},
		{"TTFT P95", "seconds", func(r RoundResult) *float64 { return r.Latency.TTFT.P95 }, false},
		{"E2E P95", "seconds", func(r RoundResult) *float64 { return r.Latency.E2E.P95 }, false},
		{"TPOT P95", "seconds", func(r RoundResult) *float64 { return r.Latency.TPOT.P95 }, false},
		{"success", "ratio", func(r RoundResult) *float64 { return r.Measured.SuccessRatio }, true},
	}
}

func tradeOff(a, b StepResult) TradeOff {
	t := TradeOff{From: a.Level(), To: b.Level()}
	for _, q := range quantities() {
		c, ok := changeOf(a, b, q)
		switch {
		case !ok:
		case (c.After > c.Before) == q.more:
			t.Better = append(t.Better, c)
		default:
			t.Worse = append(t.Worse, c)
		}
	}
	t.Text = t.words()
	return t
}

// changeOf compares one quantity by the means of the rounds' values.
func changeOf(a, b StepResult, q quantity) (Change, bool) {
	xs, _ := perRound(a, q.of)
	ys, _ := perRound(b, q.of)
	if len(xs) == 0 || len(ys) == 0 {
		return Change{}, false
	}
	up, down := 0, 0
	for _, x := range xs {
		for _, y := range ys {
			if y > x {
				up++
			} else if y < x {
				down++
			}
		}
	}
	c := Change{q.what, q.unit, mean(xs), mean(ys)}
	return c, (up == 0 || down == 0) && math.Abs(c.Ratio()-1) >= leastChange
}

func mean(xs []float64) float64 {
	var sum float64
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

func (t TradeOff) words() string {
	join := func(cs []Change) string {
		out := make([]string, len(cs))
		for i, c := range cs {
			out[i] = c.words()
		}
		return strings.Join(out, ", ")
	}
	switch {
	case len(t.Better) == 0 && len(t.Worse) == 0:
		return "no change of 5 % or more that every round shows"
	case len(t.Better) == 0:
		return "nothing gained; paid: " + join(t.Worse)
	case len(t.Worse) == 0:
		return "gained: " + join(t.Better) + "; nothing paid"
	}
	return "gained: " + join(t.Better) + "; paid: " + join(t.Worse)
}
