package drive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/internal/level"
	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// flightAt is how many requests were in flight at a time since measuring began.
func flightAt(rec *tape, at time.Duration) int {
	n := 0
	for _, q := range rec.requests {
		t := rec.start.Add(rec.at[record.Measure] + at)
		if !q.Started.After(t) && q.Returned.After(t) {
			n++
		}
	}
	return n
}

func TestFluctuatingClosedLoop(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		curve  level.Curve
		flight map[time.Duration]int
	}{
		"square": {level.Curve{Shape: level.Square, Low: 2, High: 5, Period: 10},
			map[time.Duration]int{s: 2, 4950 * time.Millisecond: 2, 5500 * time.Millisecond: 5, 9900 * time.Millisecond: 5, 11 * s: 2, 16 * s: 5}},
		"spike": {level.Curve{Shape: level.Spike, Low: 1, High: 8, At: 6, For: 3},
			map[time.Duration]int{s: 1, 5900 * time.Millisecond: 1, 6500 * time.Millisecond: 8, 8900 * time.Millisecond: 8, 10 * s: 1, 19 * s: 1}},
		"sine": {level.Curve{Shape: level.Sine, Low: 1, High: 5, Period: 8},
			map[time.Duration]int{100 * time.Millisecond: 1, 2100 * time.Millisecond: 3, 4 * s: 5, 8100 * time.Millisecond: 1, 12 * s: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := newTape()
				sum, err := drive.Fluctuate{Curve: tc.curve}.Drive(t.Context(), drive.Step{
					Warmup: int(tc.curve.Low), Bounds: plan.Step{Duration: 20 * s}, Body: body, Recorder: rec, Sender: fake{service: 90 * time.Millisecond},
				})
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "measured for", sum.MeasureTo.Sub(sum.MeasureFrom), 20*s)
				for at, want := range tc.flight {
					if got := flightAt(rec, at); got != want {
						t.Errorf("at %s %d are in flight, want %d", at, got, want)
					}
				}
			})
		})
	}
}

// The rate of an open loop follows the curve: a constant rate of 2 with a spike of 20 for 3 s sends 6
// requests in the 3 s before it, 60 in it and 6 after.
func TestFluctuatingOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := newTape()
		curve := level.Curve{Shape: level.Spike, Low: 2, High: 20, At: 6, For: 3, PerSecond: true}
		_, err := drive.Fluctuate{Curve: curve, MaxInFlight: 100}.Drive(t.Context(), drive.Step{
			Warmup: 1, Bounds: plan.Step{Duration: 12 * time.Second}, Body: body, Recorder: rec, Sender: fake{service: 20 * time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		begun := rec.start.Add(rec.at[record.Measure])
		due := map[string]int{}
		for _, q := range rec.requests {
			switch at := q.Scheduled.Sub(begun); {
			case at < 3*time.Second:
			case at < 6*time.Second:
				due["before"]++
			case at < 9*time.Second:
				due["in it"]++
			case at < 12*time.Second:
				due["after"]++
			}
		}
		for part, want := range map[string]int{"before": 6, "in it": 60, "after": 6} {
			if got := due[part]; got < want-1 || got > want+1 {
				t.Errorf("%s: %d requests were due, want %d", part, got, want)
			}
		}
	})
}

func TestFluctuateRefuses(t *testing.T) {
	for _, f := range []drive.Fluctuate{
		{}, {Curve: level.Curve{Shape: level.Square, Low: 4, High: 2, Period: 1}}, {Curve: level.Curve{Shape: level.Square, Low: 0, High: 2, Period: 1}},
		{Curve: level.Curve{Shape: level.Square, Low: 2, High: 2, Period: 1}},
	} {
		if _, err := f.Drive(t.Context(), drive.Step{Bounds: plan.Step{Duration: time.Second}}); err == nil {
			t.Errorf("%+v was driven", f)
		}
	}
	c := level.Curve{Shape: level.Square, Low: 1, High: 2, Period: 1}
	if _, err := (drive.Fluctuate{Curve: c}).Drive(t.Context(), drive.Step{Bounds: plan.Step{Requests: 1}}); err == nil {
		t.Error("a fluctuation without a duration was driven")
	}
}
