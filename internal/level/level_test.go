package level_test

import (
	"slices"
	"strconv"
	"testing"

	"firstbreach/internal/level"
)

func TestText(t *testing.T) {
	tests := []struct {
		level       level.Level
		text, words string
	}{
		{level.Level{Concurrency: 8}, "8", "concurrency 8"},
		{level.Level{Rate: 2.5}, "2.5/s", "rate 2.5/s"},
		{level.Level{Rate: 40}, "40/s", "rate 40/s"},
		{level.Level{Rate: 0.001}, "0.001/s", "rate 0.001/s"},
		{level.Level{}, "0", "concurrency 0"},
	}
	for _, tc := range tests {
		if got := tc.level.String(); got != tc.text {
			t.Errorf("%#v reads %q, want %q", tc.level, got, tc.text)
		}
		if got := tc.level.Words(); got != tc.words {
			t.Errorf("%#v reads %q, want %q", tc.level, got, tc.words)
		}
	}
	rates := level.Ladder(nil, []float64{0.5, 1, 2})
	if got := level.WordsOf(rates); got != "rates 0.5/s, 1/s and 2/s" {
		t.Error(got)
	}
	if got := level.WordsOf(level.Ladder([]int{1, 2}, nil)); got != "concurrencies 1 and 2" {
		t.Error(got)
	}
}

func TestOrder(t *testing.T) {
	ls := level.Ladder([]int{8, 1}, []float64{10, 2.5})
	slices.SortFunc(ls, level.Level.Compare)
	if got := level.List(ls); got != "1, 8, 2.5/s and 10/s" {
		t.Error(got)
	}
}

// The label of a rate is read back as the same number, whatever it is.
func TestFormatRateIsExact(t *testing.T) {
	for _, r := range []float64{0.1, 1.0 / 3, 1e-3, 999.999, 12345.678901} {
		if back, err := strconv.ParseFloat(level.FormatRate(r), 64); err != nil || back != r {
			t.Errorf("%v became %v (%v)", r, back, err)
		}
	}
}
