package oracle

import (
	"math"
	"math/rand/v2"
)

// Scenario is a service with a known answer, and how it is tested.
type Scenario struct {
	Name string
	What string // in a few words
	Service
	Ladder []int
	TTFT   float64 // threshold of the objective on TTFT, seconds
	Rounds int     // 3 when 0
	// Requests is how many are measured in a step; 100 when 0.
	Requests int
	// Drift is the factor on all times by how far the run has come, from 0 to 1; nil for none.
	Drift func(place float64) float64
	// Exact is the share of requests over the threshold at a concurrency, where theory has it.
	Exact func(clients int) float64
	// Outside marks what no load test of this length can see: reported, and not counted.
	Outside bool
}

func (s Scenario) rounds() int   { return orElse(s.Rounds, 3) }
func (s Scenario) requests() int { return orElse(s.Requests, 100) }

func orElse(n, or int) int {
	if n == 0 {
		return or
	}
	return n
}

// Scenarios are all that are checked.
func Scenarios() []Scenario {
	ladder := []int{1, 2, 4, 8}
	// plain has four slots and a second of work in a request.
	plain := Service{Slots: 4, Prefill: Lognormal(0.2, 0.25), Decode: Lognormal(0.8, 0.3)}
	edit := func(f func(s *Service)) Service {
		s := plain
		f(&s)
		return s
	}
	// flat has slots for everybody, so that TTFT is the prefill whatever the load.
	flat := Service{Slots: 64, Prefill: Lognormal(0.2, 0.4), Decode: Lognormal(0.8, 0.3)}
	return []Scenario{
		{Name: "slot-bound", What: "four slots; eight clients wait for about a second", Service: plain, Ladder: ladder, TTFT: 0.6},
		{Name: "slot-bound, exponential", What: "two slots, exponential work, known in closed form", Ladder: []int{1, 2, 3, 4}, TTFT: 1.1,
			Service: Service{Slots: 2, Prefill: Always(0), Decode: Exponential(1)},
			Exact:   func(n int) float64 { return erlangTail(n-2, 2, 1.1) }},
		{Name: "KV-bound", What: "slots for all, cache for about four", Ladder: []int{1, 2, 3, 4, 6, 8}, TTFT: 0.6,
			Service: edit(func(s *Service) {
				s.Slots, s.Cache = 64, 4000
				s.Tokens = func(r *rand.Rand) int { return 500 + r.IntN(600) }
			})},
		{Name: "error-bound", What: "with more than four inside, 30 % fail", Ladder: ladder, TTFT: 2,
			Service: edit(func(s *Service) { s.Slots, s.ErrorAbove, s.ErrorShare = 64, 4, 0.3 })},
		{Name: "few errors", What: "with more than two inside, 2.5 % fail", Ladder: ladder, TTFT: 2,
			Service: edit(func(s *Service) { s.Slots, s.ErrorAbove, s.ErrorShare = 64, 2, 0.025 })},
		{Name: "rejecting", What: "refuses beyond six requests", Ladder: []int{1, 2, 4, 6, 8}, TTFT: 2,
			Service: edit(func(s *Service) { s.Room, s.Refusal = 6, 0.05 })},
		{Name: "no breach", What: "slots for all, a generous threshold", Service: flat, Ladder: ladder, TTFT: 2},
		{Name: "first step breach", What: "the threshold is below the service's own time", Service: plain, Ladder: ladder, TTFT: 0.15},
		{Name: "flat below the limit", What: "3.5 % over at every load", Service: flat, Ladder: ladder, TTFT: lognormalAt(0.2, 0.4, 0.035), Exact: constant(0.035)},
		{Name: "flat above the limit", What: "7 % over at every load", Service: flat, Ladder: ladder, TTFT: lognormalAt(0.2, 0.4, 0.07), Exact: constant(0.07)},
		{Name: "slow climb", What: "each further request slows all by 6 %", Ladder: []int{1, 2, 4, 6, 8, 12}, TTFT: 0.43,
			Service: Service{Slots: 64, Prefill: Lognormal(0.2, 0.35), Decode: Lognormal(0.8, 0.3), Slope: 0.06}},
		{Name: "heavy tail", What: "work with a long tail: one in twenty takes over seven times the median", Ladder: []int{2, 4, 5, 6, 8}, TTFT: 2.5,
			Service: edit(func(s *Service) { s.Decode = Lognormal(0.5, 1.2) })},
		{Name: "drifting", What: "slows down by half in the course of the run", Ladder: ladder, TTFT: 0.38, Service: plain,
			Drift: func(place float64) float64 { return 1 + 0.5*place }},
		{Name: "bursts", What: "slow for half a second in thirty: few requests, never one alone", Ladder: ladder, TTFT: 0.6,
			Service: edit(func(s *Service) { s.Slots, s.Calm, s.Spell, s.Slowdown = 64, 30, 0.6, 5 })},
		{Name: "bursts above the limit", What: "slow for a second in twelve", Ladder: ladder, TTFT: 0.6,
			Service: edit(func(s *Service) { s.Slots, s.Calm, s.Spell, s.Slowdown = 64, 11, 1, 5 })},
		{Name: "strong bursts", What: "slow for a second in six", Ladder: ladder, TTFT: 0.6,
			Service: edit(func(s *Service) { s.Slots, s.Calm, s.Spell, s.Slowdown = 64, 5, 1, 5 })},
		{Name: "warm-up cache", What: "the first 40 requests of the run are three times slower to begin", Ladder: ladder, TTFT: 0.6,
			Service: edit(func(s *Service) { s.Cold, s.ColdCost = 40, 3 })},
		{Name: "noisy neighbour", What: "a neighbour takes half of the machine for five seconds in twenty", Ladder: ladder, TTFT: 0.4,
			Service: edit(func(s *Service) { s.Slots, s.Calm, s.Spell, s.Slowdown = 64, 15, 5, 2 })},
		{Name: "rare neighbour", What: "the same for ten seconds in two minutes: rarer than rounds are long", Ladder: ladder, TTFT: 0.4, Outside: true,
			Service: edit(func(s *Service) { s.Slots, s.Calm, s.Spell, s.Slowdown = 64, 110, 10, 2 })},
	}
}

func constant(share float64) func(int) float64 { return func(int) float64 { return share } }

// erlangTail is P[T > t] for the sum of n exponential times of the given rate: what the last of n waiting
// requests waits until as many have ended. 0 without any.
func erlangTail(n int, rate, t float64) float64 {
	sum, term := 0.0, 1.0
	for i := range n {
		if i > 0 {
			term *= rate * t / float64(i)
		}
		sum += term
	}
	return math.Exp(-rate*t) * sum
}

// lognormalAt is the value that the given share of a lognormal distribution exceeds.
func lognormalAt(median, sigma, share float64) float64 {
	return median * math.Exp(sigma*math.Sqrt2*math.Erfinv(1-2*share))
}
