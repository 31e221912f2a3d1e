package oracle

import (
	"math/rand/v2"

	"firstbreach/loadgen/wire"
)

// The objectives of every scenario, each with an allowance of 5 %.
const (
	ttft      = "ttft"
	success   = "success"
	target    = "95%"
	allowance = 0.05
)

// Shares are the true shares of bad requests at one concurrency, by objective.
type Shares map[string]float64

// Worst is the greatest of them: what decides whether the step breaks.
func (s Shares) Worst() float64 { return max(s[ttft], s[success]) }

// Truth gives the shares of a scenario at each concurrency of its ladder, from n requests of a service that
// has settled; exact where the scenario has a formula.
func (s Scenario) Truth(n int, seed uint64) map[int]Shares {
	all := map[int]Shares{}
	for i, level := range s.Ladder {
		if s.Exact != nil {
			all[level] = Shares{ttft: s.Exact(level)}
			continue
		}
		sum := Shares{}
		factors := s.factors(i)
		for j, f := range factors {
			one := s.longRun(level, f, n/len(factors), rand.New(rand.NewPCG(seed, uint64(1000*level+j))))
			for name, share := range one {
				sum[name] += share / float64(len(factors))
			}
		}
		all[level] = sum
	}
	return all
}

// factors are those of the drift at a step of the ladder, one for each round; a single 1 without drift.
func (s Scenario) factors(step int) []float64 {
	if s.Drift == nil {
		return []float64{1}
	}
	var f []float64
	for round := range s.rounds() {
		f = append(f, s.Drift(s.place(round, step)))
	}
	return f
}

// place is how far the run has come, from 0 to 1, at a step of the ladder in a round, both from 0.
func (s Scenario) place(round, step int) float64 {
	return (float64(round) + float64(step)/float64(len(s.Ladder))) / float64(s.rounds())
}

// longRun is the share over n requests of a closed loop that has settled.
func (s Scenario) longRun(clients int, factor float64, n int, rng *rand.Rand) Shares {
	c := &clock{}
	v := s.Service.start(c, rng)
	v.factor = factor
	settle := s.Cold + n/50
	seen, late, failed := 0, 0, 0
	var ask func()
	ask = func() {
		sent := c.now
		v.ask(func(a answer) {
			if seen++; seen > settle {
				switch {
				case a.outcome != wire.OK:
					failed++
				case a.first-sent > s.TTFT:
					late++
				}
			}
			ask()
		})
	}
	for range clients {
		ask()
	}
	for seen < n+settle {
		c.step()
	}
	total := float64(seen - settle)
	return Shares{ttft: float64(late+failed) / total, success: float64(failed) / total}
}
