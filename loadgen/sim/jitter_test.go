package sim

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// The factor has mean 1 and the tail of a lognormal, also over small windows of consecutive numbers.
func TestJitterDistribution(t *testing.T) {
	for _, seed := range []uint64{1, 2, 77} {
		cfg := Config{Jitter: 0.3, Seed: seed}
		const n = 50000
		sum, over := 0.0, 0
		var windows []float64                    // exceedances among each 250 numbers
		limit := math.Exp(0.3*1.6448536 - 0.045) // its 95th percentile
		for i := range n {
			if i%250 == 0 {
				windows = append(windows, 0)
			}
			f := jitter(cfg, prefillDraw, uint64(i))
			sum += f
			if f > limit {
				over++
				windows[len(windows)-1]++
			}
		}
		if mean := sum / n; math.Abs(mean-1) > 0.005 {
			t.Errorf("seed %d: mean %.4f, want 1", seed, mean)
		}
		if share := float64(over) / n; math.Abs(share-0.05) > 0.004 {
			t.Errorf("seed %d: %.4f over the 95th percentile", seed, share)
		}
		// Independent draws: the counts of the windows are binomial, with variance 250·0.05·0.95.
		if v := stat.Variance(windows, nil); v < 8.5 || v > 15.5 {
			t.Errorf("seed %d: variance of the windows' counts %.1f, want 11.9", seed, v)
		}
		t.Log(windows[:12])
	}
}

func TestJitterDependsOnSeedKindAndNumberOnly(t *testing.T) {
	cfg := Config{Jitter: 0.3, Seed: 5}
	a := jitter(cfg, prefillDraw, 9)
	if b := jitter(cfg, prefillDraw, 9); a != b {
		t.Errorf("the same draw gave %g and %g", a, b)
	}
	other := cfg
	other.Seed = 6
	if a == jitter(cfg, stepDraw, 9) || a == jitter(cfg, prefillDraw, 10) || a == jitter(other, prefillDraw, 9) {
		t.Error("different draws gave the same factor")
	}
	if f := jitter(Config{}, prefillDraw, 1); f != 1 {
		t.Errorf("without jitter the factor is %g, want 1", f)
	}
}
