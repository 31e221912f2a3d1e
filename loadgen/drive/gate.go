package drive

import (
	"fmt"
	"sync"
	"time"

	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// gate says of every request whether it is still sent and in which window it starts. It holds the
// step's clock: warmup until Warmup requests have finished, measure until there are enough, drain
// until the last measured request has ended.
type gate struct {
	step  Step
	done  chan struct{} // closed when nothing more is sent
	begun chan struct{} // closed when measuring begins

	mu          sync.Mutex
	window      record.Window
	closed      bool
	finished    int // requests of any window
	sent        int // measured requests
	outstanding int // measured requests in flight
	judged      int // measured requests that finished and weren't aborted
	failed      int // of those
	lateFirst   int // of those that didn't fail, with a TTFT over the stop rule's limit
	lateEnd     int // and with an E2E over its limit
	service     time.Duration
	served      int
	summary     Summary
	timers      []*time.Timer
}

// newGate starts the step's clock.
func newGate(step Step) *gate {
	g := &gate{step: step, done: make(chan struct{}), begun: make(chan struct{}), window: record.Warmup}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.summary.Started = time.Now()
	step.Recorder.Enter(record.Warmup, g.summary.Started)
	if step.Edges != nil {
		g.at(step.Edges.MeasureFrom, g.edgeMeasure)
	} else if limit := step.Bounds.MaxDuration; limit > 0 {
		g.timers = append(g.timers, time.AfterFunc(limit, g.tooLong))
	}
	return g
}

// admit opens the gate for one request, or says that nothing more is sent.
func (g *gate) admit(class int) (w record.Window, now time.Time, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now = time.Now()
	if g.step.Edges == nil && g.window == record.Warmup && g.finished >= g.step.Warmup && !g.closed {
		g.beginMeasure(now)
	}
	if g.step.Edges == nil && g.window == record.Measure && g.enough(now) {
		g.endMeasure(now)
	}
	if g.closed {
		return "", now, false
	}
	if g.window == record.Measure {
		g.sent++
		g.outstanding++
	}
	g.step.Recorder.Sent(class, now)
	return g.window, now, true
}

// settle takes note of a request that has ended.
func (g *gate) settle(q record.Request) (now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now = time.Now()
	g.step.Recorder.Returned(q.Class, now)
	g.finished++
	if q.Window != record.Measure {
		return now
	}
	g.outstanding--
	r := q.Measured()
	if r.Outcome == wire.OK {
		g.service += now.Sub(q.Started)
		g.served++
	}
	if r.Outcome != wire.Aborted {
		g.judge(r)
		g.applyStop(now)
	}
	if g.step.Edges == nil && g.window == record.Drain && g.outstanding == 0 {
		g.close()
	}
	return now
}

// backOff takes note of a slot that begins to back off after a request of a class, or goes on.
func (g *gate) backOff(class, slots int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.step.Recorder.BackingOff(class, slots, time.Now())
}

// beginMeasure is called when the first measured request is about to be sent. The lock is held.
func (g *gate) beginMeasure(now time.Time) {
	g.enter(record.Measure, now)
	g.summary.MeasureFrom = now
	close(g.begun)
	if d := g.step.Bounds.Duration; d > 0 && g.step.Edges == nil {
		g.timers = append(g.timers, time.AfterFunc(d, g.timeUp))
	}
}

// measureFrom is when measuring began; zero before.
func (g *gate) measureFrom() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.summary.MeasureFrom
}

// enough reports whether as much has been measured as the plan asks for. A step with a fixed
// duration ends by its timer.
func (g *gate) enough(now time.Time) bool {
	b := g.step.Bounds
	return b.Requests > 0 && g.sent >= b.Requests && now.Sub(g.summary.MeasureFrom) >= b.MinDuration
}

// endMeasure begins the drain, which is over at once when nothing measured is in flight. The lock
// is held.
func (g *gate) endMeasure(now time.Time) {
	if !g.summary.MeasureFrom.IsZero() {
		g.summary.MeasureTo = now
	}
	g.enter(record.Drain, now)
	if g.step.Edges == nil && g.outstanding == 0 {
		g.close()
	}
}

func (g *gate) enter(w record.Window, now time.Time) {
	g.window = w
	g.step.Recorder.Enter(w, now)
}

// close ends the sending. The lock is held.
func (g *gate) close() {
	if !g.closed {
		g.closed = true
		close(g.done)
	}
}

// cut ends measuring and sending at once. Requests in flight go on. The lock is held.
func (g *gate) cut(now time.Time, why string) {
	if g.closed {
		return
	}
	g.summary.Stopped = why
	if g.window != record.Drain {
		g.endMeasure(now)
	}
	g.close()
}

// judge counts a measured request for the plan's stop rule. The lock is held.
func (g *gate) judge(r wire.Result) {
	over := func(d *time.Duration, limit time.Duration) bool {
		return r.Outcome == wire.OK && limit > 0 && d != nil && *d > limit
	}
	g.judged++
	if r.Outcome.Failed() {
		g.failed++
	}
	if over(r.TTFT, g.step.Stop.TTFTP95) {
		g.lateFirst++
	}
	if over(r.E2E, g.step.Stop.E2EP95) {
		g.lateEnd++
	}
}

// applyStop looks at the plan's stop rule. The lock is held.
func (g *gate) applyStop(now time.Time) {
	s := g.step.Stop
	if g.judged < s.After || g.closed {
		return
	}
	answered := g.judged - g.failed
	late := func(n int) bool { return answered >= s.After && 20*n > answered } // the P95 is over the limit
	var why string
	switch {
	case s.ErrorRatio > 0 && float64(g.failed) >= s.ErrorRatio*float64(g.judged):
		why = fmt.Sprintf("error_ratio: %d of %d measured requests failed", g.failed, g.judged)
	case late(g.lateFirst):
		why = fmt.Sprintf("ttft_p95: %d of %d answers began after more than %v", g.lateFirst, answered, s.TTFTP95)
	case late(g.lateEnd):
		why = fmt.Sprintf("e2e_p95: %d of %d answers took more than %v", g.lateEnd, answered, s.E2EP95)
	default:
		return
	}
	g.cut(now, why)
	g.summary.StopRule = true
}

// timeUp ends measuring after the step's fixed duration.
func (g *gate) timeUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.window == record.Measure {
		g.endMeasure(time.Now())
	}
}

// tooLong ends measuring at max_duration. Once the drain is on, the last measured requests end by
// their own deadlines.
func (g *gate) tooLong() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.window == record.Drain {
		return
	}
	why := fmt.Sprintf("max_duration: %d measured requests sent in %s", g.sent, g.step.Bounds.MaxDuration)
	if g.window == record.Warmup {
		g.cut(time.Now(), why)
		return
	}
	g.summary.Stopped = why
	g.endMeasure(time.Now())
}

// exhausted ends measuring because there is nothing more to send.
func (g *gate) exhausted() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
	case g.window == record.Warmup:
		g.cut(time.Now(), fmt.Sprintf("there were no more requests before the warm-up of %d was over", g.step.Warmup))
	case g.window == record.Measure:
		g.endMeasure(time.Now())
	}
}

// interrupt ends the sending from outside.
func (g *gate) interrupt(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut(time.Now(), why)
}

// finish stops the clock.
func (g *gate) finish() Summary {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.timers {
		t.Stop()
	}
	g.summary.Ended = time.Now()
	if g.served > 0 {
		g.summary.Service = g.service / time.Duration(g.served)
	}
	return g.summary
}
