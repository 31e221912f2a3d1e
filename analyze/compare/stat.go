package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// stratum is one level of load: a value per round of each run.
type stratum struct{ a, b []float64 }

// vanElteren is the exact two-sided p value of the stratified rank-sum test: within each stratum every way to
// deal the values to the two runs is equally likely if they don't differ (van Elteren, Bull. Inst. Int. Stat.
// 37, 1960; the sum of rank sums, as strata of one run have the same rounds). Ties get mid-ranks.
func vanElteren(strata []stratum) float64 {
	dist := []float64{1} // of twice the sum of B's ranks
	var observed int
	for _, s := range strata {
		ranks := doubledRanks(append(slices.Clone(s.a), s.b...))
		for _, r := range ranks[len(s.a):] {
			observed += r
		}
		dist = convolve(dist, rankSums(ranks, len(s.b)))
	}
	var below, above float64
	for sum, p := range dist {
		if sum <= observed {
			below += p
		}
		if sum >= observed {
			above += p
		}
	}
	return math.Min(1, 2*math.Min(below, above))
}

// doubledRanks are twice the mid-ranks, which makes them whole numbers.
func doubledRanks(values []float64) []int {
	ranks := make([]int, len(values))
	for i, v := range values {
		less, same := 0, 0
		for _, w := range values {
			if w < v {
				less++
			} else if w == v {
				same++
			}
		}
		ranks[i] = 2*less + same + 1
	}
	return ranks
}

// rankSums is the distribution of the sum of n of the ranks, drawn without putting back.
func rankSums(ranks []int, n int) []float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	ways := make([][]float64, n+1)
	for i := range ways {
		ways[i] = make([]float64, total+1)
	}
	ways[0][0] = 1
	for _, r := range ranks {
		for k := n; k >= 1; k-- {
			for sum := total; sum >= r; sum-- {
				ways[k][sum] += ways[k-1][sum-r]
			}
		}
	}
	var all float64
	for _, w := range ways[n] {
		all += w
	}
	for i := range ways[n] {
		ways[n][i] /= all
	}
	return ways[n]
}

func convolve(a, b []float64) []float64 {
	out := make([]float64, len(a)+len(b)-1)
	for i, x := range a {
		if x == 0 {
			continue
		}
		for j, y := range b {
			out[i+j] += x * y
		}
	}
	return out
}

// logRatio is the pooled ln(B/A) over the strata with its two-sided 95 % Student interval; the spread is that of
// the rounds within runs and strata. ok is false without spread to tell it from.
func logRatio(strata []stratum) (effect float64, ci [2]float64, ok bool) {
	var weights, sum, squares, df float64
	for _, s := range strata {
		ma, qa := logs(s.a)
		mb, qb := logs(s.b)
		na, nb := float64(len(s.a)), float64(len(s.b))
		w := na * nb / (na + nb)
		weights += w
		sum += w * (mb - ma)
		squares += qa + qb
		df += na + nb - 2
	}
	if weights == 0 || df < 1 {
		return 0, ci, false
	}
	effect = sum / weights
	half := distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(0.975) * math.Sqrt(squares/df/weights)
	return effect, [2]float64{effect - half, effect + half}, true
}

// logs are the mean of the logarithms and the sum of squares about it.
func logs(values []float64) (mean, squares float64) {
	for _, v := range values {
		mean += math.Log(v) / float64(len(values))
	}
	for _, v := range values {
		d := math.Log(v) - mean
		squares += d * d
	}
	return mean, squares
}

// table is one stratum of counts, divided by how much more the rounds differ than chance makes them.
type table struct{ badA, nA, badB, nB float64 }

// mantelHaenszel is the Cochran–Mantel–Haenszel test without continuity correction (p), and the common risk
// difference B − A with its 95 % interval (Sato, Greenland and Robins, Biometrics 45, 1989).
func mantelHaenszel(tables []table) (p, diff float64, ci [2]float64, ok bool) {
	var excess, variance, weights, sum, sp, sq, allA, allB float64
	for _, t := range tables {
		n := t.nA + t.nB
		if t.nA < 1 || t.nB < 1 || n < 2 {
			continue
		}
		bad := t.badA + t.badB
		excess += t.badB - bad*t.nB/n
		variance += t.nA * t.nB * bad * (n - bad) / (n * n * (n - 1))
		allA, allB = allA+t.nA, allB+t.nB
		w := t.nA * t.nB / n
		weights += w
		sum += w * (t.badB/t.nB - t.badA/t.nA)
		sp += (t.nB*t.nB*t.badA - t.nA*t.nA*t.badB + t.nA*t.nB*(t.nA-t.nB)/2) / (n * n)
		sq += (t.badB*(t.nA-t.badA) + t.badA*(t.nB-t.badB)) / (2 * n)
	}
	if weights == 0 {
		return 1, 0, ci, false
	}
	diff = sum / weights
	half := 1.959964 * math.Sqrt(math.Max(0, diff*sp+sq)) / weights
	// The formula has no width where nobody missed anything. The interval is never narrower than the exact bound on
	// 0 of n (−ln 0.025)/n of the smaller run.
	half = math.Max(half, -math.Log(0.025)/math.Min(allA, allB))
	ci = [2]float64{diff - half, diff + half}
	if variance == 0 {
		return 1, diff, ci, true
	}
	return math.Erfc(math.Abs(excess) / math.Sqrt(variance) / math.Sqrt2), diff, ci, true
}
