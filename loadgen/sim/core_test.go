package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// run advances the core to the given time.
func at(c *core, d time.Duration) *core { c.advance(d); return c }

// submit hands in a request at the core's present time.
func submit(t *testing.T, c *core, prompt, tokens int) *sequence {
	t.Helper()
	s, err := c.arrive(prompt, tokens, false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const ms = time.Millisecond

func TestOneRequest(t *testing.T) {
	cfg := Default() // prefill 30 ms, step 20 ms
	cfg.PrefillRate, cfg.StepPerSequence = 1000, ms
	c := newCore(cfg)
	at(c, 100*ms)
	s := submit(t, c, 50, 4)
	// 50 tokens at 1000/s and 30 ms, then three steps of 21 ms.
	for i, want := range []time.Duration{180 * ms, 201 * ms, 222 * ms, 243 * ms} {
		if at(c, want-1); s.generated != i {
			t.Fatalf("before %v: %d tokens, want %d", want, s.generated, i)
		}
		if at(c, want); s.generated != i+1 {
			t.Fatalf("at %v: %d tokens, want %d", want, s.generated, i+1)
		}
	}
	if s.state != ended || c.population() != 0 {
		t.Errorf("after the last token: state %d, %d in the engine", s.state, c.population())
	}
	want := Timings{Total: 143 * ms, Prefill: 80 * ms, Decode: 63 * ms}
	if got := s.timings(); got != want {
		t.Errorf("timings %+v, want %+v", got, want)
	}
}

// A late call must not make anything late that comes after.
func TestAdvanceIsExactHoweverRarelyCalled(t *testing.T) {
	times := func(every time.Duration) (all []Timings) {
		cfg := Demo()
		c := newCore(cfg)
		var ss []*sequence
		for i := range 12 {
			ss = append(ss, submit(t, c, 32, 5+i))
		}
		for now := every; now < 5*time.Second; now += every {
			at(c, now)
		}
		for _, s := range ss {
			all = append(all, s.timings())
		}
		return all
	}
	if a, b := times(ms), times(time.Second); !slices.Equal(a, b) {
		t.Errorf("called every ms %v\nevery second  %v", a, b)
	}
}

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	c := newCore(with(func(c *Config) { c.Slots = 1 }))
	a, b, d := submit(t, c, 10, 2), submit(t, c, 10, 2), submit(t, c, 10, 2)
	at(c, 49*ms)
	if len(c.active) != 1 || len(c.waiting) != 2 {
		t.Fatalf("%d active, %d waiting", len(c.active), len(c.waiting))
	}
	c.cancel(b) // from the queue
	at(c, 10*time.Second)
	if a.last != 50*ms || b.generated != 0 || d.admitted != 50*ms || d.last != 100*ms {
		t.Errorf("a ended %v; b has %d tokens; d admitted %v, ended %v", a.last, b.generated, d.admitted, d.last)
	}
}

func TestCancelFreesTheSlot(t *testing.T) {
	c := newCore(with(func(c *Config) { c.Slots = 1 }))
	a, b := submit(t, c, 10, 100), submit(t, c, 10, 2)
	at(c, 65*ms) // in a's second step
	c.cancel(a)
	c.cancel(a) // twice does no harm
	if b.state != prefilling || b.admitted != 65*ms {
		t.Errorf("b is in state %d, admitted %v", b.state, b.admitted)
	}
	at(c, time.Second)
	// First token at 95 ms; a's step is over by then.
	if b.first != 95*ms || b.last != 115*ms || c.kvUsed != 0 {
		t.Errorf("b's tokens at %v and %v, %d tokens left in the cache", b.first, b.last, c.kvUsed)
	}
}

func TestPreemption(t *testing.T) {
	c := newCore(with(func(c *Config) { c.KVTokens, c.StepPerSequence = 30, 0 }))
	a, b := submit(t, c, 10, 10), submit(t, c, 10, 10)
	at(c, 31*ms) // both have their first token: 22 of 30 in use
	if c.kvUsed != 22 {
		t.Fatalf("%d tokens in use, want 22", c.kvUsed)
	}
	at(c, 111*ms) // four steps on, there is no room for a fifth of both
	if b.state != queued || c.waiting[0] != b || b.generated != 5 || a.generated != 5 {
		t.Fatalf("b: state %d, %d tokens; a: %d tokens", b.state, b.generated, a.generated)
	}
	at(c, time.Second)
	// a's other five tokens until 210 ms, then b is prefilled anew, which yields its sixth.
	if a.last != 210*ms || b.last != 210*ms+30*ms+4*20*ms {
		t.Errorf("a ended %v, b ended %v", a.last, b.last)
	}
	if b.first != 30*ms || b.admitted != 0 {
		t.Errorf("b's first token is at %v, admitted %v: a preemption must not change them", b.first, b.admitted)
	}
}

func TestTooLongForTheCache(t *testing.T) {
	c := newCore(with(func(c *Config) { c.KVTokens = 30 }))
	if _, err := c.arrive(21, 10, false); err != errTooLong {
		t.Errorf("error %v, want %v", err, errTooLong)
	}
}

// Whatever arrives and goes, the limits hold, and everything that stays is finished.
func TestLimitsHold(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 0))
		cfg := with(func(c *Config) {
			c.Slots, c.KVTokens, c.Jitter, c.Seed = 1+r.IntN(6), 60+r.IntN(100), 0.2, seed
			c.PrefillRate, c.StepPerSequence = 5000, ms
		})
		c := newCore(cfg)
		var kept []*sequence
		now := time.Duration(0)
		for range 200 {
			now += time.Duration(r.IntN(40)) * ms
			at(c, now)
			s := submit(t, c, 1+r.IntN(30), 1+r.IntN(30))
			if r.IntN(5) == 0 {
				at(c, now+time.Duration(r.IntN(100))*ms)
				c.cancel(s)
			} else {
				kept = append(kept, s)
			}
			if len(c.active) > cfg.Slots || c.kvUsed > cfg.KVTokens {
				t.Fatalf("seed %d: %d of %d slots, %d of %d tokens", seed, len(c.active), cfg.Slots, c.kvUsed, cfg.KVTokens)
			}
		}
		at(c, now+time.Hour)
		for _, s := range kept {
			if s.generated != s.want {
				t.Fatalf("seed %d: request %d has %d of %d tokens", seed, s.number, s.generated, s.want)
			}
		}
		if c.kvUsed != 0 || c.population() != 0 {
			t.Fatalf("seed %d: %d tokens and %d requests are left", seed, c.kvUsed, c.population())
		}
	}
}

