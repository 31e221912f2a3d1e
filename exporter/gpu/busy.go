package gpu

import (
	"slices"
	"time"
)

const (
	// sampleWidth is the longest time that one sample stands for: the driver samples every 1/6 s
	// to 1 s. What is missing between two samples counts as idle.
	sampleWidth = 1500 * time.Millisecond
	// samplesStall is how long the buffer may give nothing new before it is taken for dead.
	samplesStall = 3 * time.Second
)

// busy integrates a utilization over time. It takes the driver's samples, so that a burst between
// two readings counts; where there are none it takes the value of the moment for the time since.
//
// The two have clocks of their own: until is the time up to which the integral goes, seen the
// driver's time of the last sample. After a stretch without samples the first new one stands only
// for the time that is not counted yet.
type busy struct {
	seconds  float64
	until    time.Time
	seen     uint64
	fellBack bool
}

// add takes the samples newer than b.seen, or, where they are nil, the ratio (nil: not known). It
// reports how many samples were impossible.
func (b *busy) add(now time.Time, samples []Sample, ratio *float64) (invalid int) {
	fresh := slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return s.Time <= b.seen })
	slices.SortFunc(fresh, func(x, y Sample) int {
		switch {
		case x.Time < y.Time:
			return -1
		case x.Time > y.Time:
			return 1
		}
		return 0
	})
	switch {
	case b.until.IsZero():
		b.until, b.fellBack = now, len(fresh) == 0
		if len(fresh) > 0 {
			b.seen = fresh[len(fresh)-1].Time
		}
	case len(fresh) > 0:
		invalid = b.integrate(now, fresh)
	case samples == nil || now.Sub(b.until) > samplesStall:
		if ratio != nil {
			b.seconds += *ratio * now.Sub(b.until).Seconds()
		}
		if samples != nil {
			b.seen = 0 // the driver's clock may have begun anew
		}
		b.until, b.fellBack = now, true
	}
	return invalid
}

func (b *busy) integrate(now time.Time, fresh []Sample) (invalid int) {
	last := b.seen
	newest := fresh[len(fresh)-1].Time
	if b.fellBack {
		uncounted := uint64(max(0, now.Sub(b.until)).Microseconds())
		last = max(last, newest-min(newest, uncounted))
	}
	for _, s := range fresh {
		width := min(time.Duration(s.Time-min(last, s.Time))*time.Microsecond, sampleWidth)
		last = max(last, s.Time)
		if s.Value < 0 || s.Value > 100 {
			invalid++
			continue
		}
		b.seconds += s.Value / 100 * width.Seconds()
	}
	b.seen, b.until, b.fellBack = newest, now, false
	return invalid
}

// unwrap makes a counter that may wrap into one that doesn't.
type unwrap struct {
	known bool
	last  uint64
	total float64
}

// add takes the counter's value, of a type of so many bits. A step back is a wrap where the old
// value was in the upper half of the type and the new one is in the lower, else a new beginning.
func (u *unwrap) add(v uint64, bits int) float64 {
	top := uint64(1) << (bits - 1)
	switch {
	case !u.known:
		u.total = float64(v)
	case v >= u.last:
		u.total += float64(v - u.last)
	case u.last >= top && v < top:
		if bits < 64 {
			u.total += float64(v + (1 << bits) - u.last)
		} else {
			u.total += float64(v - u.last) // wraps by itself
		}
	default:
		u.total += float64(v)
	}
	u.known, u.last = true, v
	return u.total
}
