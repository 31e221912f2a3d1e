package record

import (
	"slices"
	"testing"
	"time"

	"firstbreach/loadgen/wire"
)

func TestThresholdsAreEdges(t *testing.T) {
	tests := map[string]struct {
		thresholds []time.Duration
		want       []float64
	}{
		"none":                {nil, []float64{1, 2}},
		"between":             {[]time.Duration{1500 * time.Millisecond}, []float64{1, 1.5, 2}},
		"one that is there":   {[]time.Duration{time.Second}, []float64{1, 2}},
		"two of them":         {[]time.Duration{1700 * time.Millisecond, 300 * time.Millisecond}, []float64{.3, 1, 1.7, 2}},
		"at the last edge":    {[]time.Duration{2 * time.Second}, []float64{1, 2, 4}},
		"beyond every edge":   {[]time.Duration{10 * time.Second}, []float64{1, 2, 10, 20}},
		"odd in binary, 0.7s": {[]time.Duration{700 * time.Millisecond}, []float64{.7, 1, 2}},
	}
	for name, tc := range tests {
		if got := withThresholds([]float64{1, 2}, tc.thresholds); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
	for _, edges := range [][]float64{ttftEdges(), durationEdges(), tokenEdges(), dispatchEdges()} {
		if !slices.IsSorted(edges) || len(edges) > 25 {
			t.Errorf("%d edges, sorted: %v", len(edges), slices.IsSorted(edges))
		}
	}
}

// The progress line's quantile is within its 5 %, and never below the truth.
func TestSketch(t *testing.T) {
	var s sketch
	if got := s.quantile(0.95); got != 0 {
		t.Errorf("an empty sketch has a quantile of %v", got)
	}
	for i := 1; i <= 1000; i++ {
		s.add(time.Duration(i) * time.Millisecond)
	}
	if got, truth := s.quantile(0.95), 950*time.Millisecond; got < truth || float64(got) > 1.06*float64(truth) {
		t.Errorf("P95 of 1..1000 ms is %v", got)
	}
	s.add(24 * time.Hour) // beyond the last bucket
	s.add(0)
}

// A request that the client never got onto a connection has no dial time to take off twice.
func TestRequestTimes(t *testing.T) {
	at := time.Unix(1000, 0)
	after := func(ms int) time.Time { return at.Add(time.Duration(ms) * time.Millisecond) }
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	tests := map[string]struct {
		request             Request
		occupancy, dispatch time.Duration
	}{
		"a new connection":          {Request{Scheduled: at, Started: after(1), Returned: after(111), Result: wire.Result{SentAt: after(11), Dial: ms(10), End: ms(100)}}, ms(110), ms(1)},
		"a connection used again":   {Request{Scheduled: at, Started: after(1), Returned: after(103), Result: wire.Result{SentAt: after(3), End: ms(100)}}, ms(102), ms(3)},
		"never sent":                {Request{Scheduled: at, Started: after(1), Returned: after(51), Result: wire.Result{SentAt: after(1), Dial: ms(50), End: ms(50)}}, ms(50), ms(1)},
		"never sent, and no stamps": {Request{Scheduled: at, Started: after(1), Returned: after(51)}, ms(50), ms(1)},
	}
	for name, tc := range tests {
		if got := tc.request.Occupancy(); got != tc.occupancy {
			t.Errorf("%s: occupancy %v, want %v", name, got, tc.occupancy)
		}
		if got := tc.request.DispatchDelay(); got != tc.dispatch {
			t.Errorf("%s: dispatch delay %v, want %v", name, got, tc.dispatch)
		}
	}
}
