package verdict

import (
	"math"
	"math/big"
	"testing"
)

// The least and greatest counts that decide, for an allowance of 5 % and of 1 %. −1: none.
func TestDecidingCounts(t *testing.T) {
	for _, c := range []struct{ n, ok95, breach95, ok99, breach99 int }{
		{20, -1, 4, -1, 2}, {40, -1, 5, -1, 3}, {58, -1, 7, -1, 3}, {59, 0, 7, -1, 3}, {60, 0, 7, -1, 3}, {100, 1, 10, -1, 4},
		{150, 2, 13, -1, 5}, {200, 4, 16, -1, 6}, {300, 8, 22, 0, 7}, {500, 16, 34, 1, 10}, {1000, 38, 63, 4, 16},
	} {
		for _, q := range []struct {
			a          float64
			ok, breach int
		}{{0.05, c.ok95, c.breach95}, {0.01, c.ok99, c.breach99}} {
			ok, breach := -1, -1
			for k := range c.n + 1 {
				if AtMost(float64(k), float64(c.n), q.a) <= Alpha {
					ok = k
				}
				if breach < 0 && AtLeast(float64(k), float64(c.n), q.a) <= Alpha {
					breach = k
				}
			}
			if ok != q.ok || breach != q.breach {
				t.Errorf("n=%d a=%v: ok if K <= %d, breach if K >= %d; want %d, %d", c.n, q.a, ok, breach, q.ok, q.breach)
			}
		}
	}
}

// The least n that can say ok with t requests over.
func TestLeastN(t *testing.T) {
	for _, c := range []struct {
		a    float64
		want []int
	}{{0.05, []int{59, 93, 124, 153}}, {0.01, []int{299, 473, 628, 773}}, {0.001, []int{2995}}} {
		for k, want := range c.want {
			n := k + 1
			for AtMost(float64(k), float64(n), c.a) > Alpha {
				n++
			}
			if n != want {
				t.Errorf("a=%v, %d over: %d requests, want %d", c.a, k, n, want)
			}
		}
	}
}

func TestTailsAgainstSums(t *testing.T) {
	const n, p = 30, 0.07
	pmf := func(k int) float64 {
		b := new(big.Int).Binomial(n, int64(k))
		f, _ := new(big.Float).SetInt(b).Float64()
		return f * math.Pow(p, float64(k)) * math.Pow(1-p, float64(n-k))
	}
	for k := range n + 1 {
		var below, above float64
		for i := range n + 1 {
			if i <= k {
				below += pmf(i)
			}
			if i >= k {
				above += pmf(i)
			}
		}
		if d := math.Abs(AtMost(float64(k), n, p) - below); d > 1e-12 {
			t.Errorf("P[X <= %d] off by %g", k, d)
		}
		if d := math.Abs(AtLeast(float64(k), n, p) - above); d > 1e-12 {
			t.Errorf("P[X >= %d] off by %g", k, d)
		}
	}
}

// The ends of the interval are where either tail holds 2.5 %.
func TestInterval(t *testing.T) {
	for _, c := range []struct{ k, n float64 }{{0, 59}, {1, 59}, {31, 300}, {10, 10}, {5, 20}, {3.7, 41.2}, {999, 100000}} {
		ci := ClopperPearson(c.k, c.n)
		if c.k == 0 && ci[0] != 0 || c.k > 0 && math.Abs(AtLeast(c.k, c.n, ci[0])-0.025) > 1e-9 {
			t.Errorf("%v of %v: lower end %v", c.k, c.n, ci[0])
		}
		if c.k == c.n && ci[1] != 1 || c.k < c.n && math.Abs(AtMost(c.k, c.n, ci[1])-0.025) > 1e-9 {
			t.Errorf("%v of %v: upper end %v", c.k, c.n, ci[1])
		}
	}
	if ci := ClopperPearson(0, 59); math.Abs(ci[1]-(1-math.Pow(0.025, 1./59))) > 1e-9 {
		t.Errorf("0 of 59: %v", ci)
	}
}

func TestDispersion(t *testing.T) {
	rounds := func(bad ...int64) []RoundCount {
		var rs []RoundCount
		for _, k := range bad {
			rs = append(rs, RoundCount{Bad: k, Total: 100})
		}
		return rs
	}
	for _, c := range []struct {
		rounds []RoundCount
		want   float64
	}{
		{rounds(10, 10, 10), 1}, // less than chance would: never under 1
		{rounds(0, 0, 0), 1},
		{rounds(100, 100, 100), 1},
		{rounds(7), 1},
		{rounds(0, 10, 20), 200. / 9 / 2}, // p = 0.1: χ² = 2·10²/(100·0.09), two degrees of freedom
	} {
		if got := dispersion(c.rounds, 0); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.rounds, got, c.want)
		}
	}
}

func TestMeanBound(t *testing.T) {
	rounds := []RoundCount{{Bad: 1, Total: 100}, {Bad: 2, Total: 100}, {Bad: 3, Total: 100}}
	if got, want := meanBound(rounds, 3, Alpha), 0.02+2.919986*0.01/math.Sqrt(3); math.Abs(got-want) > 1e-7 {
		t.Errorf("t(.95, 2): %v, want %v", got, want)
	}
	if got, want := meanBound(rounds, 5, Alpha), 0.02+2.131847*0.01/math.Sqrt(5); math.Abs(got-want) > 1e-7 {
		t.Errorf("t(.95, 4): %v, want %v", got, want)
	}
}

func TestHolm(t *testing.T) {
	for _, c := range []struct{ ps, want []float64 }{
		{nil, nil},
		{[]float64{0.03}, []float64{0.03}},
		{[]float64{0.04, 0.01, 0.03}, []float64{0.06, 0.03, 0.06}},
		{[]float64{0.6, 0.9}, []float64{1, 1}},
		{[]float64{0.02, 0.02}, []float64{0.04, 0.04}},
	} {
		got := Holm(c.ps)
		for i := range c.want {
			if math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("%v: %v, want %v", c.ps, got, c.want)
				break
			}
		}
	}
}

func TestIsotonic(t *testing.T) {
	for _, c := range []struct{ ys, ws, want []float64 }{
		{nil, nil, nil},
		{[]float64{1, 2, 3}, []float64{1, 1, 1}, []float64{1, 2, 3}},
		{[]float64{3, 2, 1}, []float64{1, 1, 1}, []float64{2, 2, 2}},
		{[]float64{1, 4, 2, 5}, []float64{1, 1, 3, 1}, []float64{1, 2.5, 2.5, 5}},
	} {
		got := isotonic(c.ys, c.ws)
		if len(got) != len(c.want) {
			t.Fatalf("%v: %v, want %v", c.ys, got, c.want)
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("%v: %v, want %v", c.ys, got, c.want)
			}
		}
	}
}
