package oracle

import (
	"math"
	"math/rand/v2"

	"firstbreach/loadgen/wire"
)

// Dist draws a length of time in seconds.
type Dist func(r *rand.Rand) float64

// Always is a constant.
func Always(s float64) Dist { return func(*rand.Rand) float64 { return s } }

// Exponential has the given mean.
func Exponential(mean float64) Dist {
	return func(r *rand.Rand) float64 { return mean * r.ExpFloat64() }
}

// Lognormal has the given median, and a standard deviation of the logarithm.
func Lognormal(median, sigma float64) Dist {
	return func(r *rand.Rand) float64 { return median * math.Exp(sigma*r.NormFloat64()) }
}

// Service is a model of a service: a queue in front of slots and a cache. Times are in seconds.
type Service struct {
	Slots   int     // requests that are worked on at once; the others wait, first come, first served
	Prefill Dist    // from a slot to the first token
	Decode  Dist    // from the first token to the last
	Slope   float64 // each other request being worked on lengthens both by this share

	Cache  int                    // tokens that fit at once; 0 for any number
	Tokens func(r *rand.Rand) int // that a request holds while it is worked on

	Room       int     // requests in the service beyond which one is refused; 0 for any number
	Refusal    float64 // how long a refusal takes
	ErrorAbove int     // with more requests than this in the service ...
	ErrorShare float64 // ... this share of them fails in place of a first token

	// Spells of something that slows the service down: exponential times without, then with it.
	Calm, Spell, Slowdown float64
	// Cold is how many first requests of a run find the cache empty, and how much longer their prefill is.
	Cold     int
	ColdCost float64
}

// answer is how a request ended.
type answer struct {
	outcome     wire.Outcome
	first, last float64 // times of the first and last token; last is the end in any case
}

// server is a Service at work.
type server struct {
	Service
	*clock
	rng *rand.Rand

	factor   float64 // on all times: drift
	waiting  []*request
	busy     int
	held     int // tokens in the cache
	inside   int
	accepted int

	slow   bool
	change float64 // when slow changes next
}

type request struct {
	tokens int
	done   func(answer)
}

func (s Service) start(c *clock, r *rand.Rand) *server {
	v := &server{Service: s, clock: c, rng: r, factor: 1}
	if s.Spell > 0 { // begin as in the long run
		v.slow = r.Float64() < s.Spell/(s.Calm+s.Spell)
		v.change = c.now + v.spell()
	}
	return v
}

// spell is how long the present weather lasts.
func (v *server) spell() float64 {
	if v.slow {
		return v.Spell * v.rng.ExpFloat64()
	}
	return v.Calm * v.rng.ExpFloat64()
}

// weather is the factor of the present spell.
func (v *server) weather() float64 {
	if v.Spell == 0 {
		return 1
	}
	for v.change <= v.now {
		v.slow = !v.slow
		v.change += v.spell()
	}
	if v.slow {
		return v.Slowdown
	}
	return 1
}

// ask hands the service a request; done is called when it has ended.
func (v *server) ask(done func(answer)) {
	if v.Room > 0 && v.inside >= v.Room {
		end := v.now + v.Refusal
		v.at(end, func() { done(answer{outcome: wire.Rejected, last: end}) })
		return
	}
	q := &request{done: done}
	if v.Tokens != nil {
		q.tokens = v.Tokens(v.rng)
	}
	v.inside++
	v.waiting = append(v.waiting, q)
	v.admit()
}

// admit gives free slots to the queue; the first that doesn't fit holds up the rest.
func (v *server) admit() {
	for len(v.waiting) > 0 && v.busy < v.Slots {
		q := v.waiting[0]
		if v.Cache > 0 && v.busy > 0 && v.held+q.tokens > v.Cache {
			return
		}
		v.waiting = v.waiting[1:]
		v.work(q)
	}
}

func (v *server) work(q *request) {
	v.busy++
	v.held += q.tokens
	v.accepted++
	slower := v.factor * v.weather() * (1 + v.Slope*float64(v.busy-1))
	prefill, decode := v.Prefill(v.rng)*slower, v.Decode(v.rng)*slower
	if v.accepted <= v.Cold {
		prefill *= v.ColdCost
	}
	a := answer{outcome: wire.OK, first: v.now + prefill, last: v.now + prefill + decode}
	if v.ErrorShare > 0 && v.inside > v.ErrorAbove && v.rng.Float64() < v.ErrorShare {
		a = answer{outcome: wire.ServerError, last: v.now + prefill}
	}
	v.at(a.last, func() {
		v.busy--
		v.held -= q.tokens
		v.inside--
		v.admit()
		q.done(a)
	})
}
