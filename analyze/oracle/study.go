package oracle

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat/distuv"

	"firstbreach/analyze/verdict"
)

// What is demanded of the verdict.
const (
	mostWrong     = 0.05 // upper bound, 95 % one-sided, of the share of runs with a false breach; of a false ok likewise
	leastDecided  = 0.85 // of the steps that are clear
	clearlyOK     = 0.01 // a step whose worst true share is at most this is clear
	clearlyBroken = 0.10 // as is one at or over this
)

// Study is many trials of many scenarios.
type Study struct {
	Scenarios []Scenario
	Runs      int    // of each scenario
	Seed      uint64 // of the first; each run has one of its own
	Truth     int    // requests behind a true share

	truth  []map[int]Shares // by scenario
	Trials [][]Trial        // by scenario
}

// Run runs every trial, a few at a time, and calls done after each with how many there are. The first error
// ends it.
func (s *Study) Run(ctx context.Context, done func(n, of int)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.truth, s.Trials = make([]map[int]Shares, len(s.Scenarios)), make([][]Trial, len(s.Scenarios))
	var mu sync.Mutex
	n := 0
	work := make(chan func() error)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for do := range work {
				if ctx.Err() != nil {
					continue
				}
				if err := do(); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i, sc := range s.Scenarios {
		s.Trials[i] = make([]Trial, s.Runs)
		ready := sync.OnceFunc(func() { s.truth[i] = sc.Truth(s.Truth, s.Seed+uint64(i)) })
		for k := range s.Runs {
			work <- func() (err error) {
				ready()
				if s.Trials[i][k], err = sc.Run(ctx, s.Seed+uint64(1000*(i+1)+k), s.truth[i]); err == nil {
					mu.Lock()
					defer mu.Unlock()
					n++
					done(n, len(s.Scenarios)*s.Runs)
				}
				return err
			}
		}
	}
	close(work)
	workers.Wait()
	return context.Cause(ctx)
}

// Count is the outcome of a study, over the scenarios that count.
type Count struct {
	Runs, FalseBreach, FalseOK int
	Clear, Decided             int // steps that are clear, and of them decided
}

// Count counts.
func (s *Study) Count() (c Count) {
	for i, trials := range s.Trials {
		if s.Scenarios[i].Outside {
			continue
		}
		for _, t := range trials {
			c.Runs++
			if t.FalseBreach {
				c.FalseBreach++
			}
			if t.FalseOK {
				c.FalseOK++
			}
			for _, step := range t.Steps {
				if w := step.True.Worst(); (w <= clearlyOK || w >= clearlyBroken) && t.reached(step) {
					c.Clear++
					if step.decided() {
						c.Decided++
					}
				}
			}
		}
	}
	return c
}

// reached reports whether a step was run at all: a stop rule leaves out those above the one that it cut.
func (t Trial) reached(s Step) bool {
	return s.Said != verdict.NoData || t.Claimed == 0 || s.Concurrency <= t.Claimed
}

func (s Step) decided() bool { return s.Said == verdict.OK || s.Said == verdict.Breach }

// Faults says what is demanded and was not met.
func (c Count) Faults() []string {
	var faults []string
	for _, f := range []struct {
		name string
		n    int
	}{{"false breach", c.FalseBreach}, {"false ok", c.FalseOK}} {
		if upper := upperBound(f.n, c.Runs); upper > mostWrong {
			faults = append(faults, fmt.Sprintf("%s in %d of %d runs: at most %.1f %% with 95 %% confidence, more than %.0f %%", f.name, f.n, c.Runs, 100*upper, 100*mostWrong))
		}
	}
	if float64(c.Decided) < leastDecided*float64(c.Clear) {
		faults = append(faults, fmt.Sprintf("%d of %d clear steps decided, less than %.0f %%", c.Decided, c.Clear, 100*leastDecided))
	}
	return faults
}

// upperBound is the one-sided 95 % Clopper–Pearson bound of k in n.
func upperBound(k, n int) float64 {
	if k >= n {
		return 1
	}
	return distuv.Beta{Alpha: float64(k + 1), Beta: float64(n - k)}.Quantile(0.95)
}

// Write prints the study as Markdown that also reads well in a terminal.
func (s *Study) Write(out io.Writer) error {
	c := s.Count()
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "| scenario\t| true share of bad requests, by concurrency\t| true first breach\t| first breach named\t| false breach\t| false ok\t| clear steps decided\t|\n")
	fmt.Fprintf(w, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|\n")
	for i, sc := range s.Scenarios {
		one := Study{Scenarios: []Scenario{sc}, Trials: s.Trials[i : i+1]}
		one.Scenarios[0].Outside = false
		n := one.Count()
		name := sc.Name
		if sc.Outside {
			name += " (not counted)"
		}
		fmt.Fprintf(w, "| %s\t| %s\t| %s\t| %s\t| %d of %d\t| %d of %d\t| %s\t|\n", name, sharesText(sc, s.truth[i]), orNone(firstBreach(sc, s.truth[i])), claims(s.Trials[i]),
			n.FalseBreach, n.Runs, n.FalseOK, n.Runs, ratio(n.Decided, n.Clear))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nUndecided steps, by the worst true share of bad requests (allowed: 5 %%):\n\n")
	w = tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "| true share\t| steps\t| ok\t| breach\t| undecided\t|\n|---\t|---\t|---\t|---\t|---\t|\n")
	for _, b := range s.byDistance() {
		fmt.Fprintf(w, "| %s\t| %d\t| %d\t| %d\t| %s\t|\n", b.name, b.steps, b.ok, b.breach, percent(b.steps-b.ok-b.breach, b.steps))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nRuns: %d. False breach: %d (at most %.1f %%), false ok: %d (at most %.1f %%), with 95 %% confidence. Clear steps decided: %s.\n",
		c.Runs, c.FalseBreach, 100*upperBound(c.FalseBreach, c.Runs), c.FalseOK, 100*upperBound(c.FalseOK, c.Runs), ratio(c.Decided, c.Clear))
	return err
}

func sharesText(sc Scenario, truth map[int]Shares) string {
	var parts []string
	for _, level := range sc.Ladder {
		parts = append(parts, fmt.Sprintf("%d: %.3g %%", level, 100*truth[level].Worst()))
	}
	return strings.Join(parts, ", ")
}

// firstBreach is the true one; 0 for none.
func firstBreach(sc Scenario, truth map[int]Shares) int {
	for _, level := range sc.Ladder {
		if truth[level].Worst() > allowance {
			return level
		}
	}
	return 0
}

func orNone(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// claims counts what the runs named, the most frequent first.
func claims(trials []Trial) string {
	n := map[string]int{}
	for _, t := range trials {
		if t.Claimed > 0 {
			n[fmt.Sprint(t.Claimed)]++
		} else {
			n[string(t.State)]++
		}
	}
	names := make([]string, 0, len(n))
	for name := range n {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, n[name])
	}
	return strings.Join(names, ", ")
}

// bin are the steps of a range of true shares.
type bin struct {
	name              string
	below             float64
	steps, ok, breach int
}

func (s *Study) byDistance() []bin {
	bins := []bin{{name: "at most 1 %", below: clearlyOK}, {name: "to 2.5 %", below: 0.025}, {name: "to 4 %", below: 0.04}, {name: "to 5 %", below: allowance},
		{name: "to 6 %", below: 0.06}, {name: "to 7.5 %", below: 0.075}, {name: "under 10 %", below: clearlyBroken}, {name: "10 to 20 %", below: 0.2}, {name: "more", below: 2}}
	for i, trials := range s.Trials {
		for _, t := range trials {
			for _, step := range t.Steps {
				if s.Scenarios[i].Outside || !t.reached(step) {
					continue
				}
				b := &bins[slices.IndexFunc(bins, func(b bin) bool {
					w := step.True.Worst()
					return w < b.below || w == b.below && b.below != clearlyBroken
				})]
				b.steps++
				switch step.Said {
				case verdict.OK:
					b.ok++
				case verdict.Breach:
					b.breach++
				}
			}
		}
	}
	return bins
}

func ratio(k, n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%d of %d (%s)", k, n, percent(k, n))
}

func percent(k, n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(k)/float64(n))
}
