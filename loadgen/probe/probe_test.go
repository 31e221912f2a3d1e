package probe

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// taken is what a probe reported.
type taken struct {
	mu       sync.Mutex
	requests []record.Request
	inFlight int
	most     int
}

func (t *taken) Sent(time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight++
	t.most = max(t.most, t.inFlight)
}

func (t *taken) Returned(time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight--
}

func (t *taken) Observe(q record.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = append(t.requests, q)
}

func (t *taken) count(o wire.Outcome) (n int) {
	for _, q := range t.requests {
		if q.Result.Outcome == o {
			n++
		}
	}
	return n
}

// server answers after so long, or is cut off.
type server func(n int) time.Duration

func (s server) Do(ctx context.Context, body []byte) wire.Result {
	sent := time.Now()
	timer := time.NewTimer(s(int(body[0])))
	defer timer.Stop()
	select {
	case <-timer.C:
		took := time.Since(sent)
		return wire.Result{Outcome: wire.OK, SentAt: sent, TTFT: &took, E2E: &took, End: took}
	case <-ctx.Done():
		return wire.Result{Outcome: wire.Aborted, SentAt: sent, End: time.Since(sent)}
	}
}

func play(t *testing.T, s server, every, lasts time.Duration, inFlight int) *taken {
	t.Helper()
	got := &taken{}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), lasts)
		defer stop()
		err := Probe{
			Every: every, MaxInFlight: inFlight, Body: func(n int) []byte { return []byte{byte(n)} }, Sender: s, Recorder: got,
			Log: slog.New(slog.DiscardHandler), Seed: 7, Grace: time.Second,
		}.Run(ctx)
		if err != nil {
			t.Error(err)
		}
	})
	return got
}

// The rate is kept over any time, no request is far from its place, and no two are alike in it.
func TestSchedule(t *testing.T) {
	const every = 10 * time.Second
	got := play(t, func(int) time.Duration { return 100 * time.Millisecond }, every, time.Hour, 4)
	if n := len(got.requests); n != 360 {
		t.Fatalf("%d requests in an hour, want 360", n)
	}
	start := got.requests[0].Scheduled.Add(-time.Duration(jitter * float64(every)))
	offsets := map[time.Duration]bool{}
	for i, q := range got.requests {
		if late := q.Started.Sub(q.Scheduled); late != 0 {
			t.Errorf("request %d began %v late", i, late)
		}
		offset := q.Scheduled.Sub(start) - time.Duration(i)*every
		if offset < -every/2 || offset > every {
			t.Errorf("request %d is %v from its place", i, offset)
		}
		offsets[offset] = true
	}
	if len(offsets) < 350 {
		t.Errorf("only %d different offsets", len(offsets))
	}
}

// When everything hangs, the probe doesn't fall silent: what is due and can't be sent is counted.
func TestDueAndNotSentIsBad(t *testing.T) {
	got := play(t, func(int) time.Duration { return time.Hour }, 10*time.Second, 10*time.Minute, 4)
	if n := len(got.requests); n != 60 {
		t.Errorf("%d requests accounted for, want 60", n)
	}
	if n := got.count(wire.Dropped); n != 56 || got.most != 4 {
		t.Errorf("%d dropped and %d in flight at once, want 56 and 4", n, got.most)
	}
	if n := got.count(wire.Aborted); n != 4 {
		t.Errorf("%d aborted at the end, want 4", n)
	}
}

// A stall of the service is in the latency of the requests that were due in it, and later ones are
// on time again.
func TestStall(t *testing.T) {
	begin := time.Time{}
	stalled := func(int) time.Duration {
		if begin.IsZero() {
			begin = time.Now()
		}
		if at := time.Since(begin); at > 60*time.Second && at < 65*time.Second {
			return 65*time.Second - at + 50*time.Millisecond
		}
		return 50 * time.Millisecond
	}
	got := play(t, stalled, time.Second, 2*time.Minute, 10)
	if n := got.count(wire.OK); n != 120 {
		t.Errorf("%d answered, want 120", n)
	}
	slow := 0
	for _, q := range got.requests {
		if *q.Result.TTFT > 500*time.Millisecond {
			slow++
		}
	}
	if slow < 4 || slow > 5 {
		t.Errorf("%d requests carry the stall of 5 s, want each of the 4 to 5 that were due in it", slow)
	}
}

func TestRefused(t *testing.T) {
	if err := (Probe{MaxInFlight: 1}).Run(t.Context()); err == nil {
		t.Error("no interval is accepted")
	}
}

func targets(t *testing.T, list ...string) *slo.File {
	t.Helper()
	f := &slo.File{Window: slo.DefaultWindow}
	for _, text := range list {
		target, err := slo.ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		f.Objectives = append(f.Objectives, slo.Objective{Name: text, Kind: slo.Success, Target: target})
	}
	return f
}

// 99.9 % needs 70 in the hour of its first alert; lower targets are content with one a minute.
func TestDefaultRate(t *testing.T) {
	for _, c := range []struct {
		targets []string
		every   time.Duration
		of      string
		short   bool
	}{
		{[]string{"95%", "99%"}, time.Minute, "", false},
		{[]string{"99%", "99.9%"}, 51400 * time.Millisecond, "99.9%", false},
		{[]string{"99.95%"}, 25800 * time.Millisecond, "99.95%", false}, // 139 an hour
		{[]string{"99.999%"}, Fastest, "99.999%", true},
		{[]string{"90%"}, time.Minute, "", false},
	} {
		r := DefaultRate(targets(t, c.targets...))
		if r.Every != c.every || r.Objective != c.of || r.Short != c.short || r.Reason == "" {
			t.Errorf("%v: %+v, want every %v for %q, short %v", c.targets, r, c.every, c.of, c.short)
		}
	}
}
