package search

import (
	"context"
	"fmt"
	"slices"
	"time"

	"firstbreach/analyze/verdict"
)

// Measurer measures.
type Measurer interface {
	// Measure measures one level once more, and returns the run as it stands then. Its error ends the search.
	Measure(ctx context.Context, a Ask) (Measured, error)
}

// Ask is one measurement: a step of the ramp, or of the confirmation.
type Ask struct {
	Concurrency int
	Round       int // the next one of the level
	Requests    int // to be measured
	Why         string
	Confirms    bool // it is one of those that run the last ok and the first breach once more
}

// Measured is the run so far.
type Measured struct {
	Run      verdict.Run // its Search is filled in by the search
	Requests int64       // sent so far, warm-up and drain included
	Time     time.Duration
}

// Run searches. What it found is for verdict.Judge to say, of the run with the Search that is returned: it is
// valid beside an error, too, which is the Measurer's.
func Run(ctx context.Context, o Options, m Measurer) (verdict.Search, error) {
	if err := o.Validate(); err != nil {
		return verdict.Search{}, err
	}
	s := &search{Options: o, measurer: m, declared: o.declared(), levels: map[int]*lev{}}
	err := s.run(ctx)
	if err != nil && s.declared.Ended == "" {
		s.declared.Ended = "it was cut short"
	}
	return s.declared, err
}

// search is one search under way.
type search struct {
	Options
	measurer Measurer
	declared verdict.Search
	levels   map[int]*lev
	last     int // the level that was measured last
	cost     cost

	confirming bool
}

// lev is what is known of one level.
type lev struct {
	n        int
	rounds   int // valid ones
	numbers  int // the highest round number
	void     int
	over     bool          // it looks over the allowance by all of its rounds
	decided  verdict.State // ok or breach by its last look; "" if that didn't decide
	looked   int           // looks that were taken
	verdict  verdict.State // by all of its rounds, as of now
	asked    int           // of its last measurement: how many it was to measure
	requests int64         // how many it sent
	took     time.Duration
}

// out reports whether nothing more is to be had of a level: it stayed undecided at every look, or was void
// again and again. It is no bound then.
func (s *search) out(l *lev) bool {
	return l != nil && (s.isVoid(l) || l.decided == "" && l.looked >= s.Looks)
}

// isVoid reports whether nothing can be measured at a level: its measurements were void, or they had no data.
func (s *search) isVoid(l *lev) bool { return l.void > retries || l.verdict == verdict.NoData }

// stands and falls say on which side of the first breach a level is, or seems to be.
func (s *search) stands(l *lev) bool {
	return !s.out(l) && l.rounds > 0 && (l.decided == verdict.OK || l.decided == "" && !l.over)
}

func (s *search) falls(l *lev) bool {
	return !s.out(l) && l.rounds > 0 && (l.decided == verdict.Breach || l.decided == "" && l.over)
}

func (s *search) run(ctx context.Context) error {
	for {
		next, why := s.next()
		if len(next) == 0 {
			s.declared.Ended = why
			if why == endFound {
				return s.confirm(ctx)
			}
			return nil
		}
		l := s.turn(next)
		going, err := s.measure(ctx, Ask{Concurrency: l, Requests: s.RoundSize(), Why: why})
		if !going || err != nil {
			return err
		}
	}
}

// Why a search ended.
const (
	endFound   = "found"
	endNone    = "no breach up to the highest concurrency"
	endWall    = "above it nothing could be measured"
	endOpen    = "what is left can't be decided"
	endDrift   = "the service changed with time"
	endRequest = "the budget of requests is used up"
	endTime    = "the budget of time is used up"
)

// next are the levels to measure in turn, and why; none, and why, when there is nothing more to learn.
func (s *search) next() (levels []int, why string) {
	low, high, wall := s.bracket()
	switch {
	case high == 0 && wall == s.Min: // nothing can be measured at all
		return nil, endWall
	case s.opened(0, s.Max+1) >= 2*mostOpen:
		return nil, endOpen
	case high == 0 && low == 0:
		if free := s.between(s.Min-1, wall); len(free) > 0 {
			return free[:1], "the lowest level"
		}
		return nil, endOpen
	case high == 0:
		return s.upward(low, wall)
	}
	if free := s.between(low, high); len(free) > 0 && s.opened(low, high) < mostOpen {
		return []int{free[(len(free)-1)/2]}, fmt.Sprintf("halfway between %d and %d", low, high)
	}
	var open []int
	for _, n := range []int{low, high} {
		if n > 0 {
			open = append(open, n)
		}
	}
	if !slices.ContainsFunc(open, func(n int) bool { return s.levels[n].decided == "" }) {
		return nil, endFound
	}
	return open, "neighbours, in turn until both are decided"
}

// bracket is the lowest level that falls, or seems to, the highest below it that stands, or seems to, and the
// lowest above that of which no measurement counts; the first two 0 for none, the last past the end.
func (s *search) bracket() (low, high, wall int) {
	wall = s.Max + 1
	for _, n := range s.tested() {
		if s.falls(s.levels[n]) {
			high = n
			break
		}
	}
	for _, n := range s.tested() {
		if s.stands(s.levels[n]) && (high == 0 || n < high) {
			low = n
		}
	}
	for _, n := range s.tested() {
		if s.isVoid(s.levels[n]) && n > low {
			return low, high, n
		}
	}
	return low, high, wall
}

