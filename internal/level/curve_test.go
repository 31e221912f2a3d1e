package level_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"firstbreach/internal/level"
)

func TestCurves(t *testing.T) {
	square := level.Curve{Shape: level.Square, Low: 2, High: 8, Period: 10}
	spike := level.Curve{Shape: level.Spike, Low: 1, High: 16, At: 4, For: 2}
	sine := level.Curve{Shape: level.Sine, Low: 1, High: 5, Period: 8, PerSecond: true}
	for name, tc := range map[string]struct {
		curve level.Curve
		at    map[float64]float64
		mean  float64 // over 20 s, or 16 of the sine
	}{
		"square": {square, map[float64]float64{-1: 2, 0: 2, 4.9: 2, 5: 8, 9.9: 8, 10: 2, 15: 8}, 5},
		"spike":  {spike, map[float64]float64{0: 1, 3.9: 1, 4: 16, 5.9: 16, 6: 1, 100: 1}, 2.5},
		"sine":   {sine, map[float64]float64{-1: 1, 0: 1, 2: 3, 4: 5, 6: 3, 8: 1}, 3},
	} {
		for at, want := range tc.at {
			if got := tc.curve.Value(at); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s at %v: %v, want %v", name, at, got, want)
			}
		}
		over := 20.0
		if tc.curve.Shape == level.Sine {
			over = 16
		}
		if got := tc.curve.Mean(over); math.Abs(got-tc.mean) > 1e-6 {
			t.Errorf("%s: mean %v, want %v", name, got, tc.mean)
		}
	}
	want := []level.Stretch{{0, 5, false}, {5, 10, true}, {10, 15, false}, {15, 17, true}}
	if d := cmp.Diff(want, square.Stretches(17)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]level.Stretch{{0, 4, false}, {4, 6, true}, {6, 9, false}}, spike.Stretches(9)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]level.Stretch{{0, 1, false}, {3, 5, true}, {7, 9, false}, {11, 12, true}}, sine.Stretches(12)); d != "" {
		t.Error(d)
	}
	if low, high := sine.Levels(); low.String() != "1/s" || high.String() != "5/s" {
		t.Errorf("%s to %s", low, high)
	}
}
