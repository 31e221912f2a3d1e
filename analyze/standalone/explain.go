package standalone

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"firstbreach/analyze/report"
	"firstbreach/analyze/search"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/figures"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/sim"
)

// explain says what is about to happen.
func (j *job) explain() {
	p := j.plan
	say := func(name, format string, args ...any) {
		fmt.Fprintf(j.Out, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(j.Out, "As %s rises, where does the service first break its SLO?\n\n", p.Ramp.Levels()[0].Kind())
	if j.sim != nil {
		say("target", "a simulated engine with %d slots, in a process of its own: %s (%s)", sim.Demo().Slots, p.Target.URL, p.Target.API)
	} else {
		say("target", "%s (%s, model %s)", p.Target.URL, p.Target.API, p.Target.Model)
	}
	if p.Target.Metrics == "" {
		say("", "it has no metrics page that we know of: the service layer will have no data")
	}
	if p.Target.HostMetrics == "" && !onLoopback(p.Target.URL) {
		say("", "it is on another machine: the resource layer will have no data without --host-metrics, an exporter there")
	}
	say("plan", "%s", j.planFrom)
	if j.Search != nil {
		j.explainSearch(say)
	} else {
		explainRounds(p, say)
	}
	say("objectives", "%s", j.sloFrom)
	for _, o := range j.slo.PerRequest() {
		say("", "%s: %s", o.Name, inWords(o))
	}
	preflight := p
	if j.Search != nil {
		preflight = p.ForSearch(j.Search.RoundSize())
	}
	for _, n := range plan.Preflight(preflight, j.slo) {
		if !n.Enough {
			say("warning", "%s", n.Sentence)
		}
	}
	for _, w := range preflight.Warnings() {
		say("warning", "%s", w)
	}
	say("store", "embedded Prometheus, %s (a Grafana can read it while this runs)", j.store.URL())
	say("results", "%s", j.Dir)
	fmt.Fprintf(j.Out, "\nCtrl-C ends it early and keeps what was measured.\n\n")
}

// explainRounds says what a plan runs.
func explainRounds(p *plan.Plan, say func(name, format string, args ...any)) {
	rounds := "rounds"
	if p.Rounds == 1 {
		rounds = "round"
	}
	say("", "%d %s of baseline %d, ladder %s, recovery %d; %s", p.Rounds, rounds, p.Baseline.Concurrency, ladder(p), p.Recovery.Concurrency, stepSize(p))
	for _, c := range p.Classes {
		say("", "class %s, weight %d%s", c.Name, c.Weight, heldTo(c))
	}
	for _, s := range p.After() {
		say("", "then %s", afterText(p, s))
	}
	if least := leastTime(p); least > 0 {
		say("", "that takes at least %s", least.Round(time.Second))
	}
}

// explainSearch says how a search goes about it, in place of the plan's ladder.
func (j *job) explainSearch(say func(name, format string, args ...any)) {
	s, p := j.Search, j.plan
	say("search", "concurrency %d to %d: doubling, then halving; neighbours in turn until both are decided, then both once more", s.Min, s.Max)
	say("", "%d requests and at least %s a round; a level is judged at most %s, each time with α = 0.05/%d", s.RoundSize(), p.Step.MinDuration, looks(s.Looks), s.Looks)
	before, _ := p.Around()
	say("", "%d rounds of baseline %d before it, as many of recovery %d after it", len(before), p.Baseline.Concurrency, p.Recovery.Concurrency)
	if s.Requests > 0 {
		say("", "it ends before it has sent more than %d requests", s.Requests)
	}
	if s.Time > 0 {
		say("", "it ends before it has taken more than %s", s.Time)
	}
}

// looks says when a level is judged.
func looks(n int) string {
	if n == 1 {
		return "once, after 3 rounds"
	}
	at := make([]string, n)
	for i := range at {
		at[i] = strconv.Itoa(verdict.Search{}.RoundsAt(i + 1))
	}
	return fmt.Sprintf("%d times, after %s and %s rounds", n, strings.Join(at[:n-1], ", "), at[n-1])
}

func ladder(p *plan.Plan) string {
	levels := p.Ramp.Levels()
	steps := make([]string, len(levels))
	for i, l := range levels {
		steps[i] = l.String()
	}
	text := strings.Join(steps, ", ")
	if len(p.Ramp.Rate) > 0 {
		text += fmt.Sprintf(" (%s arrivals, at most %d in flight)", p.Ramp.Arrivals, p.Ramp.MaxInFlight)
	}
	return text
}

func stepSize(p *plan.Plan) string {
	if p.Step.Duration > 0 {
		return fmt.Sprintf("%s a step", p.Step.Duration)
	}
	return fmt.Sprintf("%d requests and at least %s a step", p.Step.Requests, p.Step.MinDuration)
}

// leastTime is how long the run lasts when the target is never the one to wait for.
func leastTime(p *plan.Plan) time.Duration {
	steps := time.Duration(len(p.Stages(1)) * p.Rounds)
	least := steps * (max(p.Step.MinDuration, p.Step.Duration) + p.Cooldown)
	for _, s := range p.After() {
		least += p.Bounds(s).Duration + p.Cooldown
	}
	return least
}

// heldTo says what a class is held to, where that isn't everything.
func heldTo(c plan.Class) string {
	if len(c.Objectives) == 0 {
		return ""
	}
	return ", held to " + strings.Join(c.Objectives, ", ")
}

// afterText describes a phase that comes after the rounds.
func afterText(p *plan.Plan, s plan.Stage) string {
	length := p.Bounds(s).Duration
	switch s.Phase {
	case plan.PhaseFluctuation:
		c := p.Fluctuations[s.Step-1].Curve
		low, high := c.Levels()
		return fmt.Sprintf("%s of a %s between %s and %s", length, c.Shape, low.Words(), high)
	case plan.PhaseTrace:
		t := p.Trace
		in, out := t.MeanTokens()
		return fmt.Sprintf("a replay of %d requests of %s in %s (%s, %s input and %s output tokens on average)", len(t.Requests), filepath.Base(t.File),
			length.Round(time.Second), s.Level().Words(), figures.Write(in, 4), figures.Write(out, 4))
	case plan.PhaseDrill:
		d := p.Drills[s.Step-1]
		return fmt.Sprintf("the drill %s at %s of %s at %s", d.Name, d.At, length, s.Level().Words())
	}
	return fmt.Sprintf("a soak of %s at %s", length, s.Level().Words())
}

func inWords(o slo.Objective) string {
	switch o.Kind {
	case slo.Latency:
		return fmt.Sprintf("%s of requests with %s ≤ %s", o.Target.Text(), strings.ReplaceAll(o.Signal, "_", " "), o.Threshold)
	case slo.Timeouts:
		return fmt.Sprintf("%s of requests without a timeout", o.Target.Text())
	default:
		return fmt.Sprintf("%s of requests succeed", o.Target.Text())
	}
}

// conclude says what was found, where it is and what to try next.
func (j *job) conclude(doc *report.Document, res verdict.Result) {
	fmt.Fprintln(j.Out)
	for _, line := range doc.Headline() {
		fmt.Fprintln(j.Out, line)
	}
	file := func(name string) string { return filepath.Join(j.Dir, name) }
	fmt.Fprintf(j.Out, "\nReport: %s (also %s, %s, %s beside it)\n", file(record.ReportHTML), record.ReportMD, record.ReportJSON, record.ReportJUnit)
	fmt.Fprintf(j.Out, "Open the run's data in Grafana: analyze store --run %s\n", j.Dir)
	for _, hint := range j.next(res) {
		fmt.Fprintf(j.Out, "Try next: %s\n", hint)
	}
}

// next are sensible commands to go on with.
func (j *job) next(res verdict.Result) []string {
	if j.sim != nil {
		return []string{"your own server, for instance: analyze standalone --target http://127.0.0.1:11434 --api ollama-chat --model gemma3:270m"}
	}
	if res.Search != nil {
		return nextOfSearch(res)
	}
	switch {
	case res.FirstBreach != nil:
		b := res.FirstBreach
		l, ok := b.LastOKLevel()
		switch {
		case ok && b.Rate > 0:
			return []string{fmt.Sprintf("a plan (--plan) with a ladder between %s and %s, to narrow the first breach down", l, b.Level())}
		case ok && b.Concurrency-l.Concurrency > 1:
			return []string{fmt.Sprintf("the same with --search --search.min %d --search.max %d, which finds the exact first breach", l.Concurrency, b.Concurrency)}
		}
	case res.State == verdict.None:
		levels := j.plan.Ramp.Levels()
		return []string{fmt.Sprintf("a plan (--plan) with a ladder above %s: nothing broke so far", levels[len(levels)-1])}
	case res.State == verdict.Inconclusive:
		return []string{"a plan (--plan) with more requests a step: the report says how many a decision needs"}
	}
	return nil
}

// nextOfSearch is what to go on with after a search.
func nextOfSearch(res verdict.Result) []string {
	s := res.Search
	switch {
	case s.Drift != nil:
		return []string{"the search again, when whatever changed with time has been found, or has settled"}
	case s.FirstBreach > 0 && !s.Exact && len(s.Open) > 0:
		return []string{fmt.Sprintf("--search --search.min %d --search.max %d with a larger budget, or with --search.looks %d", max(1, s.LastOK), s.FirstBreach, min(s.Search.Looks+1, search.MaxLooks))}
	case res.State == verdict.None:
		return []string{fmt.Sprintf("--search --search.min %d --search.max %d: nothing broke so far", s.LastOK, 4*s.LastOK)}
	case res.State == verdict.Inconclusive:
		return []string{fmt.Sprintf("a larger budget (--search.requests, --search.time), or --search.looks %d", min(s.Search.Looks+1, search.MaxLooks))}
	}
	return nil
}
