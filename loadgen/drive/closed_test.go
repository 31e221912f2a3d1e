package drive_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake answers every request after a time, with an outcome that it is told by the request's body.
type fake struct {
	service time.Duration
	outcome func(n int) wire.Outcome
	hang    func(n int) bool
}

func (f fake) Do(ctx context.Context, body []byte) wire.Result {
	start := time.Now()
	n := int(body[0])
	took := f.service
	if f.hang != nil && f.hang(n) {
		took = time.Hour
	}
	select {
	case <-ctx.Done():
		return wire.Result{SentAt: start, End: time.Since(start), Outcome: wire.Aborted}
	case <-time.After(took):
	}
	o := wire.OK
	if f.outcome != nil {
		o = f.outcome(n)
	}
	return wire.Result{SentAt: start, End: time.Since(start), Outcome: o}
}

// tape is a Recorder that keeps everything, and the integral of what was in flight by window.
type tape struct {
	mu       sync.Mutex
	start    time.Time
	window   record.Window
	at       map[record.Window]time.Duration // since start
	flight   int
	peak     int
	backing  int           // slots that back off
	backoff  time.Duration // its integral
	last     time.Time
	integral map[record.Window]time.Duration
	requests []record.Request
	fail     error
}

func newTape() *tape {
	return &tape{at: map[record.Window]time.Duration{}, integral: map[record.Window]time.Duration{}}
}

func (t *tape) tick(now time.Time) {
	if t.flight > 0 {
		t.integral[t.window] += now.Sub(t.last) * time.Duration(t.flight)
	}
	if t.backing > 0 {
		t.backoff += now.Sub(t.last) * time.Duration(t.backing)
	}
	t.last = now
}

func (t *tape) Enter(w record.Window, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tick(now)
	if w == record.Warmup {
		t.start = now
	}
	t.window, t.at[w] = w, now.Sub(t.start)
}

func (t *tape) Sent(_ int, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tick(now)
	t.flight++
	t.peak = max(t.peak, t.flight)
}

func (t *tape) Returned(_ int, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tick(now)
	t.flight--
}

func (t *tape) BackingOff(_, slots int, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tick(now)
	t.backing += slots
}

func (t *tape) Record(q record.Request) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = append(t.requests, q)
	return t.fail
}

// counts is the number of requests by window and outcome.
func (t *tape) counts() map[record.Window]map[wire.Outcome]int {
	out := map[record.Window]map[wire.Outcome]int{}
	for _, q := range t.requests {
		if out[q.Window] == nil {
			out[q.Window] = map[wire.Outcome]int{}
		}
		out[q.Window][q.Result.Outcome]++
	}
	return out
}

func body(n int) []byte { return []byte{byte(n)} }

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

type counts = map[record.Window]map[wire.Outcome]int

