package figures

import (
	"math"
	"testing"
)

func TestWrite(t *testing.T) {
	for _, c := range []struct {
		v      float64
		digits int
		want   string
	}{
		{0, 3, "0"}, {math.Copysign(0, -1), 3, "0"}, {100, 2, "100"}, {1234.5, 2, "1234"}, {1024, 3, "1024"}, {99.96, 3, "100"}, {0.01234, 2, "0.012"},
		{-2.5, 3, "-2.5"}, {0.00000012, 3, "0"}, {-0.00000012, 3, "0"}, {1e9, 3, "1000000000"}, {math.NaN(), 3, "NaN"}, {math.Inf(1), 3, "+Inf"},
	} {
		if got := Write(c.v, c.digits); got != c.want {
			t.Errorf("%v with %d digits is %q, want %q", c.v, c.digits, got, c.want)
		}
	}
}
