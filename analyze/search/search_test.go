package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"firstbreach/analyze/verdict"
)

// TestExact finds every first breach up to 64 of a service whose answer is plain.
func TestExact(t *testing.T) {
	confirmed := 0
	for breach := 1; breach <= 64; breach++ {
		s := newService(uint64(breach), steps(breach, 0.001, 0.6))
		res, d, err := s.found(ordinary())
		if err != nil {
			t.Fatal(err)
		}
		if !res.Search.Exact || res.Search.FirstBreach != breach || res.Search.LastOK != breach-1 || d.Ended != endFound {
			t.Errorf("breach %d: %+v, ended: %s", breach, res.Search, d.Ended)
		}
		switch c := res.Search.Confirmation; {
		case c == nil || c.Verdict == verdict.Contradicted:
			t.Errorf("breach %d: confirmation %+v", breach, c)
		case c.Verdict == verdict.Confirmed:
			confirmed++
		}
	}
	if confirmed < 55 {
		t.Errorf("%d of 64 confirmed", confirmed)
	}
}

// TestWrong bounds how often a wrong first breach is named, and a level called ok that isn't, where the true
// share climbs through the allowance, with requests of a round independent and not. Where every level is on the
// limit, each that is tried is one more chance to be wrong: what is confirmed is held to the bound there.
func TestWrong(t *testing.T) {
	seeds := 100
	if underRace {
		seeds = 6
	}
	for _, alike := range []float64{0, 0.02} {
		for _, c := range []struct {
			name   string
			share  func(n int) float64
			breach int
			right  float64 // at least this share of the searches finds it
		}{
			{"steep", func(n int) float64 { return 0.005 + 0.295*float64(max(0, min(1, n-10))) }, 11, 0.95},
			{"gradual", func(n int) float64 { return 0.01 * float64(n) }, 6, 0},
			{"never", func(int) float64 { return 0.01 }, 0, 0.9},
			{"on the limit at every level", func(int) float64 { return allowance }, 0, 0},
			{"just over at every level", func(int) float64 { return 0.06 }, 1, 0},
		} {
			t.Run(fmt.Sprintf("%s, alike %g", c.name, alike), func(t *testing.T) {
				seeds := seeds
				if c.right == 0 && alike == 0 && !underRace { // these go on for thousands of requests
					seeds /= 3
				}
				var falseBreach, confirmed, falseOK, right, sent int
				for seed := range seeds {
					s := newService(uint64(seed), func(n int, _ time.Duration) float64 { return c.share(n) })
					s.alike = alike
					res, d, err := s.found(ordinary())
					if err != nil {
						t.Fatal(err)
					}
					sent += int(d.Sent)
					if b := res.Search.FirstBreach; b > 0 && c.share(b) <= allowance {
						falseBreach++
						if again := res.Search.Confirmation; again != nil && again.Breach.Verdict == verdict.Breach {
							confirmed++
						}
					}
					if o := res.Search.LastOK; o > 0 && c.share(o) > allowance {
						falseOK++
					}
					if res.Search.FirstBreach == c.breach && (res.Search.Exact || c.breach == 0 && res.State == verdict.None) {
						right++
					}
				}
				t.Logf("%d searches: %d false breach, %d of them confirmed, %d false ok, %d right; %d requests on average", seeds, falseBreach, confirmed, falseOK, right, sent/seeds)
				if c.share(1) == allowance {
					falseBreach = confirmed
				}
				most := 0.05
				if alike > 0 {
					most = 0.1 // the binomial test has no more than the spread between rounds to see it by
				}
				if least := 1 + int(most*float64(seeds)); falseBreach > least || falseOK > least {
					t.Errorf("false breach %d, false ok %d of %d; at most %d each", falseBreach, falseOK, seeds, least)
				}
				if float64(right) < c.right*float64(seeds) {
					t.Errorf("right in %d of %d", right, seeds)
				}
			})
		}
	}
}

// TestDrift has a service slow down at some moment of the search, whatever the load: no first breach above
// concurrency 1 may be named. Where it slowed down before anything was measured twice, level 1 is broken for
// all that anybody can see.
func TestDrift(t *testing.T) {
	for _, before := range []int{1, 40} { // the concurrency from which on it misses before it slows down
		named, noticed, seen := 0, 0, 0
		for at := 30; at < 130; at++ {
			moment := time.Duration(at) * time.Second
			s := newService(uint64(at), func(n int, now time.Duration) float64 {
				if now >= moment || n >= before && before > 1 {
					return 0.5
				}
				return 0.002
			})
			res, _, err := s.found(ordinary())
			if err != nil {
				t.Fatal(err)
			}
			if s.now < moment { // it was over
				continue
			}
			seen++
			if b := res.Search.FirstBreach; b > 1 && b != before {
				named++
			}
			if d := res.Search.Drift; d != nil {
				noticed++
				if !d.Worse || res.State != verdict.Inconclusive || !strings.Contains(res.Reason, "not with load") {
					t.Fatalf("drift %+v, state %s, %s", d, res.State, res.Reason)
				}
			}
		}
		t.Logf("from %d: %d searches, drift seen in %d, a wrong first breach named in %d", before, seen, noticed, named)
		if named > 0 || noticed == 0 {
			t.Errorf("from %d: %d searches, drift seen in %d, a wrong first breach named in %d", before, seen, noticed, named)
		}
	}
}

