package level

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Level is the load of one step. Exactly one of the two is set; the zero Level is no load.
type Level struct {
	Concurrency int     // requests in flight
	Rate        float64 // requests that arrive in a second
}

// IsZero reports whether there is no load.
func (l Level) IsZero() bool { return l == Level{} }

// String is the level alone: "8", "2.5/s".
func (l Level) String() string {
	if l.Rate > 0 {
		return FormatRate(l.Rate) + "/s"
	}
	return strconv.Itoa(l.Concurrency)
}

// Words is the level with its kind: "concurrency 8", "rate 2.5/s".
func (l Level) Words() string { return l.Kind() + " " + l.String() }

// Kind is "concurrency" or "rate".
func (l Level) Kind() string {
	if l.Rate > 0 {
		return "rate"
	}
	return "concurrency"
}

// Compare orders levels by their load, a concurrency before a rate: the two can't be compared.
func (l Level) Compare(o Level) int {
	return cmp.Or(cmp.Compare(l.Rate, o.Rate), cmp.Compare(l.Concurrency, o.Concurrency))
}

// FormatRate writes a rate without its unit, as the rate label has it: reading it back gives the
// same number.
func FormatRate(rate float64) string { return strconv.FormatFloat(rate, 'f', -1, 64) }

// List writes levels as people do: "1, 2 and 4".
func List(ls []Level) string {
	s := make([]string, len(ls))
	for i, l := range ls {
		s[i] = l.String()
	}
	if len(s) < 2 {
		return strings.Join(s, "")
	}
	return strings.Join(s[:len(s)-1], ", ") + " and " + s[len(s)-1]
}

// WordsOf is List with the kind before it: "concurrency 1", "concurrencies 1 and 2", "rates 1/s and 2/s".
func WordsOf(ls []Level) string {
	switch {
	case len(ls) == 0:
		return "no level"
	case len(ls) == 1:
		return ls[0].Words()
	case ls[0].Rate > 0:
		return "rates " + List(ls)
	}
	return fmt.Sprintf("concurrencies %s", List(ls))
}

// Ladder makes the levels of a list of concurrencies followed by a list of rates; one of them is
// empty in a plan.
func Ladder(concurrencies []int, rates []float64) []Level {
	ls := make([]Level, 0, len(concurrencies)+len(rates))
	for _, c := range concurrencies {
		ls = append(ls, Level{Concurrency: c})
	}
	for _, r := range rates {
		ls = append(ls, Level{Rate: r})
	}
	return ls
}
