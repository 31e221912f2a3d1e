package standalone

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"firstbreach/analyze/report"
	"firstbreach/analyze/verdict"
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
	say("objectives", "%s", j.sloFrom)
	for _, o := range j.slo.PerRequest() {
		say("", "%s: %s", o.Name, inWords(o))
	}
	for _, n := range plan.Preflight(p, j.slo) {
		if !n.Enough {
			say("warning", "%s", n.Sentence)
		}
	}
	for _, w := range p.Warnings() {
		say("warning", "%s", w)
	}
	say("store", "embedded Prometheus, %s (a Grafana can read it while this runs)", j.store.URL())
	say("results", "%s", j.Dir)
	fmt.Fprintf(j.Out, "\nCtrl-C ends it early and keeps what was measured.\n\n")
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
	switch {
	case res.FirstBreach != nil:
		b := res.FirstBreach
		if l, ok := b.LastOKLevel(); ok && (b.Rate > 0 || b.Concurrency-l.Concurrency > 1) {
			return []string{fmt.Sprintf("a plan (--plan) with a ladder between %s and %s, to narrow the first breach down", l, b.Level())}
		}
	case res.State == verdict.None:
		levels := j.plan.Ramp.Levels()
		return []string{fmt.Sprintf("a plan (--plan) with a ladder above %s: nothing broke so far", levels[len(levels)-1])}
	case res.State == verdict.Inconclusive:
		return []string{"a plan (--plan) with more requests a step: the report says how many a decision needs"}
	}
	return nil
}
