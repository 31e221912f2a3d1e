package verdict

import (
	"math"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// Alpha is the error rate of each one-sided claim: of a breach where there is none, and of an ok
// where there is none.
const Alpha = 0.05

// AtLeast is P[Bin(n, p) ≥ k], for 0 < p < 1. k and n may be fractions, as counts divided by an
// overdispersion are. P[Bin(n,p) ≥ k] = I_p(k, n−k+1), the identity behind Clopper and Pearson,
// Biometrika 26 (1934).
func AtLeast(k, n, p float64) float64 {
	if k <= 0 {
		return 1
	}
	return mathext.RegIncBeta(k, n-k+1, p)
}

// AtMost is P[Bin(n, p) ≤ k].
func AtMost(k, n, p float64) float64 {
	if k >= n {
		return 1
	}
	return mathext.RegIncBeta(n-k, k+1, 1-p)
}

// ClopperPearson is the two-sided 95 % Clopper–Pearson interval of k/n.
func ClopperPearson(k, n float64) [2]float64 {
	const tail = 0.025
	ci := [2]float64{0, 1}
	if k > 0 {
		ci[0] = distuv.Beta{Alpha: k, Beta: n - k + 1}.Quantile(tail)
	}
	if k < n {
		ci[1] = distuv.Beta{Alpha: k + 1, Beta: n - k}.Quantile(1 - tail)
	}
	return ci
}

// dispersion is φ: Pearson's χ² of the rounds' counts about the pooled share, by its degrees of
// freedom, and at least 1. Requests of one round share batches and neighbours, so rounds differ
// more than independent requests would; dividing the counts by φ widens every bound accordingly.
// least is the least variance of a request to go by, 0 for that of the pooled share alone.
func dispersion(rounds []RoundCount, least float64) float64 {
	var bad, total float64
	for _, r := range rounds {
		bad += float64(r.Bad)
		total += float64(r.Total)
	}
	if len(rounds) < 2 || bad == 0 || bad == total {
		return 1
	}
	p := bad / total
	variance := math.Max(least, p*(1-p))
	var chi float64
	for _, r := range rounds {
		n := float64(r.Total)
		d := float64(r.Bad) - n*p
		chi += d * d / (n * variance)
	}
	return math.Max(1, chi/float64(len(rounds)-1))
}

// meanBound is the one-sided 1−alpha Student bound of the rounds' mean share, seen as rounds of
// equal weight, if there were count of them with the same spread.
func meanBound(rounds []RoundCount, count int, alpha float64) float64 {
	n := float64(len(rounds))
	var mean float64
	for _, r := range rounds {
		mean += float64(r.Bad) / float64(r.Total) / n
	}
	var squares float64
	for _, r := range rounds {
		d := float64(r.Bad)/float64(r.Total) - mean
		squares += d * d
	}
	if squares == 0 || len(rounds) < 2 {
		return mean
	}
	s := math.Sqrt(squares / (n - 1))
	t := distuv.StudentsT{Sigma: 1, Nu: float64(count - 1)}.Quantile(1 - alpha)
	return mean + t*s/math.Sqrt(float64(count))
}
