package arrival

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		time.Sleep(time.Second)
		stamp := time.Now().UnixNano()
		time.Sleep(3 * time.Millisecond)
		now := time.Now()
		at, _, ok := c.convert(stamp, now)
		if !ok || now.Sub(at) != 3*time.Millisecond {
			t.Errorf("%v before now, %v", now.Sub(at), ok)
		}
		if _, _, ok := c.convert(now.Add(time.Millisecond).UnixNano(), now); ok {
			t.Error("took a stamp that lies in the future")
		}
		if at, _, ok := c.convert(now.Add(5*time.Microsecond).UnixNano(), now); !ok || !at.Equal(now) {
			t.Errorf("a stamp within the reading of the clocks: %v, %v", at, ok)
		}
	})
}

// TestClockSteps has the wall clock stepped by shifting the offset that the clock knows: what it
// reads next is off by the same.
func TestClockSteps(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 20 * time.Microsecond, 5 * time.Microsecond} {
		var c clock
		looks := 0
		now := time.Now()
		c.now = func() time.Time { looks++; return now }
		if _, _, ok := c.convert(now.UnixNano(), now); !ok {
			t.Fatal("first stamp refused")
		}
		c.offset += step
		_, _, ok := c.convert(now.UnixNano(), now)
		if large := step > clockStep || step < -clockStep; large && looks != clockTries {
			t.Errorf("step %v: looked again %d times, want %d", step, looks, clockTries)
		}
		if want := step < clockStep && step > -clockStep; ok != want {
			t.Errorf("step %v: taken %v, want %v", step, ok, want)
		}
		if _, _, ok := c.convert(now.UnixNano(), now); !ok {
			t.Errorf("step %v: still refused after the step", step)
		}
	}
}
