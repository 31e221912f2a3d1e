package burnrate

import (
	"testing"
	"time"

	"firstbreach/internal/slo"
)

// Which pairs can fire: with a low target the fast ones can't, in a short period the slow ones don't
// matter.
func TestFires(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		period time.Duration
		target string
		want   [4]bool
	}{
		{30 * day, "99%", [4]bool{true, true, true, true}},
		{30 * day, "93%", [4]bool{false, true, true, true}},
		{30 * day, "50%", [4]bool{false, false, false, true}},
		{7 * day, "99%", [4]bool{true, true, false, false}},
	} {
		target, err := slo.ParseTarget(c.target)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range Pairs() {
			if got := p.Fires(c.period, target); got != c.want[i] {
				t.Errorf("%v %s: pair %d fires: %v", c.period, c.target, i, got)
			}
		}
	}
}
