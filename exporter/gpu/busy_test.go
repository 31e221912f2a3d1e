package gpu

import (
	"math"
	"testing"
	"time"
)

const second = 1_000_000 // of the driver's clock

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s: %v seconds, want %v", what, got, want)
	}
}

// Bursts between two readings count: half the samples at 100 % are half the time.
func TestBusyBursts(t *testing.T) {
	var b busy
	now := time.Unix(1e9, 0)
	at := uint64(50 * second) // since boot, not 1970
	b.add(now, []Sample{{at, 100}}, nil)
	near(t, "what was before is not counted", b.seconds, 0)
	for range 10 {
		var samples []Sample
		for range 4 {
			at += second / 4
			v := 0.0
			if at/(second/4)%2 == 0 {
				v = 100
			}
			samples = append(samples, Sample{at, v})
		}
		now = now.Add(time.Second)
		b.add(now, samples, nil)
		b.add(now, samples, nil) // the same again, as a buffer that isn't trimmed
	}
	near(t, "ten seconds of bursts", b.seconds, 5)
}

// The driver pads its buffer with zeros, or gives what it gave before: only newer samples count.
func TestBusyStaleSamples(t *testing.T) {
	var b busy
	now := time.Unix(1e9, 0)
	b.add(now, []Sample{{10 * second, 50}}, nil)
	b.add(now.Add(time.Second), []Sample{{11 * second, 80}, {0, 0}, {0, 0}, {9 * second, 100}}, nil)
	near(t, "one new sample", b.seconds, 0.8)
}

// Without samples the value of the moment counts, for the time since; when samples come back no
// time counts twice.
func TestBusyFallback(t *testing.T) {
	var b busy
	now := time.Unix(1e9, 0)
	ratio := 0.5
	b.add(now, nil, &ratio)
	for range 10 {
		now = now.Add(time.Second)
		b.add(now, nil, &ratio)
	}
	near(t, "fallback", b.seconds, 5)
	now = now.Add(time.Second)
	samples := []Sample{}
	for at := uint64(100 * second); at <= 120*second; at += second { // a buffer of 20 s
		samples = append(samples, Sample{at, 100})
	}
	b.add(now, samples, nil)
	near(t, "the first samples after it", b.seconds, 6)
	now = now.Add(time.Second)
	b.add(now, []Sample{{121 * second, 100}}, nil)
	near(t, "further samples", b.seconds, 7)
}

// A buffer that gives nothing new for a while is taken for dead, and its clock for new.
func TestBusyStall(t *testing.T) {
	var b busy
	now := time.Unix(1e9, 0)
	ratio := 1.0
	b.add(now, []Sample{{100 * second, 0}}, &ratio)
	for range 2 {
		now = now.Add(time.Second)
		b.add(now, []Sample{}, &ratio)
	}
	near(t, "two seconds without", b.seconds, 0)
	now = now.Add(2 * time.Second)
	b.add(now, []Sample{}, &ratio)
	near(t, "four seconds without", b.seconds, 4)
	now = now.Add(time.Second)
	b.add(now, []Sample{{second, 100}, {2 * second, 100}}, &ratio) // began anew
	near(t, "a new clock", b.seconds, 5)
}

func TestBusyImpossible(t *testing.T) {
	var b busy
	now := time.Unix(1e9, 0)
	b.add(now, []Sample{{second, 0}}, nil)
	invalid := b.add(now.Add(2*time.Second), []Sample{{2 * second, 4294967295}, {3 * second, 100}}, nil)
	if invalid != 1 {
		t.Errorf("%d invalid", invalid)
	}
	near(t, "the possible one", b.seconds, 1)
	b.add(now.Add(time.Minute), []Sample{{63 * second, 100}}, nil)
	near(t, "a hole of a minute", b.seconds, 1+sampleWidth.Seconds())
}

func TestUnwrap(t *testing.T) {
	var u unwrap
	for _, c := range []struct {
		v    uint64
		want float64
	}{
		{1000, 1000},
		{math.MaxUint32 - 9, math.MaxUint32 - 9},
		{10, math.MaxUint32 + 11}, // wrapped: 20 further
		{5, math.MaxUint32 + 16},  // began anew
	} {
		if got := u.add(c.v, 32); got != c.want {
			t.Errorf("%d: %v, want %v", c.v, got, c.want)
		}
	}
	u = unwrap{}
	u.add(math.MaxUint64, 64)
	before := u.total
	if got := u.add(1<<40, 64); got-before < 1<<40 {
		t.Errorf("64 bits: %v more", got-before)
	}
}