func TestMaxRequests(t *testing.T) {
	c := newCore(with(func(c *Config) { c.Slots, c.MaxRequests = 1, 2 }))
	submit(t, c, 1, 2)
	submit(t, c, 1, 2)
	if _, err := c.arrive(1, 2, false); err != errFull {
		t.Fatalf("the third of two: %v, want %v", err, errFull)
	}
	at(c, 50*ms)
	submit(t, c, 1, 2) // the first has ended
}

func TestShareIsSpreadEvenly(t *testing.T) {
	for _, p := range []float64{0, 0.01, 0.1, 1. / 3, 0.5, 0.9, 1} {
		total := 0
		for n := 1; n <= 3000; n++ {
			if share(p, n) {
				total++
			}
			if d := float64(total) - p*float64(n); d > 0.01 || d < -1.01 {
				t.Fatalf("share %g: %d of the first %d", p, total, n)
			}
		}
	}
}

func TestStall(t *testing.T) {
	cfg := with(func(c *Config) { c.Slots = 1; c.Faults = []Fault{{Kind: FaultStall, At: 60 * ms, For: time.Second}} })
	c := newCore(cfg)
	a, b := submit(t, c, 1, 3), submit(t, c, 1, 1) // a: 30, 50, 70 ms; b: 100 ms
	at(c, 500*ms)
	if a.generated != 2 {
		t.Fatalf("%d tokens in the stall, want 2", a.generated)
	}
	at(c, 2*time.Second)
	if a.last != 1070*ms || b.last != 1100*ms {
		t.Errorf("a ended %v, b ended %v; want both a second later", a.last, b.last)
	}
}

