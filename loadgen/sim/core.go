package sim

import (
	"errors"
	"slices"
	"time"
)

// Reasons for which a request is not taken.
var (
	errFull    = errors.New("the engine is full")
	errLoading = errors.New("the model is loading")
	errDown    = errors.New("the engine is down")
	errTooLong = errors.New("prompt and answer together exceed the KV cache")
)

// core is the scheduler as a state machine over its own time, which counts from the start of the
// engine. It starts no goroutine and reads no clock: advance brings it to a time and handles
// everything due on the way at exactly the time it was due, however late the call comes.
type core struct {
	cfg Config
	now time.Duration
	m   *metrics

	waiting []*sequence // first come, first served; the preempted at the head
	active  []*sequence // holding a slot, in order of admission
	batch   []*sequence // in the decode step under way
	due     []*sequence // scratch of endPrefills
	kvUsed  int         // tokens held by active

	stepping    bool
	stepEnd     time.Duration
	steps       uint64        // decode steps begun
	prefillFree time.Duration // when the prefill unit has done all work given to it

	requests     int // arrived so far, those turned away included
	faults       []*armedFault
	stalledUntil time.Duration
	downUntil    time.Duration
	loadingUntil time.Duration
	crashes      int
}

// armedFault is a fault that has not run its course.
type armedFault struct {
	Fault
	left int // requests still to befall; perRequest kinds
}

// state of a sequence.
type state int

const (
	queued state = iota
	prefilling
	decoding
	ended
)

// sequence is one request in the engine.
type sequence struct {
	number    int
	prompt    int
	want      int // tokens of the whole answer
	natural   bool
	state     state
	generated int
	failAfter int     // with failure: tokens before it
	failure   Failure // what will happen to it; FailNone for nothing
	doubtful  bool    // fails if the engine is fuller than ErrorAbove when its prefill ends

	arrived  time.Duration
	started  bool          // has held a slot
	admitted time.Duration // when it first did
	ready    time.Duration // end of the prefill under way
	first    time.Duration // first token
	last     time.Duration // latest token
	out      *Stream
}

// tokens is what the sequence holds, or would hold, in the KV cache.
func (s *sequence) tokens() int { return s.prompt + s.generated }

func newCore(cfg Config) *core {
	c := &core{cfg: cfg, m: newMetrics(cfg.Model), loadingUntil: cfg.LoadTime}
	for _, f := range cfg.Faults {
		c.arm(f)
	}
	return c
}

func (c *core) arm(f Fault) {
	c.faults = append(c.faults, &armedFault{Fault: f, left: f.count()})
}

// population is the number of requests in the engine, queued ones included.
func (c *core) population() int { return len(c.waiting) + len(c.active) }

// next returns when something is due, and whether anything is.
func (c *core) next() (time.Duration, bool) {
	due, any := time.Duration(0), false
	take := func(t time.Duration) {
		if !any || t < due {
			due, any = t, true
		}
	}
	if c.stepping {
		take(c.stepEnd)
	}
	for _, s := range c.active {
		if s.state == prefilling {
			take(s.ready)
		}
	}
	if c.stalledUntil > c.now {
		take(c.stalledUntil)
	}
	for _, f := range c.faults {
		if !f.perRequest() && f.Request == 0 {
			take(max(f.At, c.now))
		}
	}
	return due, any
}

// advance handles everything due up to now, in order, each at the time it was due.
func (c *core) advance(now time.Duration) {
	for {
		due, any := c.next()
		if !any || due > now {
			break
		}
		c.now = max(c.now, due)
		c.endPrefills()
		c.endStep()
		c.fireDue()
		c.admit()
		c.startStep()
	}
	c.now = max(c.now, now)
}

// arrive takes a request at the present time, or says why not.
func (c *core) arrive(prompt, want int, natural bool) (*sequence, error) {
	if c.now < c.downUntil {
		return nil, errDown
	}
	if c.now < c.loadingUntil {
		return nil, errLoading
	}
	if c.cfg.KVTokens > 0 && prompt+want > c.cfg.KVTokens {
		return nil, errTooLong
	}
	c.requests++
	crashes := c.crashes
	s := &sequence{number: c.requests, prompt: prompt, want: want, natural: natural, arrived: c.now}
	c.assignFault(s)
	if c.crashes > crashes { // this very request set it off
		return nil, errDown
	}
	if c.cfg.MaxRequests > 0 && c.population() >= c.cfg.MaxRequests {
		c.m.rejected.Inc()
		return nil, errFull
	}
	s.out = newStream(s)
	c.waiting = append(c.waiting, s)
	c.admit()
	return s, nil
}