func TestClosedLoop(t *testing.T) {
	const s = time.Second
	tests := map[string]struct {
		closed   drive.Closed
		step     drive.Step
		sender   fake
		counts   counts
		at       map[record.Window]time.Duration
		integral map[record.Window]time.Duration
		ended    time.Duration
		stopped  string
		rule     bool
	}{
		"one slot measures what was asked and needs no drain": {
			closed:   drive.Closed{Concurrency: 1},
			step:     drive.Step{Warmup: 1, Bounds: plan.Step{Requests: 3}},
			sender:   fake{service: s},
			counts:   counts{record.Warmup: {wire.OK: 1}, record.Measure: {wire.OK: 3}},
			at:       map[record.Window]time.Duration{record.Warmup: 0, record.Measure: s, record.Drain: 4 * s},
			integral: map[record.Window]time.Duration{record.Warmup: s, record.Measure: 3 * s},
			ended:    4 * s,
		},
		"a minimum duration goes on measuring": {
			closed:   drive.Closed{Concurrency: 1},
			step:     drive.Step{Warmup: 1, Bounds: plan.Step{Requests: 3, MinDuration: 5500 * time.Millisecond}},
			sender:   fake{service: s},
			counts:   counts{record.Warmup: {wire.OK: 1}, record.Measure: {wire.OK: 6}},
			at:       map[record.Window]time.Duration{record.Warmup: 0, record.Measure: s, record.Drain: 7 * s},
			integral: map[record.Window]time.Duration{record.Warmup: s, record.Measure: 6 * s},
			ended:    7 * s,
		},
		// Slots start at 0, 1, 2 and 3 s with 4 s of service. The fourth request ends at 7 s: from
		// then on they are measured, the eighth of them starts at 14 s, and the next one, at 15 s,
		// is the drain's. The last measured one ends at 18 s; the drain's end at 19, 20 and 21 s.
		"slots start spread and the drain keeps the load up": {
			closed: drive.Closed{Concurrency: 4, Spread: 4 * s},
			step:   drive.Step{Warmup: 4, Bounds: plan.Step{Requests: 8}},
			sender: fake{service: 4 * s},
			counts: counts{record.Warmup: {wire.OK: 7}, record.Measure: {wire.OK: 8}, record.Drain: {wire.OK: 3}},
			at:     map[record.Window]time.Duration{record.Warmup: 0, record.Measure: 7 * s, record.Drain: 15 * s},
			integral: map[record.Window]time.Duration{
				record.Warmup:  (0+1+2+3)*s + 4*4*s,
				record.Measure: 4 * 8 * s,
				record.Drain:   4*3*s + 3*s + 2*s + s,
			},
			ended: 21 * s,
		},
		// Slots start at 0 and 0.5 s; measured from 1.5 s to 4.75 s. The drain's one request starts
		// at 5 s, because the last measured one is there until 5.5 s.
		"a fixed duration": {
			closed:   drive.Closed{Concurrency: 2, Spread: s},
			step:     drive.Step{Warmup: 2, Bounds: plan.Step{Duration: 3250 * time.Millisecond}},
			sender:   fake{service: s},
			counts:   counts{record.Warmup: {wire.OK: 3}, record.Measure: {wire.OK: 7}, record.Drain: {wire.OK: 1}},
			at:       map[record.Window]time.Duration{record.Warmup: 0, record.Measure: 1500 * time.Millisecond, record.Drain: 4750 * time.Millisecond},
			integral: map[record.Window]time.Duration{record.Warmup: 2500 * time.Millisecond, record.Measure: 6500 * time.Millisecond, record.Drain: 2 * s},
			ended:    6 * s,
		},
		"a maximum duration cuts the measuring": {
			closed:   drive.Closed{Concurrency: 1},
			step:     drive.Step{Warmup: 1, Bounds: plan.Step{Requests: 100, MaxDuration: 3500 * time.Millisecond}},
			sender:   fake{service: s},
			counts:   counts{record.Warmup: {wire.OK: 1}, record.Measure: {wire.OK: 3}},
			at:       map[record.Window]time.Duration{record.Warmup: 0, record.Measure: s, record.Drain: 3500 * time.Millisecond},
			integral: map[record.Window]time.Duration{record.Warmup: s, record.Measure: 2500 * time.Millisecond, record.Drain: 500 * time.Millisecond},
			ended:    4 * s,
			stopped:  "max_duration: 3 measured requests sent in 3.5s",
		},
		"a maximum duration in the warm-up measures nothing": {
			closed:   drive.Closed{Concurrency: 2},
			step:     drive.Step{Warmup: 2, Bounds: plan.Step{Requests: 100, MaxDuration: s}},
			sender:   fake{service: 3 * s},
			counts:   counts{record.Warmup: {wire.OK: 2}},
			at:       map[record.Window]time.Duration{record.Warmup: 0, record.Drain: s},
			integral: map[record.Window]time.Duration{record.Warmup: 2 * s, record.Drain: 4 * s},
			ended:    3 * s,
			stopped:  "max_duration: 0 measured requests sent in 1s",
		},
		// Requests 0, 1 and 2 are the warm-up; of the measured ones 3 and 5 fail and 4 and 6 don't,
		// and with 6, at 4 s, the rule looks for the first time. Request 7 is in flight then.
		"the stop rule ends the step, and what was counted counts": {
			closed: drive.Closed{Concurrency: 2, Spread: s},
			step:   drive.Step{Warmup: 2, Bounds: plan.Step{Requests: 100}, Stop: plan.Stop{ErrorRatio: 0.5, After: 4}},
			sender: fake{service: s, outcome: func(n int) wire.Outcome { return []wire.Outcome{wire.OK, wire.ServerError}[n%2] }},
			counts: counts{record.Warmup: {wire.OK: 2, wire.ServerError: 1}, record.Measure: {wire.OK: 2, wire.ServerError: 3}},
			at:     map[record.Window]time.Duration{record.Warmup: 0, record.Measure: 1500 * time.Millisecond, record.Drain: 4 * s},
			integral: map[record.Window]time.Duration{
				record.Warmup: 2500 * time.Millisecond, record.Measure: 5 * s, record.Drain: 500 * time.Millisecond,
			},
			ended:   4500 * time.Millisecond,
			stopped: "error_ratio: 2 of 4 measured requests failed",
			rule:    true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := newTape()
				tc.step.Recorder, tc.step.Sender, tc.step.Body = rec, tc.sender, body
				sum, err := tc.closed.Drive(t.Context(), tc.step)
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "counts", rec.counts(), tc.counts)
				equal(t, "windows", rec.at, tc.at)
				equal(t, "requests in flight over time", rec.integral, tc.integral)
				equal(t, "ended", sum.Ended.Sub(sum.Started), tc.ended)
				equal(t, "stopped", sum.Stopped, tc.stopped)
				equal(t, "stop rule", sum.StopRule, tc.rule)
				if rec.peak > tc.closed.Concurrency {
					t.Errorf("%d requests in flight at once, more than %d slots", rec.peak, tc.closed.Concurrency)
				}
			})
		})
	}
}

