package drive_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// stalling answers at once, but for a stretch in which it does nothing at all.
type stalling struct {
	from, until time.Time
	service     time.Duration
	flight      atomic.Int64
}

func (s *stalling) Do(ctx context.Context, _ []byte) wire.Result {
	sent := time.Now()
	s.flight.Add(1)
	defer s.flight.Add(-1)
	if !sent.Before(s.from) && sent.Before(s.until) {
		time.Sleep(s.until.Sub(sent))
	}
	time.Sleep(s.service)
	took := time.Since(sent)
	return wire.Result{SentAt: sent, TTFT: &took, E2E: &took, End: took, Outcome: wire.OK}
}

// A server that stands still for 5 s once in a minute: a client that waits for its answers would see
// one slow request in six hundred. The fifty that were due meanwhile all waited, and all say so.
func TestNoCoordinatedOmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 10
		start := time.Now()
		server := &stalling{from: start.Add(20 * time.Second), until: start.Add(25 * time.Second), service: 50 * time.Millisecond}
		rec := newTape()
		_, err := drive.Open{Rate: rate, MaxInFlight: 1000}.Drive(t.Context(), drive.Step{
			Warmup: 1, Bounds: plan.Step{Duration: time.Minute}, Body: body, Recorder: rec, Sender: server,
		})
		if err != nil {
			t.Fatal(err)
		}
		slow, sum := 0, time.Duration(0)
		for _, q := range rec.requests {
			want := 50 * time.Millisecond
			if due := q.Scheduled; !due.Before(server.from) && due.Before(server.until) {
				want += server.until.Sub(due)
				slow++
				sum += server.until.Sub(due)
			}
			if got := *q.Measured().TTFT; got != want {
				t.Errorf("due at %s: waited %s, want %s", q.Scheduled.Sub(start), got, want)
			}
		}
		equal(t, "requests that waited", slow, 5*rate)
		equal(t, "what they waited together", sum, 127500*time.Millisecond) // 5.0 + 4.9 + … + 0.1
	})
}

// What the client itself does late counts from when it was due as well, and is in the dispatch delay.
func TestALateClientIsCountedFromTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		rec := newTape()
		slow := func(n int) []byte {
			if n == 5 {
				time.Sleep(1500 * time.Millisecond) // while this body is made nothing is sent
			}
			return body(n)
		}
		service := 20 * time.Millisecond
		_, err := drive.Open{Rate: 10, MaxInFlight: 100}.Drive(t.Context(), drive.Step{
			Warmup: 1, Bounds: plan.Step{Requests: 40}, Body: slow, Recorder: rec, Sender: answering{service},
		})
		if err != nil {
			t.Fatal(err)
		}
		late := 0
		for _, q := range rec.requests {
			due := q.Scheduled.Sub(start)
			want := service
			// The sixth body takes from 0.4 s to 1.9 s; its request was due at 0.5 s.
			if due >= 500*time.Millisecond && due < 1900*time.Millisecond {
				want += 1900*time.Millisecond - due
				late++
				equal(t, "dispatch delay", q.DispatchDelay(), 1900*time.Millisecond-due)
			}
			equal(t, "TTFT", *q.Measured().TTFT, want)
			equal(t, "end to end", *q.Measured().E2E, want)
			equal(t, "the earliest TTFT, without what the client was late", *q.Measured().TTFTMin, service)
			equal(t, "the client's own result", *q.Result.TTFT, service)
		}
		equal(t, "late requests", late, 14)
	})
}

// answering answers after a time.
type answering struct{ service time.Duration }

func (a answering) Do(context.Context, []byte) wire.Result {
	sent := time.Now()
	time.Sleep(a.service)
	return wire.Result{SentAt: sent, TTFT: &a.service, E2E: &a.service, End: a.service, Outcome: wire.OK}
}

// A rate of 10 with a service of 1 s needs 10 in flight; with 4, six of ten are dropped, and the
// schedule goes on.
func TestTheCapDropsWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := newTape()
		sum, err := drive.Open{Rate: 10, MaxInFlight: 4}.Drive(t.Context(), drive.Step{
			Warmup: 4, Bounds: plan.Step{Requests: 100}, Body: body, Recorder: rec, Sender: fake{service: 950 * time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := rec.counts()[record.Measure]
		equal(t, "measured", got[wire.OK]+got[wire.Dropped], 100)
		equal(t, "dropped", got[wire.Dropped], 60)
		equal(t, "measured for", sum.MeasureTo.Sub(sum.MeasureFrom), 10*time.Second)
		if rec.peak > 5 { // a dropped request is there for no time at all
			t.Errorf("%d in flight", rec.peak)
		}
		for _, q := range rec.requests {
			if q.Result.Outcome == wire.Dropped && (!q.Result.SentAt.IsZero() || q.DispatchDelay() != 0 || q.Occupancy() != 0) {
				t.Errorf("dropped, yet %+v", q)
			}
		}
	})
}

func TestDroppedRequestsStopAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := newTape()
		sum, err := drive.Open{Rate: 10, MaxInFlight: 1}.Drive(t.Context(), drive.Step{
			Warmup: 1, Bounds: plan.Step{Requests: 100}, Stop: plan.Stop{ErrorRatio: 0.5, After: 20},
			Body: body, Recorder: rec, Sender: fake{service: 10 * time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		if !sum.StopRule {
			t.Errorf("stopped by %q", sum.Stopped)
		}
	})
}

// schedule is when the requests of a step were due, from its beginning.
func schedule(t *testing.T, o drive.Open, n int) []time.Duration {
	t.Helper()
	var due []time.Duration
	synctest.Test(t, func(t *testing.T) {
		rec := newTape()
		start := time.Now()
		if _, err := o.Drive(t.Context(), drive.Step{Bounds: plan.Step{Requests: n}, Body: body, Recorder: rec, Sender: fake{service: time.Millisecond}}); err != nil {
			t.Fatal(err)
		}
		at := make([]time.Duration, n)
		for _, q := range rec.requests {
			if q.Slot < n {
				at[q.Slot] = q.Scheduled.Sub(start)
			}
			equal(t, "sent when due", q.Started, q.Scheduled)
		}
		due = at
	})
	return due
}

func TestConstantArrivals(t *testing.T) {
	for i, at := range schedule(t, drive.Open{Rate: 3, MaxInFlight: 9}, 10) {
		if want := time.Duration(float64(i) / 3 * float64(time.Second)); at != want {
			t.Errorf("request %d was due at %s, want %s", i, at, want)
		}
	}
}

// Poisson arrivals have exponential gaps of mean 1/rate: their standard deviation equals their mean,
// and the same seed gives the same times.
func TestPoissonArrivals(t *testing.T) {
	const n, rate = 4000, 8.0
	o := drive.Open{Rate: rate, Poisson: true, MaxInFlight: 100, Seed: [2]uint64{7, 1}}
	due := schedule(t, o, n)
	equal(t, "the same seed", schedule(t, o, n), due)
	other := o
	other.Seed[1]++
	if again := schedule(t, other, n); again[0] == due[0] {
		t.Error("another seed gave the same times")
	}
	var sum, squares float64
	last := time.Duration(0)
	over := 0
	for _, at := range due {
		gap := (at - last).Seconds()
		sum, squares = sum+gap, squares+gap*gap
		if gap > 1/rate {
			over++
		}
		last = at
	}
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean*rate-1) > 0.06 || math.Abs(deviation*rate-1) > 0.1 {
		t.Errorf("gaps of %.4f ± %.4f s at a rate of %v", mean, deviation, rate)
	}
	if share := float64(over) / n; math.Abs(share-math.Exp(-1)) > 0.03 {
		t.Errorf("%.3f of the gaps are longer than their mean, not 1/e", share)
	}
}

func TestAnOpenLoopIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2550*time.Millisecond)
		defer cancel()
		rec := newTape()
		sum, err := drive.Open{Rate: 2, MaxInFlight: 10}.Drive(ctx, drive.Step{
			Warmup: 1, Bounds: plan.Step{Requests: 100}, Grace: 5 * time.Second, Body: body, Recorder: rec,
			Sender: fake{service: 900 * time.Millisecond, hang: func(n int) bool { return n == 4 }},
		})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "stopped", sum.Stopped, drive.Interrupted)
		equal(t, "counts", rec.counts(), counts{record.Warmup: {wire.OK: 2}, record.Measure: {wire.OK: 3, wire.Aborted: 1}})
	})
}

func TestAnOpenLoopRefuses(t *testing.T) {
	for _, o := range []drive.Open{{Rate: 0, MaxInFlight: 1}, {Rate: -1, MaxInFlight: 1}, {Rate: 1}} {
		if _, err := o.Drive(t.Context(), drive.Step{Bounds: plan.Step{Requests: 1}}); err == nil {
			t.Errorf("%+v was driven", o)
		}
	}
}
