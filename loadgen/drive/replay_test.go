package drive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// seconds are times since the beginning.
func seconds(s ...float64) (times []time.Duration) {
	for _, x := range s {
		times = append(times, time.Duration(x*float64(time.Second)))
	}
	return times
}

// A trace is replayed at its own times, whatever the answers do, each request with its own body; what
// comes while too many are in flight is dropped; and when it is over the step is.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := seconds(0, 0, 1, 4, 4, 4, 4, 9.5)
		rec := newTape()
		asked := make(chan int, 10)
		start := time.Now()
		sum, err := drive.Replay{Times: times, MaxInFlight: 3}.Drive(t.Context(), drive.Step{
			Warmup: 1, Bounds: plan.Step{Duration: time.Hour}, Recorder: rec, Sender: answering{1500 * time.Millisecond},
			Body: func(n int) []byte { asked <- n; return body(n) },
		})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "bodies", len(asked), len(times))
		equal(t, "requests", len(rec.requests), len(times))
		dropped := 0
		for _, q := range rec.requests {
			equal(t, "due", q.Scheduled.Sub(start), times[q.Slot])
			if q.Result.Outcome == wire.Dropped {
				dropped++
			}
		}
		equal(t, "dropped", dropped, 1)
		equal(t, "warm-up, then measured", []int{len(byWindow(rec, record.Warmup)), len(byWindow(rec, record.Measure)), len(byWindow(rec, record.Drain))}, []int{3, 5, 0})
		equal(t, "measured from and to", []time.Duration{sum.MeasureFrom.Sub(start), sum.MeasureTo.Sub(start), sum.Ended.Sub(start)}, seconds(4, 9.5, 11))
		equal(t, "stopped", sum.Stopped, "")
	})
}

func byWindow(rec *tape, w record.Window) (all []record.Request) {
	for _, q := range rec.requests {
		if q.Window == w {
			all = append(all, q)
		}
	}
	return all
}

// What the client sends late, because the server of the trace's burst holds it up or because it was slow
// itself, counts from when it was due. A burst's bodies are made before it, so that it isn't late for them.
func TestReplayMakesBodiesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := newTape()
		_, err := drive.Replay{Times: seconds(0, 5, 5, 5, 5, 6), MaxInFlight: 9}.Drive(t.Context(), drive.Step{
			Warmup: 1, Bounds: plan.Step{Duration: time.Hour}, Recorder: rec, Sender: answering{20 * time.Millisecond},
			Body: func(n int) []byte { time.Sleep(time.Second); return body(n) },
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range rec.requests {
			late := time.Duration(0)
			if q.Slot == 0 { // its body took a second, and nothing came before it
				late = time.Second
			}
			equal(t, "late", q.DispatchDelay(), late)
			equal(t, "TTFT", *q.Measured().TTFT, 20*time.Millisecond+late)
		}
	})
}

// A trace that ends before the warm-up, and one that is interrupted.
func TestReplayEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := drive.Step{Warmup: 5, Bounds: plan.Step{Duration: time.Hour}, Recorder: newTape(), Sender: answering{time.Second}, Body: body}
		sum, err := drive.Replay{Times: seconds(0, 1, 2), MaxInFlight: 9}.Drive(t.Context(), step)
		if err != nil || sum.Stopped != "there were no more requests before the warm-up of 5 was over" || !sum.MeasureFrom.IsZero() {
			t.Errorf("%+v, %v", sum, err)
		}
		abort := make(chan struct{})
		time.AfterFunc(90*time.Second, func() { close(abort) })
		step.Warmup, step.Abort, step.Recorder = 1, abort, newTape()
		long := make([]time.Duration, 200)
		for i := range long {
			long[i] = time.Duration(i) * time.Second
		}
		sum, err = drive.Replay{Times: long, MaxInFlight: 9}.Drive(t.Context(), step)
		if err != nil || sum.Stopped != drive.Interrupted || sum.Ended.Sub(sum.Started) < 90*time.Second || sum.Ended.Sub(sum.Started) > 92*time.Second {
			t.Errorf("%+v, %v", sum, err)
		}
		if _, err := (drive.Replay{MaxInFlight: 1}).Drive(t.Context(), step); err == nil {
			t.Error("a replay of nothing is driven")
		}
	})
}