func TestInterruption(t *testing.T) {
	step := func(rec *tape) drive.Step {
		return drive.Step{
			Warmup: 2, Bounds: plan.Step{Requests: 100}, Grace: 5 * time.Second, Body: body, Recorder: rec,
			Sender: fake{service: time.Second, hang: func(n int) bool { return n == 4 }},
		}
	}
	t.Run("what is in flight ends within the grace, the rest is aborted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2750*time.Millisecond)
			defer cancel()
			rec := newTape()
			sum, err := drive.Closed{Concurrency: 2, Spread: time.Second}.Drive(ctx, step(rec))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "counts", rec.counts(), counts{record.Warmup: {wire.OK: 3}, record.Measure: {wire.OK: 2, wire.Aborted: 1}})
			equal(t, "stopped", sum.Stopped, drive.Interrupted)
			equal(t, "ended", sum.Ended.Sub(sum.Started), 7750*time.Millisecond)
		})
	})
	t.Run("an abort ends everything at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2750*time.Millisecond)
			defer cancel()
			abort := make(chan struct{})
			time.AfterFunc(2800*time.Millisecond, func() { close(abort) })
			rec := newTape()
			st := step(rec)
			st.Abort = abort
			sum, err := drive.Closed{Concurrency: 2, Spread: time.Second}.Drive(ctx, st)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "counts", rec.counts(), counts{record.Warmup: {wire.OK: 3}, record.Measure: {wire.OK: 1, wire.Aborted: 2}})
			equal(t, "ended", sum.Ended.Sub(sum.Started), 2800*time.Millisecond)
		})
	})
}

func TestRecordingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := newTape()
		rec.fail = errors.New("no space left on device")
		_, err := drive.Closed{Concurrency: 3}.Drive(t.Context(), drive.Step{
			Warmup: 3, Bounds: plan.Step{Requests: 10}, Body: body, Recorder: rec, Sender: fake{service: time.Second},
		})
		if !errors.Is(err, rec.fail) {
			t.Errorf("the step ended with %v, not with the recorder's error", err)
		}
		if len(rec.requests) != 1 {
			t.Errorf("%d requests were recorded after the first failed", len(rec.requests)-1)
		}
	})
}

func TestRefusesAStepThatNeverEnds(t *testing.T) {
	if _, err := (drive.Closed{Concurrency: 1}).Drive(t.Context(), drive.Step{}); err == nil {
		t.Error("a step without bounds was driven")
	}
	if _, err := (drive.Closed{}).Drive(t.Context(), drive.Step{Bounds: plan.Step{Requests: 1}}); err == nil {
		t.Error("a closed loop without slots was driven")
	}
}
