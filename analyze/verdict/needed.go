package verdict

import (
	"math"
	"sort"
)

// searchLimit bounds the search for the number of requests a decision needs.
const searchLimit = 10_000_000

// needed is how many further requests decide an undecided objective, if the share of bad
// requests, the spread between rounds and the requests per round stay what they are. nil: more
// requests alone will not. family is the number of objectives of the step, for Holm's strictest
// place.
func (c counts) needed(family int) *int64 {
	if c.rounds() == 0 {
		return nil
	}
	perRound := math.Ceil(float64(c.total) / float64(c.rounds()))
	var more float64
	switch c.side() {
	case 0: // on the allowance exactly: no sample size tells
		return nil
	case -1: // heading for ok
		if !c.fewOver() {
			return nil
		}
		n, ok := c.search(func(k, n float64) bool { return AtMost(math.Ceil(k)/c.phi, n/c.phi, c.allowance) <= c.rule.alpha })
		rounds, ok2 := c.roundsForBound()
		if !ok || !ok2 {
			return nil
		}
		more = math.Max(n, float64(rounds-c.rounds())*perRound)
	default: // heading for breach
		if c.rounds() >= minRounds && !c.mostOver() {
			return nil
		}
		n, ok := c.search(func(k, n float64) bool {
			return AtLeast(math.Floor(k)/c.phi, n/c.phi, c.allowance)*float64(family) <= c.rule.alpha
		})
		if !ok {
			return nil
		}
		more = n
	}
	if short := minRounds - c.rounds(); short > 0 {
		more = math.Max(more, float64(short)*perRound)
	}
	n := int64(more)
	return &n
}

// search finds a number of further requests at which decided holds for the scaled counts: the
// least one up to the saw-teeth of a discrete test.
func (c counts) search(decided func(k, n float64) bool) (more float64, ok bool) {
	at := func(more int64) bool {
		n := float64(c.total + more)
		return decided(float64(c.bad)/float64(c.total)*n, n)
	}
	if at(0) {
		return 0, true
	}
	low, high := int64(0), int64(1)
	for !at(high) {
		low, high = high, 2*high
		if high > searchLimit {
			return 0, false
		}
	}
	for high-low > 1 {
		mid := low + (high-low)/2
		if at(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return float64(high), true
}

// roundsForBound is the number of rounds with which the Student bound would come under the
// allowance. The bound falls with every round.
func (c counts) roundsForBound() (int, bool) {
	const most = 1000
	first := max(c.rounds(), 2)
	n := first + sort.Search(most-first+1, func(i int) bool {
		return meanBound(c.perRound, first+i, c.rule.alpha) <= c.allowance
	})
	return n, n <= most
}