// cancel removes a request whose client went away.
func (c *core) cancel(s *sequence) {
	if s.state == ended {
		return
	}
	c.remove(s)
	c.admit()
	c.startStep()
}

// remove takes the sequence out of queue, slot and cache. The step under way forgets it at its end.
func (c *core) remove(s *sequence) {
	if s.state == queued {
		c.waiting = without(c.waiting, s)
	} else {
		c.active = without(c.active, s)
		c.kvUsed -= s.tokens()
	}
	s.state = ended
}

func without(list []*sequence, s *sequence) []*sequence {
	if i := slices.Index(list, s); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// admit gives free slots to the queue, in its order: the first that doesn't fit holds up the rest. A
// request fits when the cache has room for it and for one further token of every active sequence.
func (c *core) admit() {
	if c.now < c.stalledUntil {
		return
	}
	for len(c.waiting) > 0 && len(c.active) < c.cfg.Slots {
		s := c.waiting[0]
		if c.cfg.KVTokens > 0 && len(c.active) > 0 && c.kvUsed+s.tokens()+len(c.active)+1 > c.cfg.KVTokens {
			return
		}
		c.waiting = slices.Delete(c.waiting, 0, 1)
		c.beginPrefill(s)
	}
}

// beginPrefill queues the sequence's tokens at the prefill unit; the fixed part follows in parallel.
// After a preemption the output so far is computed anew with the prompt.
func (c *core) beginPrefill(s *sequence) {
	if !s.started {
		s.started, s.admitted = true, c.now
		c.m.queueTime.Observe((c.now - s.arrived).Seconds())
	}
	factor := jitter(c.cfg, prefillDraw, uint64(s.number))
	c.prefillFree = max(c.prefillFree, c.now) + scale(c.cfg.PrefillWork(s.tokens()), factor)
	s.ready = c.prefillFree + scale(c.cfg.PrefillTime, factor)
	s.state = prefilling
	c.kvUsed += s.tokens()
	c.active = append(c.active, s)
}

// endPrefills yields the first token of every sequence whose prefill ends now.
func (c *core) endPrefills() {
	c.due = c.due[:0]
	for _, s := range c.active {
		if s.state == prefilling && s.ready <= c.now {
			c.due = append(c.due, s)
		}
	}
	for _, s := range c.due { // apart from the loop above, because yield may take s out of active
		s.state = decoding
		c.yield(s)
	}
}

// endStep yields a token for each sequence of the batch, if its step ends now.
func (c *core) endStep() {
	if !c.stepping || c.stepEnd > c.now {
		return
	}
	c.stepping = false
	for _, s := range c.batch {
		if s.state == decoding {
			c.yield(s)
		}
	}
	c.batch = c.batch[:0]
}

// startStep begins a decode step of everything that has its first token, unless one is under way.
func (c *core) startStep() {
	if c.stepping || c.now < c.stalledUntil {
		return
	}
	c.makeRoom()
	c.batch = c.batch[:0]
	for _, s := range c.active {
		if s.state == decoding {
			c.batch = append(c.batch, s)
		}
	}
	if len(c.batch) == 0 {
		return
	}
	c.stepping = true
	c.steps++
	c.stepEnd = c.now + scale(c.cfg.Step(len(c.batch)), jitter(c.cfg, stepDraw, c.steps))
}

// makeRoom preempts the sequences admitted last until the cache has room for one token of every other.
func (c *core) makeRoom() {
	for c.cfg.KVTokens > 0 && len(c.active) > 1 && c.kvUsed+len(c.active) > c.cfg.KVTokens {
		victim := c.active[len(c.active)-1]
		c.active = c.active[:len(c.active)-1]
		c.kvUsed -= victim.tokens()
		victim.state = queued
		c.waiting = slices.Insert(c.waiting, 0, victim)
		c.m.preemptions.Inc()
	}
}

// yield gives the sequence its next token, or the failure that is due instead.
func (c *core) yield(s *sequence) {
	if s.doubtful {
		s.doubtful = false
		if c.population() > c.cfg.ErrorAbove {
			s.failure, s.failAfter = errorFailure(c.cfg)
		}
	}
	if s.failure != FailNone && s.generated >= s.failAfter {
		c.end(s, s.failure)
		return
	}
	s.generated++
	c.kvUsed++
	c.m.token(s, c.now)
	if s.generated == 1 {
		s.first = c.now
	}
	s.last = c.now
	if s.generated == s.want {
		c.end(s, FailNone)
		return
	}
	s.out.publish(Progress{Tokens: s.generated, Timings: s.timings()})
}

// end takes the sequence out of the engine and tells its stream.
func (c *core) end(s *sequence, f Failure) {
	c.remove(s)
	c.m.ended(s, f)
	s.out.publish(Progress{Tokens: s.generated, Done: true, Failure: f, Timings: s.timings()})
}

func (s *sequence) timings() Timings {
	t := Timings{Total: s.last - s.arrived, Queue: s.admitted - s.arrived}
	if s.generated > 0 {
		t.Prefill, t.Decode = s.first-s.admitted, s.last-s.first
	}
	return t
}

// errorFailure is how the requests of ErrorShare fail.
func errorFailure(cfg Config) (Failure, int) {
	if cfg.ErrorStatus == 200 {
		return FailError, cfg.ErrorTokens
	}
	return FailStatus, 0
}

// assignFault decides what will befall the sequence, and sets off the faults that wait for its number.
func (c *core) assignFault(s *sequence) {
	s.doubtful = share(c.cfg.ErrorShare, s.number)
	for _, f := range slices.Clone(c.faults) {
		switch {
		case !f.perRequest():
			if f.Request > 0 && s.number >= f.Request {
				c.fire(f)
			}
		case s.number >= f.Request && c.now >= f.At:
			if s.failure == FailNone {
				s.failure, s.failAfter = failureOf(f.Kind), f.Tokens
				s.doubtful = false
				f.left--
			}
			if f.left == 0 {
				c.disarm(f)
			}
		}
	}
}

// share spreads a share evenly over the numbers from 1: of any n in a row, n·share of them, give or take one.
func share(p float64, number int) bool {
	const exact = 1e-9 // keeps 0.1·10 from falling just below 1
	return int64(p*float64(number)+exact) > int64(p*float64(number-1)+exact)
}

// fireDue sets off the faults whose time has come.
func (c *core) fireDue() {
	for _, f := range slices.Clone(c.faults) {
		if !f.perRequest() && f.Request == 0 && f.At <= c.now {
			c.fire(f)
		}
	}
}

func (c *core) disarm(f *armedFault) {
	c.faults = slices.DeleteFunc(c.faults, func(g *armedFault) bool { return g == f })
}

func (c *core) fire(f *armedFault) {
	c.disarm(f)
	switch f.Kind {
	case FaultStall:
		c.stall(f.For)
	case FaultCrash:
		c.crash(f.Down, f.Load)
	}
}

// stall moves everything under way into the future.
func (c *core) stall(d time.Duration) {
	c.stalledUntil = max(c.stalledUntil, c.now) + d
	c.stepEnd += d
	c.prefillFree = max(c.prefillFree, c.now) + d
	for _, s := range c.active {
		s.ready += d
	}
}

// unstall ends a stall now: everything under way moves back by what was left of it.
func (c *core) unstall() {
	left := c.stalledUntil - c.now
	if left <= 0 {
		return
	}
	c.stalledUntil = c.now
	c.stepEnd -= left
	c.prefillFree -= left
	for _, s := range c.active {
		s.ready -= left
	}
	c.admit()
	c.startStep()
}

// crash ends every request with a reset and starts anew after down and load.
func (c *core) crash(down, load time.Duration) {
	for _, s := range slices.Concat(c.waiting, c.active) {
		c.end(s, FailReset)
	}
	c.batch, c.stepping, c.kvUsed = c.batch[:0], false, 0
	c.prefillFree, c.stalledUntil = 0, 0
	c.downUntil = c.now + down
	c.loadingUntil = c.downUntil + load
	c.m = newMetrics(c.cfg.Model)
	c.crashes++
}
