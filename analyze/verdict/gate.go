package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"firstbreach/internal/figures"
)

// The limits of the gate.
const (
	scrapesPresent = 0.90 // of the scrapes that should hold a step
	achievedShare  = 0.95 // of the concurrency asked for
	littleMargin   = 0.03 // allowed error of Little's law, before the edges of the window
	littleUseless  = 0.50 // a tolerance at which Little's law can't tell anything any more
	arrivalMargin  = 0.05 // allowed error of the rate of an open loop, before chance
	arrivalSigmas  = 4.0  // of a Poisson number of arrivals

	// A request that fails at once keeps its slot for less time than the client needs to send the
	// next one, so slots look idle that are not. Both kinds of idle time are told apart by these.
	failingShare = 0.05  // of requests that failed
	atOnce       = 0.1   // seconds a failed request took on average
	turnaround   = 0.005 // seconds between two requests of a slot that are the client's ordinary work
)

// The names of the checks of one step in one round, in the order in which they are made.
const (
	checkEdges       = "step_edges"
	checkScraped     = "final_scrape"
	checkManifest    = "manifest"
	checkResets      = "counter_resets"
	checkScrapes     = "scrapes_present"
	checkRequests    = "measured_requests"
	checkCounts      = "counts"
	checkClient      = "client_limited"
	checkLate        = "late_reads"
	checkLittle      = "littles_law"
	checkConcurrency = "achieved_concurrency"
	checkRate        = "achieved_rate"
)

// gate looks at one step of one round and says whether its numbers may be used.
func gate(run Run, s Step) []Check {
	checks := []Check{
		edges(s, run.State),
		scraped(s),
		manifest(run, s),
		resets(s),
		scrapes(s),
		requests(s),
		countsAddUp(s, run.Objectives),
		client(s),
	}
	if s.Mix != nil {
		s = *s.Mix
	}
	switch {
	case !(s.window() > 0) || measuredOf(s).Requests == 0: // NaN included
	case s.Phase == PhaseDrill: // what is done to the target changes what is in flight
	case s.Phase == PhaseTrace: // its rate is another one at every moment; that all of it was sent is in the manifest
	case s.Rate > 0:
		checks = append(checks, arrivals(s))
	case s.Load != nil:
		checks = append(checks, followed(s))
	default:
		checks = append(checks, little(s, run.ScrapeInterval), concurrency(s, run.ScrapeInterval))
	}
	return checks
}

// window is the length of the measure window in seconds; 0 when an edge is missing.
func (s Step) window() float64 {
	if s.MeasureFrom == nil || s.MeasureTo == nil {
		return 0
	}
	return math.Max(0, *s.MeasureTo-*s.MeasureFrom)
}

// interrupted reports whether the step was cut by the person who ran it.
func (s Step) interrupted() bool { return strings.HasPrefix(s.Stopped, "interrupted") }

// stopCut reports whether a stop condition or a time limit ended the step: its counts count.
func (s Step) stopCut() bool { return s.Stopped != "" && !s.interrupted() }

// endsRound reports whether the step was cut by the plan's stop rule, which leaves out the higher
// steps of the round.
func (s Step) endsRound() bool {
	return slices.ContainsFunc([]string{"error_ratio", "ttft_p95", "e2e_p95"}, func(rule string) bool { return strings.HasPrefix(s.Stopped, rule) })
}

func passed(name, detail string) Check { return Check{name, Passed, detail} }

func failed(name, format string, args ...any) Check {
	return Check{name, Failed, fmt.Sprintf(format, args...)}
}

func edges(s Step, state string) Check {
	var missing []string
	for _, e := range []struct {
		name string
		at   *float64
	}{{"start", s.Start}, {"begin of measuring", s.MeasureFrom}, {"end of measuring", s.MeasureTo}, {"end", s.End}} {
		if e.at == nil {
			missing = append(missing, e.name)
		}
	}
	aborted := s.Outcomes["aborted"]
	switch {
	case len(missing) > 0 && state == "running":
		return failed(checkEdges, "no %s: loadgen was killed during this step, or is still running; run it to the end", strings.Join(missing, ", no "))
	case len(missing) > 0:
		return failed(checkEdges, "no %s in Prometheus: the step was not finished, or its last values were never scraped; run it again", strings.Join(missing, ", no "))
	case s.interrupted() && aborted > 0:
		return failed(checkEdges, "interrupted with %s aborted: the slowest ones are missing from the counts; run it again", count(aborted, "request"))
	case s.stopCut():
		return passed(checkEdges, "cut short ("+s.Stopped+"); its counts count")
	}
	return passed(checkEdges, "all four edges are there")
}

func scraped(s Step) Check {
	if s.Unscraped {
		return failed(checkScraped, "left the metrics page before every scraper had its final values: scrape loadgen more often, or raise --scrape.wait")
	}
	return passed(checkScraped, "the final values were scraped")
}

