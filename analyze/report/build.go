package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// The signals with a column of their own in the step table.
const (
	signalWaiting = "requests_waiting"
	signalCPU     = "cpu_utilization"
	signalMemory  = "memory_used"
	signalDisk    = "disk_utilization"
	signalGPU     = "gpu_utilization"
	signalVRAM    = "gpu_memory_used"
)

// New makes the report of a judged run.
func New(run verdict.Run, res verdict.Result, meta Meta) *Document {
	d := &Document{
		Schema: Schema, Version: meta.Version, Run: run.ID, Service: run.Service, State: res.State, Reason: res.Reason,
		Notes: list(res.Notes), Conditions: maps.Clone(run.Conditions), RunState: run.State, Rounds: run.Rounds,
		Ladder: list(run.Ladder), Rates: run.Rates, Queries: list(meta.Queries), Validity: checks(res.Checks),
		run: run, res: res, meta: meta,
	}
	if d.Conditions == nil {
		d.Conditions = map[string]string{}
	}
	if run.ScrapeInterval > 0 {
		d.ScrapeS = number(&run.ScrapeInterval)
	}
	d.From, d.To = span(run.Steps)
	for _, o := range run.Objectives {
		d.Objectives = append(d.Objectives, objective(o))
	}
	d.Objectives = list(d.Objectives)
	for _, s := range res.Steps {
		d.Steps = append(d.Steps, step(s, latencyOf(run, s)))
	}
	d.Steps = list(d.Steps)
	d.Capacity = []Capacity{}
	for _, c := range res.Capacity {
		d.Capacity = append(d.Capacity, Capacity{c.Name, c.MinConcurrency, c.Verdict, c.Reason, c.Owner, c.Action})
	}
	d.Phases = phases(res)
	d.Search = searchOf(res.Search)
	d.Classes = classes(res)
	d.Recovery = d.recovery()
	d.Saturation, d.Knee, d.TradeOffs = saturation(d.res.Saturation), knee(d.res.Scaling), tradeOffs(d.res.TradeOffs)
	d.Attribution, d.Limits = attribution(d.res.Attribution), limits(d.res.Limits)
	d.Verified = verified(d.res.Verification)
	if d.FirstBreach = d.firstBreach(); d.FirstBreach != nil && d.Attribution != nil {
		d.FirstBreach.FirstLayer = d.Attribution.FirstLayer
		if at := d.breachOnset(); at != nil {
			d.FirstBreach.Onset = &at.Window
		}
	}
	d.DoNow = d.doNow()
	d.Claim = d.claimLimits()
	d.Lines = d.headline()
	return d
}

// Headline returns the three lines that answer the run: which objective broke first and between
// which steps; when that step began and what stood beside it; who does what now.
func (d *Document) Headline() []string { return slices.Clone(d.Lines) }

// list makes an empty list of a nil one, so that JSON has no null where a list belongs.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// span is from the first start to the last end of a step.
func span(steps []verdict.Step) (from, to *time.Time) {
	var a, b *float64
	for _, s := range steps {
		if s.Start != nil && (a == nil || *s.Start < *a) {
			a = s.Start
		}
		if s.End != nil && (b == nil || *s.End > *b) {
			b = s.End
		}
	}
	return instant(a), instant(b)
}

func checks(cs []verdict.Check) []Check {
	out := []Check{}
	for _, c := range cs {
		out = append(out, Check{c.Name, c.Status, c.Detail})
	}
	return out
}

func objective(o verdict.Objective) Objective {
	x := Objective{Name: o.Name, Layer: o.Layer, Kind: o.Kind, Signal: o.Signal, Target: o.Target, Max: number(o.Max), Min: number(o.Min),
		MinConcurrency: o.MinConcurrency, Within: o.Within, Owner: o.Owner, Action: o.Action, Runbook: o.Runbook, Text: objectiveText(o)}
	if o.Kind == "latency" {
		x.Threshold = number(&o.Threshold)
	}
	return x
}

