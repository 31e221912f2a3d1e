package verdict

import (
	"math"
	"slices"
)

// Holm adjusts p values for having been asked together, so that the chance of one false claim
// among all stays below the level of each (Holm, Scand. J. Statist. 6, 1979). The result is in
// the order of ps.
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ps[a] < ps[b]:
			return -1
		case ps[a] > ps[b]:
			return 1
		}
		return 0
	})
	adjusted := make([]float64, len(ps))
	var floor float64
	for rank, i := range order {
		floor = math.Max(floor, math.Min(1, ps[i]*float64(len(ps)-rank)))
		adjusted[i] = floor
	}
	return adjusted
}