func manifest(run Run, s Step) Check {
	switch {
	case !run.Manifest:
		return Check{checkManifest, NotChecked, "no manifest to compare with: give the run directory with --run"}
	case len(s.ManifestDiffers) > 0:
		return failed(checkManifest, "Prometheus and the manifest differ (%s): another run with the same id was scraped, or scrapes were lost", strings.Join(s.ManifestDiffers, "; "))
	}
	return passed(checkManifest, "the totals in Prometheus are those of the manifest")
}

func resets(s Step) Check {
	if s.Resets > 0 {
		return failed(checkResets, "%s: loadgen restarted, or two of them share a label set; run it again", count(int64(s.Resets), "counter reset"))
	}
	return passed(checkResets, "no counter went back")
}

// scrapes allows for one scrape more than the share: a step that is not a whole number of scrape
// intervals long holds one more or one fewer by chance.
func scrapes(s Step) Check {
	missing := s.ScrapesExpected - s.Scrapes
	switch {
	case s.ScrapesExpected <= 0:
		return Check{checkScrapes, NotChecked, "the scrape interval is unknown"}
	case missing > 1 && float64(s.Scrapes) < scrapesPresent*float64(s.ScrapesExpected):
		return failed(checkScrapes, "%d of %d scrapes: Prometheus missed too many; look at its load and at the network between", s.Scrapes, s.ScrapesExpected)
	case missing > 1:
		return Check{checkScrapes, Warn, fmt.Sprintf("%d of %d scrapes", s.Scrapes, s.ScrapesExpected)}
	}
	return passed(checkScrapes, fmt.Sprintf("%d of %d scrapes", s.Scrapes, s.ScrapesExpected))
}

func requests(s Step) Check {
	if n := measuredOf(s).Requests; n > 0 {
		return passed(checkRequests, count(n, "measured request"))
	}
	return failed(checkRequests, "no measured request: the step ended during its warm-up, or nothing was scraped; give it more requests or time")
}

func countsAddUp(s Step, objectives []Objective) Check {
	if len(s.Incomplete) > 0 {
		return failed(checkCounts, "%s; look at what stands between loadgen and this store, and run it again", strings.Join(s.Incomplete, "; "))
	}
	for _, o := range objectives {
		c, ok := s.Counts[o.Name]
		if ok && c.Missing == "" && (c.Slow < 0 || c.Failed < 0 || c.Total < 0 || c.Slow+c.Failed > c.Total) {
			return failed(checkCounts, "%s: %d slow + %d failed of %d can't be: two sources answer for one series; narrow the selectors", o.Name, c.Slow, c.Failed, c.Total)
		}
	}
	return passed(checkCounts, "good and bad add up to the total")
}

func client(s Step) Check {
	if len(s.Limited) > 0 {
		return failed(checkClient, "the client was the bottleneck (%s): run fewer streams, split the run into shards, or give the load generator a host of its own", strings.Join(s.Limited, ", "))
	}
	return passed(checkClient, "the client reported no limit of its own")
}

// little checks the operational law L = X·R of a closed loop (Denning and Buzen, ACM Computing
// Surveys 10, 1978): the time all measured requests spent in the system, over the length of the
// window, is the concurrency. Requests that straddle an edge of the window leave an error of at
// most Rmax/T, with Rmax the longest request.
func little(s Step, interval float64) Check {
	window, n := s.window(), float64(s.Concurrency)
	if n <= 0 {
		return Check{checkLittle, NotChecked, "no concurrency to compare with"}
	}
	if c, short := tooShort(checkLittle, s, interval); short {
		return c
	}
	l, tolerance := (s.OccupancySeconds+s.BackoffSeconds)/window, littleMargin+longest(s)/window
	found := fmt.Sprintf("%s of %d requests in the system%s (tolerance %s)", figures.Write(s.OccupancySeconds/window, 3), s.Concurrency, s.backedOff(), percent(tolerance))
	switch {
	case tolerance >= littleUseless && math.Abs(l/n-1) <= tolerance:
		return Check{checkLittle, NotChecked, fmt.Sprintf("a window of %s s is too short for requests of up to %s s; lengthen the step", figures.Write(window, 3), figures.Write(longest(s), 3))}
	case l/n-1 < -tolerance && failsAtOnce(s, s.OccupancySeconds+s.BackoffSeconds):
		return Check{checkLittle, Warn, found + ": requests failed at once, faster than the client sends"}
	case l/n-1 < -tolerance:
		return failed(checkLittle, "%s: the load generator was starved or throttled; use a bigger machine for it", found)
	case l/n-1 > tolerance:
		return failed(checkLittle, "%s: requests are counted twice or beyond their window; look for a second load generator with the same run id", found)
	}
	return passed(checkLittle, found)
}

// concurrency compares the mean number of requests in flight with what was asked for.
func concurrency(s Step, interval float64) Check {
	window, n := s.window(), float64(s.Concurrency)
	if n <= 0 {
		return Check{checkConcurrency, NotChecked, "no concurrency to compare with"}
	}
	if c, short := tooShort(checkConcurrency, s, interval); short {
		return c
	}
	least, busy := achievedShare*n, s.InFlightSeconds+s.BackoffSeconds
	found := fmt.Sprintf("%s of %d in flight on average%s", figures.Write(s.InFlightSeconds/window, 3), s.Concurrency, s.backedOff())
	switch {
	case s.InFlightSeconds/window >= least:
		return passed(checkConcurrency, found)
	case busy/window >= least:
		return Check{checkConcurrency, Warn, found}
	case failsAtOnce(s, busy):
		return Check{checkConcurrency, Warn, found + ": requests failed at once, faster than the client sends"}
	}
	return failed(checkConcurrency, "%s, under %s: the load generator could not hold the load; use a bigger machine for it", found, percent(achievedShare))
}