// latencyOf finds the pooled quantiles of a step. Prometheus pooled them over all rounds, so with a
// void round among them they say more than was counted, and with no valid one they say nothing.
func latencyOf(run verdict.Run, s verdict.StepResult) Latency {
	if s.ValidRounds == 0 {
		return Latency{Reason: "no valid round"}
	}
	for _, l := range run.Latency {
		if l.Phase != s.Phase || l.Level() != s.Level() || l.Class != s.Class {
			continue
		}
		out := latency(l.TTFT, l.E2E, l.TPOT)
		if s.ValidRounds < len(s.Rounds) {
			out.Reason = "pooled over all rounds, void ones among them"
		}
		return out
	}
	return Latency{Reason: "no latency histogram of this step in Prometheus"}
}

func latency(ttft, e2e, tpot verdict.Quantiles) Latency {
	l := Latency{TTFT: quantiles(ttft), E2E: quantiles(e2e), TPOT: quantiles(tpot)}
	switch {
	case l.E2E == (Quantiles{}) && l.TTFT == (Quantiles{}):
		l.Reason = "no ok request"
	case l.TPOT == (Quantiles{}):
		l.Reason = "no ok request with more than one token, or not streamed"
	}
	return l
}

func quantiles(q verdict.Quantiles) Quantiles {
	return Quantiles{number(q.P50), number(q.P95), number(q.P99)}
}

func throughput(m verdict.Measured) Throughput {
	return Throughput{number(m.RequestsPerSecond), number(m.OutputTokensPerSecond), number(m.GoodputPerSecond)}
}

func step(s verdict.StepResult, l Latency) Step {
	out := Step{Phase: s.Phase, Concurrency: s.Concurrency, Rate: s.Rate, Class: s.Class, Verdict: s.Verdict, Valid: s.ValidRounds > 0, Reasons: list(s.Reasons),
		Rounds: []Round{}, RoundsValid: s.ValidRounds, Began: instant(s.Began), Objectives: []ObjectiveResult{}, Gauges: []Gauge{},
		Requests: s.Measured.Requests, Outcomes: s.Measured.Outcomes, Timeouts: s.Measured.Timeouts, Latency: l, Throughput: throughput(s.Measured),
		Success: number(s.Measured.SuccessRatio), ServiceSignals: map[string]Reading{}, Resources: map[string]Reading{}}
	for _, r := range s.Rounds {
		out.Rounds = append(out.Rounds, Round{Round: r.Round, Step: r.Step, Valid: r.Valid, Void: list(r.Void()), Checks: checks(r.Checks), Stopped: r.Stopped,
			Requests: r.Measured.Requests, InFlight: number(r.InFlight), BackingOff: number(r.BackingOff), Occupancy: number(r.Occupancy),
			Latency: latency(r.Latency.TTFT, r.Latency.E2E, r.Latency.TPOT), Throughput: throughput(r.Measured), Success: number(r.Measured.SuccessRatio)})
	}
	for _, o := range s.Objectives {
		out.Objectives = append(out.Objectives, objectiveResult(o))
	}
	for _, g := range s.Gauges {
		out.Gauges = append(out.Gauges, Gauge{g.Name, g.Crossed, g.RoundsCrossed, g.Rounds, g.Missing})
	}
	for name, r := range s.Readings {
		into := out.Resources
		if r.Layer == "service" {
			into = out.ServiceSignals
		}
		into[name] = reading(r)
	}
	if q, ok := out.ServiceSignals[signalWaiting]; ok {
		out.Queue = &q
	}
	return out
}

func reading(r verdict.Reading) Reading {
	out := Reading{Unit: r.Unit, Mean: number(r.Mean), Max: number(r.Max), Samples: r.Samples, Reason: r.Missing}
	if out.Mean == nil && out.Reason == "" {
		out.Reason = "no sample in a measure window"
	}
	return out
}

func objectiveResult(o verdict.ObjectiveResult) ObjectiveResult {
	out := ObjectiveResult{Name: o.Name, Verdict: o.Verdict, Reason: o.Reason, Good: o.Good, Total: o.Total, Bad: o.Bad(), Slow: o.Slow, Failed: o.Failed,
		Undefined: o.Undefined, Share: number(o.Share), CI: pair(o.CI), Allowance: round(o.Allowance), Dispersion: round(o.Dispersion),
		EffectiveN: round(o.EffectiveN), POK: number(o.POK), PBreach: number(o.PBreach), PBreachHolm: number(o.PBreachAdj), RoundsOver: o.RoundsOver,
		PerRound: []RoundCount{}, Needed: o.Needed, Isotonic: number(o.Isotonic), NonMonotone: o.NonMonotone}
	for _, r := range o.Rounds {
		out.PerRound = append(out.PerRound, RoundCount(r))
	}
	return out
}

