package slo

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestParseTarget(t *testing.T) {
	for _, c := range []struct{ in, text, ratio, bad string }{
		{"95%", "95%", "0.95", "0.05"},
		{"99.9 %", "99.9%", "0.999", "0.001"},
		{" 99.90% ", "99.9%", "0.999", "0.001"},
		{"099%", "99%", "0.99", "0.01"},
		{"90%", "90%", "0.9", "0.1"},
		{"50.0%", "50%", "0.5", "0.5"},
		{"5%", "5%", "0.05", "0.95"},
		{"0.5%", "0.5%", "0.005", "0.995"},
		{"99.9995%", "99.9995%", "0.999995", "0.000005"},
	} {
		got, err := ParseTarget(c.in)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if got.Text() != c.text || got.Ratio() != c.ratio || got.BadRatio() != c.bad {
			t.Errorf("%q: text %s, ratio %s, bad %s; want %s, %s, %s", c.in, got.Text(), got.Ratio(), got.BadRatio(), c.text, c.ratio, c.bad)
		}
	}
	for _, in := range []string{"", "95", "0.95", "0%", "0.0%", "100%", "100.0%", "100.1%", "250%", "-5%", "95%%", "1e1%", "x%", "9 5%", ".5%", "95.%"} {
		if got, err := ParseTarget(in); err == nil {
			t.Errorf("%q is taken as %s", in, got)
		}
	}
}

// The edge is where floats go wrong: 0.07 × 100 is 7.000000000000001 in binary, and 1 − 0.999 is
// more than 0.001.
func TestMetAtTheEdge(t *testing.T) {
	for _, c := range []struct {
		target      string
		good, total int64
		want        bool
	}{
		{"95%", 95, 100, true},
		{"95%", 94, 100, false},
		{"95%", 19, 20, true},
		{"99.9%", 999, 1000, true},
		{"99.9%", 998, 1000, false},
		{"99.9%", 999_000_000_000, 1_000_000_000_000, true},
		{"99.9%", 998_999_999_999, 1_000_000_000_000, false},
		{"7%", 7, 100, true},
		{"95%", 0, 0, false},
		{"95%", 1, 1, true},
	} {
		target, err := ParseTarget(c.target)
		if err != nil {
			t.Fatal(err)
		}
		if got := target.Met(c.good, c.total); got != c.want {
			t.Errorf("%s met by %d of %d: %v", c.target, c.good, c.total, got)
		}
	}
	if (Target{}).Met(1, 1) {
		t.Error("no target is met")
	}
}

// MaxBad is the greatest number of bad requests that Met accepts, and the three texts say the same.
func TestTargetAgreesWithItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{1,2}(\.[0-9]{1,6})?%`).Draw(t, "target")
		target, err := ParseTarget(text)
		if err != nil {
			t.Skip()
		}
		total := rapid.Int64Range(1, 1<<40).Draw(t, "total")
		bad := target.MaxBad(total)
		if !target.Met(total-bad, total) {
			t.Fatalf("%s: %d bad of %d are too many", target, bad, total)
		}
		if bad < total && target.Met(total-bad-1, total) {
			t.Fatalf("%s: %d bad of %d would do too", target, bad+1, total)
		}
		again, err := ParseTarget(target.Text())
		if err != nil || again != target {
			t.Fatalf("%s reads back as %v, %v", target, again, err)
		}
		allowed, ok := new(big.Rat).SetString(target.BadRatio())
		if !ok || new(big.Rat).Add(allowed, target.Rat()).Cmp(big.NewRat(1, 1)) != 0 {
			t.Fatalf("%s: ratio %s and budget %s don't add up to 1", target, target.Ratio(), target.BadRatio())
		}
	})
}