// tested are the levels that were measured, rising.
func (s *search) tested() []int {
	var all []int
	for n := range s.levels {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// between are the levels above one and below another that may still tell something.
func (s *search) between(low, high int) []int {
	var free []int
	for n := max(low+1, s.Min); n < high; n++ {
		if !s.out(s.levels[n]) {
			free = append(free, n)
		}
	}
	return free
}

// opened is how many levels between two stayed undecided. The share of bad requests climbs through the allowance
// there, so those beside them cost as much, and tell as little.
func (s *search) opened(low, high int) (open int) {
	for n, l := range s.levels {
		if n > low && n < high && s.out(l) && !s.isVoid(l) {
			open++
		}
	}
	return open
}

// upward goes on from the highest level that stands, with nothing broken above it: to twice as much, or,
// below a level that can't be measured, halfway to that. Where no level is left it decides the highest.
func (s *search) upward(low, wall int) ([]int, string) {
	free := s.between(low, wall)
	switch {
	case len(free) == 0:
		if s.levels[low].decided == "" {
			return []int{low}, "the highest level, until it is decided"
		}
		if wall <= s.Max {
			return nil, endWall
		}
		if low < s.Max {
			return nil, endOpen
		}
		return nil, endNone
	case wall <= s.Max:
		return []int{free[(len(free)-1)/2]}, fmt.Sprintf("halfway between %d and %d, of which no measurement counts", low, wall)
	}
	next := free[len(free)-1]
	for _, n := range free {
		if n >= 2*low {
			next = n
			break
		}
	}
	return []int{next}, fmt.Sprintf("nothing broke up to %d", low)
}

// turn chooses which of one or two levels is measured now. Two are measured in turn, back and forth
// (A B B A A B), so that whatever changes with time touches both alike.
func (s *search) turn(levels []int) int {
	if len(levels) == 1 {
		return levels[0]
	}
	a, b := s.levels[levels[0]], s.levels[levels[1]]
	switch {
	case a.rounds < b.rounds:
		return a.n
	case b.rounds < a.rounds:
		return b.n
	case s.last == b.n:
		return b.n
	}
	return a.n
}

// measure measures one level once more and takes note of what it showed. going is false when the search is
// at its end.
func (s *search) measure(ctx context.Context, a Ask) (going bool, err error) {
	l := s.levels[a.Concurrency]
	if end := s.cost.exceeds(s.Options, l, a); end != "" {
		s.declared.Ended = end
		return false, nil
	}
	if l == nil {
		l = &lev{n: a.Concurrency}
	}
	if a.Round == 0 {
		a.Round = l.numbers + 1
	}
	m, err := s.measurer.Measure(ctx, a)
	if err != nil {
		return false, err
	}
	l.asked, l.requests, l.took = a.Requests, m.Requests-s.cost.sent, m.Time-s.cost.took
	s.cost.add(m)
	s.declared.Sent, s.declared.Took = m.Requests, m.Time.Seconds()
	s.levels[a.Concurrency], s.last = l, a.Concurrency
	if !a.Confirms {
		l.numbers = a.Round
	}
	return s.learn(m.Run), nil
}

// learn takes over what the run says of every level. It is false when the service drifts: no level is
// decided then, however many rounds it is given.
func (s *search) learn(run verdict.Run) bool {
	declared := s.declared
	run.Search = &declared
	res := verdict.Judge(run)
	for _, l := range s.levels {
		step := res.Step(verdict.PhaseRamp, l.n)
		if step == nil {
			l.void++
			continue
		}
		l.rounds, l.void, l.verdict, l.over = step.ValidRounds, len(step.Rounds)-step.ValidRounds, step.Verdict, false
		for _, seen := range res.Search.Looks {
			if seen.Concurrency == l.n {
				l.over = seen.Over
			}
		}
		if l.looked < s.Looks && l.rounds >= s.declared.RoundsAt(l.looked+1) {
			l.looked++
			l.decided = ""
			if l.verdict == verdict.OK || l.verdict == verdict.Breach {
				l.decided = l.verdict
			}
		}
	}
	if res.Search.Drift != nil && !s.confirming {
		s.declared.Ended = endDrift
		return false
	}
	return true
}

// confirm runs the last ok and the first breach once more, in turn, as far as the budget goes. A measurement that is
// void is not repeated: the confirmation is left open then, and the first breach stands as it was found.
func (s *search) confirm(ctx context.Context) error {
	s.confirming = true
	low, high, _ := s.bracket()
	pair := []int{high}
	if low > 0 {
		pair = []int{low, high}
	}
	for round := range confirms {
		for _, n := range pair {
			going, err := s.measure(ctx, Ask{Concurrency: n, Round: round + 1, Requests: s.confirmSize(), Confirms: true, Why: "once more, to confirm"})
			if err != nil {
				return err
			}
			if !going {
				s.declared.Ended = endFound + ", and then " + s.declared.Ended
				return nil
			}
		}
		slices.Reverse(pair)
	}
	return nil
}
