package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// What a draw is for: draws of different kinds don't depend on each other.
const (
	prefillDraw = 1
	stepDraw    = 2
)

// jitter returns the factor on the number-th service time of a kind: lognormal with mean 1. It depends
// on nothing but the seed, the kind and the number.
func jitter(cfg Config, kind, number uint64) float64 {
	if cfg.Jitter == 0 {
		return 1
	}
	r := rand.New(rand.NewPCG(cfg.Seed, kind<<56|number))
	return math.Exp(cfg.Jitter*r.NormFloat64() - cfg.Jitter*cfg.Jitter/2)
}

func scale(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}