// step finds a step of the document.
func (d *Document) step(phase string, at level.Level, class string) *Step {
	for i := range d.Steps {
		if d.Steps[i].Phase == phase && d.Steps[i].Level() == at && d.Steps[i].Class == class {
			return &d.Steps[i]
		}
	}
	return nil
}

// ladder returns the steps of the ramp.
func (d *Document) ladder() []Step {
	var out []Step
	for _, s := range d.Steps {
		if s.Phase == verdict.PhaseRamp {
			out = append(out, s)
		}
	}
	return out
}

// LadderKind is what the levels of the ladder are: concurrency or rate.
func (d *Document) LadderKind() string {
	if ladder := d.ladder(); len(ladder) > 0 {
		return ladder[0].Level().Kind()
	}
	return level.Level{}.Kind()
}

// charted is the ladder as it is drawn: of classes the one that broke first, else the first.
func (d *Document) charted() []Step {
	class := ""
	if len(d.Classes) > 0 {
		class = d.Classes[0].Name
	}
	if d.FirstBreach != nil {
		class = d.FirstBreach.Class
	}
	var out []Step
	for _, s := range d.ladder() {
		if s.Class == class {
			out = append(out, s)
		}
	}
	return out
}

// recovery puts the first baseline step beside the first recovery step.
func (d *Document) recovery() *Recovery {
	var r Recovery
	for i := range d.Steps {
		switch s := &d.Steps[i]; {
		case s.Phase == verdict.PhaseBaseline && r.Baseline == nil:
			r.Baseline = s
		case s.Phase == verdict.PhaseRecovery && r.After == nil:
			r.After = s
		}
	}
	if r.Baseline == nil || r.After == nil {
		r.Baseline, r.After = nil, nil
	}
	r.fill(d.res.Recovery)
	return &r
}

func (d *Document) firstBreach() *FirstBreach {
	b := d.res.FirstBreach
	if b == nil {
		return nil
	}
	return &FirstBreach{Concurrency: b.Concurrency, Rate: b.Rate, LastOK: b.LastOK, LastOKRate: b.LastOKRate,
		Undecided: list(b.Undecided), UndecidedRates: b.UndecidedRates, Class: b.Class, Objective: b.Objective, Also: list(b.Also),
		Bad: b.Bad, Total: b.Total, Slow: b.Slow, Failed: b.Failed, CI: pair(b.CI), RoundsBreached: b.RoundsBreached, Rounds: b.Rounds,
		Began: instant(b.Began), Beside: d.beside(b), Owner: b.Owner, Action: b.Action, Runbook: b.Runbook}
}

// beside collects the readings of the step of the breach, the service layer first.
func (d *Document) beside(b *verdict.FirstBreach) []Beside {
	at := d.res.At(verdict.PhaseRamp, b.Level())
	before := d.before(b)
	out := []Beside{}
	for name, r := range at.Readings {
		if number(r.Mean) == nil {
			continue
		}
		x := Beside{Signal: name, Layer: r.Layer, Unit: r.Unit, Mean: number(r.Mean), Max: number(r.Max), Crossed: []string{}}
		if before != nil {
			x.Before = number(before.Readings[name].Mean)
		}
		for _, g := range at.Gauges {
			if g.Crossed != nil && *g.Crossed && (g.Name == name || g.Signal == name) {
				x.Crossed = append(x.Crossed, g.Name)
			}
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Beside) int {
		return cmp.Or(cmp.Compare(layerRank(a.Layer), layerRank(b.Layer)), cmp.Compare(a.Signal, b.Signal))
	})
	return out
}

// before is the step to compare a breach with: the last that held, else the baseline.
func (d *Document) before(b *verdict.FirstBreach) *verdict.StepResult {
	if l, ok := b.LastOKLevel(); ok {
		return d.res.At(verdict.PhaseRamp, l)
	}
	for i := range d.res.Steps {
		if d.res.Steps[i].Phase == verdict.PhaseBaseline {
			return &d.res.Steps[i]
		}
	}
	return nil
}

func layerRank(layer string) int {
	return slices.Index([]string{"user", "service", layer}, layer)
}
