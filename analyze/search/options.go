package search

import (
	"fmt"
	"math"
	"sort"
	"time"

	"firstbreach/analyze/verdict"
)

// Options are what is declared before a search.
type Options struct {
	Min, Max int // concurrencies
	// Looks is how many times a level is judged at most: after 3, 6, 12 and so on valid rounds.
	Looks int
	// Requests and Time are the budget; a measurement that isn't expected to fit into what is left of it is
	// not begun. 0: none. Requests counts every one that is sent, warm-up and drain included.
	Requests int64
	Time     time.Duration
	// Targets are the shares of good requests that the per-request objectives ask for, 0 to 1. They say how
	// many requests a round needs.
	Targets []float64
}

// The bounds of Options.
const (
	MaxLooks  = 5          // the last one has 48 rounds
	retries   = 2          // of a measurement that was void
	mostRound = 10_000_000 // requests
	confirms  = 3          // rounds of each level in the end: as many as a verdict needs
	mostOpen  = 3          // levels that stay undecided, before those beside them are left alone as well
)

// Validate refuses what can't be searched, naming the flags that set it.
func (o Options) Validate() error {
	switch {
	case o.Min < 1:
		return fmt.Errorf("--search.min %d: the lowest concurrency to look at is at least 1", o.Min)
	case o.Max < o.Min:
		return fmt.Errorf("--search.max %d is below --search.min %d: raise it", o.Max, o.Min)
	case o.Looks < 1 || o.Looks > MaxLooks:
		return fmt.Errorf("--search.looks %d: write 1 to %d", o.Looks, MaxLooks)
	case o.Requests < 0:
		return fmt.Errorf("--search.requests %d: write a number of requests, or 0 for no limit", o.Requests)
	case o.Time < 0:
		return fmt.Errorf("--search.time %v: write a time, or 0 for no limit", o.Time)
	}
	return nil
}

// declared is the search as the run keeps it.
func (o Options) declared() verdict.Search {
	return verdict.Search{Min: o.Min, Max: o.Max, Looks: o.Looks, Requests: o.Requests, Seconds: o.Time.Seconds()}
}

// RoundSize is how many requests are measured in a round: with three such rounds, none of them bad, the first
// look decides, and one bad request alone isn't over the allowance.
func (o Options) RoundSize() int { return o.size(0, verdict.Alpha/float64(o.Looks)) }

// confirmSize is how many in a round of the confirmation, which is looked at once: three such rounds decide with
// one bad request among them.
func (o Options) confirmSize() int { return o.size(1, verdict.Alpha) }

// size is a third of the requests of which at most bad ones show, at a level of significance, that every
// objective is kept.
func (o Options) size(bad float64, alpha float64) int {
	n := 1
	for _, t := range o.Targets {
		whole := sort.Search(mostRound, func(n int) bool { return verdict.AtMost(bad, float64(n), 1-t) <= alpha })
		n = max(n, (whole+2)/3, int(math.Ceil(1/(1-t)-1e-9)))
	}
	return n
}
