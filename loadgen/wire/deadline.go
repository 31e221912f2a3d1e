package wire

import "time"

// phase is how far a request got; each phase has a deadline of its own.
type phase int

const (
	connecting phase = iota // until there is a connection
	waiting                 // until response headers
	prefilling              // until the first text
	streaming               // until the terminal marker
	draining                // until EOF, so that the connection can be used again
)

const (
	drainTime  = 500 * time.Millisecond
	drainBytes = 256 << 10
)

// deadline returns when the exchange's present phase has to end, and which timeout it is then; ""
// stands for the end of draining, which is no failure. The zero time means never. x.mu is held.
func (x *exchange) deadline() (time.Time, TimeoutKind) {
	t := x.c.timeouts
	at, kind := time.Time{}, TimeoutKind("")
	limit := func(from time.Time, d time.Duration, k TimeoutKind) {
		if end := from.Add(d); d > 0 && (at.IsZero() || end.Before(at)) {
			at, kind = end, k
		}
	}
	sent := x.sentAt()
	switch x.phase {
	case connecting:
		limit(x.start, t.Connect, TimeoutConnect)
	case waiting:
		limit(sent, t.FirstToken, TimeoutHeader)
	case prefilling:
		limit(sent, t.FirstToken, TimeoutFirstToken)
	case streaming:
		limit(x.active, t.Idle, TimeoutIdle)
	case draining:
		limit(x.settledAt, drainTime, "")
		return at, kind
	}
	limit(sent, t.Total, TimeoutTotal)
	return at, kind
}

// enter moves on to a phase. The timer is set here only, four times a request at most: within a
// phase the deadline moves later, never earlier, and expire finds that out. x.mu is held.
func (x *exchange) enter(p phase) {
	if p <= x.phase || x.closed {
		return
	}
	x.phase = p
	if p == draining {
		x.settledAt = time.Now()
	}
	x.arm()
}

// arm sets the timer to the present deadline. x.mu is held.
func (x *exchange) arm() {
	at, _ := x.deadline()
	switch {
	case at.IsZero():
		if x.timer != nil {
			x.timer.Stop()
		}
	case x.timer == nil:
		x.timer = time.AfterFunc(time.Until(at), x.expire)
	default:
		x.timer.Reset(time.Until(at))
	}
}

// expire runs when the timer fires: it ends the exchange if the deadline has passed, and waits on
// if it has moved meanwhile.
func (x *exchange) expire() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || x.expired != "" || x.cut {
		return
	}
	at, kind := x.deadline()
	if at.IsZero() {
		return
	}
	if time.Now().Before(at) {
		x.timer.Reset(time.Until(at))
		return
	}
	x.expired, x.cut = kind, kind == ""
	x.cancel()
}
