package rules

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"firstbreach/internal/slo"
)

// The severities: a page wakes somebody, a ticket waits for the morning.
const (
	Page   = "critical"
	Ticket = "warning"
)

// pair is one multi-window condition: the budget burns too fast over the long window, and still does
// over the short one.
type pair struct {
	long, short time.Duration
	severity    string
	budget      int64 // percent of the period's budget that is gone when the long window is over
}

// pairs are the windows of the SRE Workbook, "Alerting on SLOs", for any period: what is fixed is the
// share of the budget that may be lost before somebody is told.
func pairs() []pair {
	const day = 24 * time.Hour
	return []pair{
		{time.Hour, 5 * time.Minute, Page, 2},
		{6 * time.Hour, 30 * time.Minute, Page, 5},
		{day, 2 * time.Hour, Ticket, 10},
		{3 * day, 6 * time.Hour, Ticket, 10},
	}
}

// allWindows are the windows of all pairs, rising.
func allWindows() []time.Duration {
	var list []time.Duration
	for _, p := range pairs() {
		list = append(list, p.short, p.long)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// factor is the burn rate of the pair: how many times faster than evenly over the period the budget
// is spent. factor = budget share × period / long window.
func (p pair) factor(period time.Duration) *big.Rat {
	f := big.NewRat(p.budget, 100)
	return f.Mul(f, big.NewRat(int64(period), int64(p.long)))
}

// limit is the share of bad requests that is too much: factor × (1 − target).
func (p pair) limit(period time.Duration, target slo.Target) *big.Rat {
	f := p.factor(period)
	return f.Mul(f, budgetOf(target))
}

// floor is the fewest requests in the long window of which a single bad one stays at the limit or
// below: without it, one bad request on a quiet night would wake somebody.
func (p pair) floor(period time.Duration, target slo.Target) int64 {
	inverse := new(big.Rat).Inv(p.limit(period, target))
	n := new(big.Int).Quo(inverse.Num(), inverse.Denom()).Int64()
	if !inverse.IsInt() {
		n++
	}
	return max(n, 2)
}

func budgetOf(t slo.Target) *big.Rat { return new(big.Rat).Sub(big.NewRat(1, 1), t.Rat()) }

// decimal prints a ratio as people write it: at most six digits behind the point, none of them idle.
func decimal(r *big.Rat) string {
	text := r.FloatString(6)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// float is the number nearest to the ratio, for an expression.
func float(r *big.Rat) float64 { f, _ := r.Float64(); return f }

// span prints a window as PromQL does: 5m, 1h, 3d.
func span(d time.Duration) string { return model.Duration(d).String() }
