// Package burnrate says how fast an error budget may burn before somebody is told, and how many
// requests that takes: the windows of the SRE Workbook, "Alerting on SLOs". It knows no PromQL.
package burnrate

import (
	"math/big"
	"slices"
	"time"

	"firstbreach/internal/slo"
)

// Pair is one multi-window condition: the budget burns too fast over the long window, and still does
// over the short one.
type Pair struct {
	Long, Short time.Duration
	Page        bool  // it wakes somebody; otherwise it waits for the morning
	Budget      int64 // percent of the period's budget that is gone when the long window is over
}

// Pairs are the windows of the SRE Workbook, "Alerting on SLOs", for any period: what is fixed is the
// share of the budget that may be lost before somebody is told.
func Pairs() []Pair {
	const day = 24 * time.Hour
	return []Pair{
		{time.Hour, 5 * time.Minute, true, 2},
		{6 * time.Hour, 30 * time.Minute, true, 5},
		{day, 2 * time.Hour, false, 10},
		{3 * day, 6 * time.Hour, false, 10},
	}
}

// Windows are the windows of all pairs, rising.
func Windows() []time.Duration {
	var list []time.Duration
	for _, p := range Pairs() {
		list = append(list, p.Short, p.Long)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Factor is the burn rate of the pair: how many times faster than evenly over the period the budget
// is spent. factor = budget share × period / long window.
func (p Pair) Factor(period time.Duration) *big.Rat {
	f := big.NewRat(p.Budget, 100)
	return f.Mul(f, big.NewRat(int64(period), int64(p.Long)))
}

// Limit is the share of bad requests that is too much: factor × (1 − target).
func (p Pair) Limit(period time.Duration, target slo.Target) *big.Rat {
	f := p.Factor(period)
	return f.Mul(f, Budget(target))
}

// Floor is the fewest requests in the long window of which a single bad one stays at the limit or
// below: without it, one bad request on a quiet night would wake somebody.
func (p Pair) Floor(period time.Duration, target slo.Target) int64 {
	inverse := new(big.Rat).Inv(p.Limit(period, target))
	n := new(big.Int).Quo(inverse.Num(), inverse.Denom()).Int64()
	if !inverse.IsInt() {
		n++
	}
	return max(n, 2)
}

// Budget is the share of requests that may be bad: 1 − target, exactly.
func Budget(t slo.Target) *big.Rat { return new(big.Rat).Sub(big.NewRat(1, 1), t.Rat()) }

// Fires reports whether the pair can alert at all: its limit is a share below 1, and its burn spends
// the budget before the period is over.
func (p Pair) Fires(period time.Duration, target slo.Target) bool {
	one := big.NewRat(1, 1)
	return p.Factor(period).Cmp(one) >= 0 && p.Limit(period, target).Cmp(one) < 0
}