// backedOff says how much of the load was missing because the client backed off: a slot whose requests
// fail fast, one after the other, waits before the next. That is the target's doing, not the client's.
func (s Step) backedOff() string {
	if mean := s.BackoffSeconds / s.window(); mean >= 0.005*float64(s.Concurrency) && mean > 0 {
		return fmt.Sprintf(", %s backing off after requests that failed at once", figures.Write(mean, 3))
	}
	return ""
}

// takeBackUnloaded takes back what held in these rounds of a step where the client backed off for so
// much of the time that the step's load was not there: clients that get nothing and wait are few of
// the requests, and the others may fare well without them. What broke all the same stays broken.
func takeBackUnloaded(objectives []ObjectiveResult, rounds []Step) {
	var backing, all float64
	for _, s := range rounds {
		if s.Mix != nil {
			s = *s.Mix
		}
		backing, all = backing+s.BackoffSeconds, all+float64(s.Concurrency)*s.window()
	}
	if all == 0 || backing <= (1-achievedShare)*all {
		return
	}
	for i := range objectives {
		if o := &objectives[i]; o.Verdict == OK {
			o.Verdict, o.Needed = Inconclusive, nil
			o.Reason = fmt.Sprintf("%s of the load was backing off from requests that failed at once: what held, held for less than the step's load", percent(backing/all))
		}
	}
}

// followed compares the mean number of requests in flight with that of a load that changes. More than
// planned is no fault: what is in flight when the load falls ends in its own time.
func followed(s Step) Check {
	busy, mean := s.InFlightSeconds+s.BackoffSeconds, s.Load.Mean(s.window())
	found := fmt.Sprintf("%s in flight on average%s, %s planned", figures.Write(s.InFlightSeconds/s.window(), 3), s.backedOff(), figures.Write(mean, 3))
	if busy/s.window() < achievedShare*mean && !failsAtOnce(s, busy) {
		return failed(checkConcurrency, "%s, under %s: the load generator could not hold the load; use a bigger machine for it", found, percent(achievedShare))
	}
	return passed(checkConcurrency, found)
}

// arrivals compares the requests that were due in an open loop, dropped ones included, with its rate.
// How many a window holds is chance: of n independent arrivals the deviation is √n. The schedule
// waits for nobody, so fewer than that were due only if the load generator itself stood still.
func arrivals(s Step) Check {
	n := float64(measuredOf(s).Requests + s.Outcomes["aborted"])
	rate := s.Rate
	if s.Load != nil {
		rate = s.Load.Mean(s.window())
	}
	due := rate * s.window()
	found := fmt.Sprintf("%s requests due in %s s, %s/s asked for", figures.Write(n, 4), figures.Write(s.window(), 3), figures.Write(rate, 4))
	tolerance := arrivalMargin*due + arrivalSigmas*math.Sqrt(due) + 1
	switch {
	case n < due-tolerance:
		return failed(checkRate, "%s: the load generator could not keep its schedule; use a bigger machine for it", found)
	case n > due+tolerance:
		return failed(checkRate, "%s: requests are counted twice; look for a second load generator with the same run id", found)
	}
	return passed(checkRate, found)
}

// tooShort excuses a step that was cut before its window could tell anything.
func tooShort(name string, s Step, interval float64) (Check, bool) {
	least := math.Max(1, interval)
	if !s.stopCut() || s.window() >= least {
		return Check{}, false
	}
	return Check{name, NotChecked, fmt.Sprintf("cut short after %s s: too short to tell", figures.Write(s.window(), 3))}, true
}

// longest estimates the longest request of a step, in seconds: the P99 of ok requests where it is
// known, the mean time of ok and of failed requests where that is more.
func longest(s Step) float64 {
	m := measuredOf(s)
	var most float64
	if s.E2E.P99 != nil {
		most = *s.E2E.P99
	}
	if m.OK > 0 {
		most = math.Max(most, s.SumE2E/float64(m.OK))
	}
	if bad := m.Requests - m.OK; bad > 0 {
		most = math.Max(most, (s.OccupancySeconds-s.SumE2E)/float64(bad))
	}
	return most
}

// failsAtOnce reports whether requests that failed at once explain why the slots were busy for only
// so many slot-seconds of the window.
func failsAtOnce(s Step, busy float64) bool {
	m := measuredOf(s)
	bad := float64(m.Requests - m.OK)
	if bad < failingShare*float64(m.Requests) || (s.OccupancySeconds-s.SumE2E)/bad > atOnce {
		return false
	}
	idle := float64(s.Concurrency)*s.window() - busy
	return idle/float64(m.Requests) <= turnaround
}