// TestDriftUpward is the same for one that gets faster, such as by a cache that fills.
func TestDriftUpward(t *testing.T) {
	s := newService(3, func(_ int, at time.Duration) float64 {
		if at < 40*time.Second {
			return 0.9
		}
		return 0
	})
	res, _, err := s.found(ordinary())
	if err != nil {
		t.Fatal(err)
	}
	if res.Search.FirstBreach != 0 || res.Search.Drift == nil || res.Search.Drift.Worse {
		t.Errorf("first breach %d, drift %+v", res.Search.FirstBreach, res.Search.Drift)
	}
}

// TestInvalid has the client be the bottleneck from a level on: whatever those levels show is no bound.
func TestInvalid(t *testing.T) {
	for _, late := range []float64{0, 1} {
		for limited := 1; limited <= 20; limited++ {
			s := newService(7, steps(1000, 0, 0))
			s.limited, s.late = limited, late
			res, d, err := s.found(ordinary())
			if err != nil {
				t.Fatal(err)
			}
			if res.Search.FirstBreach != 0 || res.Search.LastOK != limited-1 || d.Ended != endWall {
				t.Errorf("limited from %d: last ok %d, first breach %d, ended: %s", limited, res.Search.LastOK, res.Search.FirstBreach, d.Ended)
			}
			if !slices.Contains(res.Search.Void, limited) || res.State != verdict.Invalid {
				t.Errorf("limited from %d: void %v, state %s", limited, res.Search.Void, res.State)
			}
			for _, n := range res.Search.Void {
				if n < limited {
					t.Errorf("level %d is void, the limit is %d", n, limited)
				}
			}
		}
	}
}

// TestBreachBelowTheClientsLimit is found all the same.
func TestBreachBelowTheClientsLimit(t *testing.T) {
	s := newService(7, steps(6, 0, 0.9))
	s.limited, s.late = 8, 0
	res, _, err := s.found(ordinary())
	if err != nil {
		t.Fatal(err)
	}
	if res.Search.FirstBreach != 6 || !res.Search.Exact {
		t.Errorf("%+v", res.Search)
	}
}

// TestBudget stops a search short of each number of requests, and of each time: it never sends more, and what it
// names by then is true.
func TestBudget(t *testing.T) {
	whole := newService(1, steps(13, 0.001, 0.6))
	if _, _, err := whole.found(ordinary()); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []string{"requests", "time"} {
		partly := 0
		for i := 1; i < 40; i++ {
			o := ordinary()
			if limit == "requests" {
				o.Requests = whole.sent * int64(i) / 40
			} else {
				o.Time = whole.now * time.Duration(i) / 40
			}
			s := newService(1, steps(13, 0.001, 0.6))
			res, d, err := s.found(o)
			if err != nil {
				t.Fatal(err)
			}
			if o.Requests > 0 && d.Sent > o.Requests {
				t.Errorf("%d requests of %d", d.Sent, o.Requests)
			}
			if !strings.Contains(d.Ended, "the budget of "+limit) {
				t.Errorf("%s %d/40: ended: %s", limit, i, d.Ended)
			}
			if b := res.Search.FirstBreach; b != 0 && b < 13 || res.Search.LastOK > 12 {
				t.Errorf("%s %d/40: last ok %d, first breach %d", limit, i, res.Search.LastOK, b)
			}
			if len(res.Search.Looks) > 0 && res.Search.FirstBreach == 0 {
				partly++
				if len(res.Search.Open) == 0 || res.State == verdict.None {
					t.Errorf("%s %d/40: nothing is open, state %s", limit, i, res.State)
				}
			}
		}
		if partly == 0 {
			t.Errorf("%s: no search ended undecided", limit)
		}
	}
}

