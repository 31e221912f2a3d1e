package drive_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// timed answers with a TTFT and an E2E that hang on the request's number.
type timed func(n int) (ttft, e2e time.Duration, o wire.Outcome)

func (f timed) Do(_ context.Context, body []byte) wire.Result {
	sent := time.Now()
	ttft, e2e, o := f(int(body[0]))
	time.Sleep(e2e)
	r := wire.Result{SentAt: sent, End: e2e, Outcome: o}
	if o == wire.OK {
		r.TTFT, r.E2E = &ttft, &e2e
	}
	return r
}

// The absolute limits of the stop rule: a P95 over a duration ends the step, and nothing else does.
func TestStopByLatency(t *testing.T) {
	const s = time.Second
	slowOnes := func(first int) timed { // two of the measured requests, from the first on
		return func(n int) (time.Duration, time.Duration, wire.Outcome) {
			if n == first || n == first+1 {
				return 3 * s, 6 * s, wire.OK
			}
			return s, 2 * s, wire.OK
		}
	}
	for name, tc := range map[string]struct {
		shape   drive.Shape
		sender  timed
		stop    plan.Stop
		stopped string
		sent    int // measured
	}{
		// Of 20 answers the P95 is the 19th: with two that are slow it is one of these.
		"a TTFT over its limit": {
			sender: slowOnes(5), stop: plan.Stop{TTFTP95: 2 * s, After: 20},
			stopped: "ttft_p95: 2 of 20 answers began after more than 2s", sent: 20,
		},
		"a duration over its limit": {
			sender: slowOnes(5), stop: plan.Stop{E2EP95: 5 * s, After: 20},
			stopped: "e2e_p95: 2 of 20 answers took more than 5s", sent: 20,
		},
		"not over it":                       {sender: slowOnes(5), stop: plan.Stop{TTFTP95: 3 * s, E2EP95: 6 * s, After: 20}, sent: 60},
		"one of 20 is not the P95":          {sender: slowOnes(0), stop: plan.Stop{TTFTP95: 2 * s, After: 20}, sent: 60}, // request 0 is the warm-up
		"off":                               {sender: slowOnes(5), stop: plan.Stop{After: 20}, sent: 60},
		"too late for their share to be 5%": {sender: slowOnes(50), stop: plan.Stop{TTFTP95: 2 * s, After: 20}, sent: 60},
		"failures are none of it, and don't count towards after": {
			sender: func(n int) (time.Duration, time.Duration, wire.Outcome) {
				if n%2 == 0 {
					return 0, s, wire.ServerError
				}
				return 3 * s, 4 * s, wire.OK
			},
			stop: plan.Stop{TTFTP95: 2 * s, After: 20}, stopped: "ttft_p95: 20 of 20 answers began after more than 2s", sent: 39,
		},
		"in an open loop a request counts from when it was due": {
			shape:  drive.Open{Rate: 1, MaxInFlight: 10},
			sender: slowOnes(5), stop: plan.Stop{TTFTP95: 2 * s, After: 20},
			stopped: "ttft_p95: 2 of 20 answers began after more than 2s", sent: 20,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := newTape()
				if tc.shape == nil {
					tc.shape = drive.Closed{Concurrency: 1}
				}
				sum, err := tc.shape.Drive(t.Context(), drive.Step{
					Warmup: 1, Bounds: plan.Step{Requests: 60}, Stop: tc.stop, Body: body, Sender: tc.sender, Recorder: rec,
				})
				if err != nil {
					t.Fatal(err)
				}
				sent := 0
				for _, q := range rec.requests {
					if q.Window == record.Measure {
						sent++
					}
				}
				equal(t, "stopped", sum.Stopped, tc.stopped)
				equal(t, "by the rule", sum.StopRule, tc.stopped != "")
				if _, open := tc.shape.(drive.Open); !open { // there, what is in flight goes on
					equal(t, "measured", sent, tc.sent)
				}
			})
		})
	}
}
