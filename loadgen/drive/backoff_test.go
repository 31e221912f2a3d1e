package drive_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/internal/level"
	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// driven drives a shape for ten seconds and returns what was recorded.
func driven(t *testing.T, shape drive.Shape, sender drive.Sender) *tape {
	t.Helper()
	rec := newTape()
	_, err := shape.Drive(t.Context(), drive.Step{Bounds: plan.Step{Duration: 10 * time.Second}, Body: body, Recorder: rec, Sender: sender})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// pauses are those between two requests of a slot, as the requests were due.
func pauses(rec *tape, slot int) (ps []time.Duration) {
	var last record.Request
	for _, q := range rec.requests {
		if q.Slot != slot {
			continue
		}
		if !last.Returned.IsZero() {
			ps = append(ps, q.Scheduled.Sub(last.Returned))
		}
		last = q
	}
	return ps
}

var refusing = fake{service: time.Millisecond, outcome: func(int) wire.Outcome { return wire.Rejected }}

// A target that refuses at once: the first two requests of a slot come at once, and from then on the
// pause doubles from 10 ms to a second, of which between a half and the whole is drawn.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := driven(t, drive.Closed{Concurrency: 2, Seed: [2]uint64{7, 8}}, refusing)
		for slot := range 2 {
			ps := pauses(rec, slot)
			most := []time.Duration{0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000}
			for i, p := range ps {
				limit := most[min(i, len(most)-1)] * time.Millisecond
				if p < limit/2 || p > limit {
					t.Errorf("slot %d: pause %d is %s, not within half of %s", slot, i+1, p, limit)
				}
			}
			if len(ps) < 15 || len(ps) > 25 {
				t.Errorf("slot %d sent %d requests in 10 s", slot, len(ps)+1)
			}
		}
		if slices.Equal(pauses(rec, 0), pauses(rec, 1)) {
			t.Error("both slots draw the same pauses: they come back together")
		}
		for _, q := range rec.requests {
			if q.DispatchDelay() > 0 {
				t.Fatalf("the pause counts as lateness of the client: %s", q.DispatchDelay())
			}
		}
		if all := rec.backoff + rec.integral[record.Warmup] + rec.integral[record.Measure]; all < 19900*time.Millisecond || all > 20*time.Second {
			t.Errorf("two slots were in flight or backing off for %s of 20 s", all)
		}
		if rec.backing != 0 {
			t.Errorf("%d slots back off after the end", rec.backing)
		}
	})
}

// The same seed draws the same pauses.
func TestBackOffIsSeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(seed uint64) []time.Duration {
			return pauses(driven(t, drive.Closed{Concurrency: 1, Seed: [2]uint64{seed, 1}}, refusing), 0)
		}
		first := run(1)
		equal(t, "the same seed", run(1), first)
		if slices.Equal(run(2), first) {
			t.Error("another seed draws the same pauses")
		}
	})
}

// Only failures that are fast, and come one after the other, are a reason to back off.
func TestNoBackOff(t *testing.T) {
	every := func(n int, bad wire.Outcome) func(int) wire.Outcome {
		return func(i int) wire.Outcome {
			if i%n == n-1 {
				return bad
			}
			return wire.OK
		}
	}
	for name, sender := range map[string]fake{
		"every other request fails": {service: time.Millisecond, outcome: every(2, wire.ServerError)},
		"all fail after a while":    {service: 100 * time.Millisecond, outcome: every(1, wire.Rejected)},
		"all are answered":          {service: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := driven(t, drive.Closed{Concurrency: 1}, sender)
				if i := slices.IndexFunc(pauses(rec, 0), func(p time.Duration) bool { return p != 0 }); i >= 0 || rec.backoff != 0 {
					t.Errorf("the slot paused before request %d; %s in all", i+2, rec.backoff)
				}
			})
		})
	}
}

// After one success a slot is at the beginning of the back-off again.
func TestBackOffEndsWithASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sender := fake{service: time.Millisecond, outcome: func(n int) wire.Outcome {
			if n == 5 {
				return wire.OK
			}
			return wire.Transport
		}}
		ps := pauses(driven(t, drive.Closed{Concurrency: 1}, sender), 0)
		// After request 0 none, after 1 to 4 up to 80 ms; after 5, which is answered, and 6 none.
		for i, most := range []time.Duration{0, 10, 20, 40, 80, 0, 0, 10, 20} {
			if most *= time.Millisecond; ps[i] < most/2 || ps[i] > most {
				t.Errorf("pause %d: %s, not within half of %s", i+1, ps[i], most)
			}
		}
	})
}

// A fluctuating closed loop backs off too, and an interruption doesn't wait for the pause.
func TestBackOffOfAFluctuation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := driven(t, drive.Fluctuate{Curve: level.Curve{Shape: level.Square, Low: 1, High: 2, Period: 4}}, refusing)
		if n := len(rec.requests); n < 15 || n > 60 {
			t.Errorf("%d requests in 10 s", n)
		}
	})
}