// TestLooks gives a level that is hard to decide more requests, at the looks that were declared and no others, in turn
// with its neighbour.
func TestLooks(t *testing.T) {
	looks := map[int]int{}
	for seed := range uint64(40) {
		s := newService(seed, steps(5, 0.012, 0.9))
		res, _, err := s.found(ordinary())
		if err != nil {
			t.Fatal(err)
		}
		if !res.Search.Exact || res.Search.FirstBreach != 5 {
			continue
		}
		rounds, again := map[int]int{}, []int{}
		for _, a := range s.asks {
			if a.Confirms {
				again = append(again, a.Concurrency)
			} else {
				rounds[a.Concurrency]++
			}
		}
		looks[rounds[4]]++
		if rounds[4] != rounds[5] {
			t.Errorf("seed %d: %d rounds at 4, %d at 5: they are to be measured in turn", seed, rounds[4], rounds[5])
		}
		if !slices.Equal(again, []int{4, 5, 5, 4, 4, 5}) {
			t.Errorf("seed %d: the confirmation went %v", seed, again)
		}
	}
	t.Logf("searches by rounds at the last ok: %v", looks)
	if looks[3] == 0 || looks[6] == 0 || looks[3]+looks[6]+looks[12] < 35 || len(looks) > 3 {
		t.Errorf("searches by rounds at the last ok: %v; they are 3, 6 or 12", looks)
	}
}

// TestOpen leaves a level that stays on the limit open, and brackets around it.
func TestOpen(t *testing.T) {
	s := newService(4, func(n int, _ time.Duration) float64 {
		return []float64{0, 0.001, 0.001, allowance, 0.4, 0.9, 0.9, 0.9, 0.9}[min(n, 8)]
	})
	res, _, err := s.found(ordinary())
	if err != nil {
		t.Fatal(err)
	}
	if res.Search.LastOK != 2 || res.Search.FirstBreach != 4 || res.Search.Exact || !slices.Equal(res.Search.Open, []int{3}) {
		t.Errorf("%+v", res.Search)
	}
}

// TestNoBreach ends at the highest level, decided, whether that is a power of two or not.
func TestNoBreach(t *testing.T) {
	for _, most := range []int{1, 2, 7, 64} {
		o := ordinary()
		o.Max = most
		s := newService(5, steps(1000, 0.001, 1))
		res, d, err := s.found(o)
		if err != nil {
			t.Fatal(err)
		}
		if res.State != verdict.None || res.Search.LastOK != most || d.Ended != endNone || res.Search.Confirmation != nil {
			t.Errorf("max %d: state %s, last ok %d, ended: %s", most, res.State, res.Search.LastOK, d.Ended)
		}
	}
}

// TestContradicted has the first breach go away for the confirmation: that is said.
func TestContradicted(t *testing.T) {
	var s *service
	s = newService(6, func(n int, _ time.Duration) float64 {
		if n < 5 || len(s.asks) > 0 && s.asks[len(s.asks)-1].Confirms {
			return 0
		}
		return 0.15
	})
	res, _, err := s.found(ordinary())
	if err != nil {
		t.Fatal(err)
	}
	if c := res.Search.Confirmation; c == nil || c.Verdict != verdict.Contradicted || c.Breach.Concurrency != 5 || len(c.Reasons) == 0 {
		t.Errorf("%+v", c)
	}
}

// TestMeasurerFails keeps what is known when a measurement can't be made.
func TestMeasurerFails(t *testing.T) {
	s := newService(8, steps(5, 0, 1))
	s.fail = errBroken
	_, d, err := s.found(ordinary())
	if !errors.Is(err, errBroken) || d.Ended == "" || d.Min != 1 {
		t.Errorf("%v, %+v", err, d)
	}
}

// TestOptions names the flag that is wrong.
func TestOptions(t *testing.T) {
	for flag, edit := range map[string]func(o *Options){
		"--search.min": func(o *Options) { o.Min = 0 }, "--search.max": func(o *Options) { o.Min, o.Max = 8, 4 },
		"--search.looks": func(o *Options) { o.Looks = 9 }, "--search.requests": func(o *Options) { o.Requests = -1 },
		"--search.time": func(o *Options) { o.Time = -1 },
	} {
		o := ordinary()
		edit(&o)
		if _, err := Run(t.Context(), o, newService(1, steps(2, 0, 1))); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestRoundSize has the first look decide with three rounds without a miss, and not with one request less.
func TestRoundSize(t *testing.T) {
	for _, c := range []struct {
		targets []float64
		size    int
	}{{[]float64{0.95}, 27}, {[]float64{0.99}, 136}, {[]float64{0.9, 0.95}, 27}, {[]float64{0.5}, 2}} {
		o := ordinary()
		o.Targets = c.targets
		if n := o.RoundSize(); n != c.size {
			t.Errorf("%v: %d, want %d", c.targets, n, c.size)
		}
	}
}