func TestStallCanBeEnded(t *testing.T) {
	c := newCore(Default())
	a := submit(t, c, 1, 3)
	at(c, 40*ms)
	c.arm(Fault{Kind: FaultStall, For: time.Hour})
	at(c, 100*ms)
	b := submit(t, c, 1, 1)
	at(c, 140*ms)
	c.unstall()
	at(c, time.Second)
	if a.last != 170*ms || b.last != 170*ms {
		t.Errorf("a ended %v, b ended %v; want both at 170ms", a.last, b.last)
	}
}

func TestCrash(t *testing.T) {
	cfg := with(func(c *Config) {
		c.Slots = 1
		c.Faults = []Fault{{Kind: FaultCrash, At: 60 * ms, Down: time.Second, Load: 2 * time.Second}}
	})
	c := newCore(cfg)
	a, b := submit(t, c, 1, 30), submit(t, c, 1, 30)
	before := c.m
	at(c, 61*ms)
	for _, s := range []*sequence{a, b} {
		if p := s.out.latest; !p.Done || p.Failure != FailReset {
			t.Errorf("request %d: %+v, want a reset", s.number, p)
		}
	}
	if c.m == before {
		t.Error("the metrics survived the crash")
	}
	for _, step := range []struct {
		at   time.Duration
		want error
	}{{1059 * ms, errDown}, {1061 * ms, errLoading}, {3059 * ms, errLoading}, {3061 * ms, nil}} {
		at(c, step.at)
		if _, err := c.arrive(1, 1, false); err != step.want {
			t.Errorf("at %v: %v, want %v", step.at, err, step.want)
		}
	}
}

func TestFaultsOfSingleRequests(t *testing.T) {
	cfg := with(func(c *Config) {
		c.Slots = 10
		c.Faults = []Fault{{Kind: FaultReset, Request: 2, Count: 2, Tokens: 3}, {Kind: FaultError, At: time.Second}}
	})
	c := newCore(cfg)
	var early []*sequence
	for range 5 {
		early = append(early, submit(t, c, 1, 5))
	}
	at(c, 2*time.Second)
	late, after := submit(t, c, 1, 5), submit(t, c, 1, 5)
	at(c, 3*time.Second)
	check := func(s *sequence, tokens int, f Failure) {
		t.Helper()
		if p := s.out.latest; !p.Done || p.Tokens != tokens || p.Failure != f {
			t.Errorf("request %d: %+v, want %d tokens and failure %d", s.number, p, tokens, f)
		}
	}
	check(early[0], 5, FailNone)
	check(early[1], 3, FailReset)
	check(early[2], 3, FailReset)
	check(early[3], 5, FailNone)
	check(late, 0, FailError)
	check(after, 5, FailNone)
	if len(c.faults) != 0 {
		t.Errorf("faults left: %v", c.faults)
	}
}

func TestFaultByRequestNumber(t *testing.T) {
	c := newCore(with(func(c *Config) { c.Faults = []Fault{{Kind: FaultCrash, Request: 3, Down: time.Second}} }))
	a := submit(t, c, 1, 5)
	submit(t, c, 1, 5)
	if _, err := c.arrive(1, 5, false); err != errDown {
		t.Errorf("the third request: %v, want %v", err, errDown)
	}
	if p := a.out.latest; p.Failure != FailReset {
		t.Errorf("the first request: %+v, want a reset", p)
	}
}

func TestLoading(t *testing.T) {
	c := newCore(with(func(c *Config) { c.LoadTime = time.Second }))
	if _, err := c.arrive(1, 1, false); err != errLoading {
		t.Errorf("at the start: %v, want %v", err, errLoading)
	}
	at(c, time.Second)
	submit(t, c, 1, 1)
}
