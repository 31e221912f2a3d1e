package arrival

import "time"

// A step of the wall clock, as opposed to what two readings of it and of the monotonic clock, made
// one after the other, differ by. Both clocks are slewed alike, so only steps matter.
const (
	clockStep = 10 * time.Microsecond
	// clockTries is how often the clocks are read again, because the reader may have lost its CPU
	// between the two.
	clockTries = 3
)

// clock puts kernel stamps, which are of the wall clock, on the monotonic one.
type clock struct {
	base   time.Time
	offset time.Duration // of the wall clock against the monotonic one, since base
	now    func() time.Time
}

// read is the offset in a reading of both clocks.
func (c *clock) read(now time.Time) time.Duration {
	return time.Duration(now.UnixNano()-c.base.UnixNano()) - now.Sub(c.base)
}

// convert returns when a stamp of so many wall-clock nanoseconds was, seen from now, which it
// returns as well because it may have had to look again. It is false for a stamp that lies in the
// future, and when the wall clock was stepped since the last call.
func (c *clock) convert(stamp int64, now time.Time) (at, looked time.Time, ok bool) {
	if c.base.IsZero() {
		c.base = now
	}
	offset := c.read(now)
	for try := 0; try < clockTries && stepped(offset-c.offset); try++ {
		now = c.look()
		offset = c.read(now)
	}
	still := !stepped(offset - c.offset)
	c.offset = offset
	lag := time.Duration(now.UnixNano() - stamp)
	if !still || lag < -clockStep {
		return time.Time{}, now, false
	}
	return now.Add(-max(lag, 0)), now, true
}

func (c *clock) look() time.Time {
	if c.now != nil {
		return c.now()
	}
	return time.Now()
}

func stepped(d time.Duration) bool { return max(d, -d) > clockStep }
