package plan

import (
	"errors"
	"fmt"
	"os/exec"
	"time"

	"firstbreach/internal/level"
	"firstbreach/internal/strictyaml"
)

// HeldLoad is a load that is held: a number of requests in flight, or a rate at which they arrive.
type HeldLoad struct {
	Concurrency int
	Rate        float64
	Arrivals    Arrivals // of a rate
	MaxInFlight int      // of a rate
}

// Soak holds one load for a long time, after the rounds.
type Soak struct {
	HeldLoad
	Duration time.Duration
}

// Fluctuation is a load that changes over time, after the rounds. Its HeldLoad is the highest.
type Fluctuation struct {
	HeldLoad
	Curve    level.Curve
	Duration time.Duration
}

// Drill does something to the target, or to what it depends on, while a load is held.
type Drill struct {
	HeldLoad
	Name     string
	Duration time.Duration
	At       time.Duration // since measuring began
	Action   Restore       // what is done; its Timeout bounds it
	For      time.Duration // until Restore is run; 0: at the end
	Restore  Restore       // what undoes it, on every exit
}

// The phases that come once, after the rounds.
const (
	PhaseSoak        Phase = "soak"
	PhaseFluctuation Phase = "fluctuation"
	PhaseDrill       Phase = "drill"
)

// Bounds of the phases after the rounds.
const (
	MaxDrills       = 50
	MaxFluctuations = 50
	minPhase        = 10 * time.Second
)

// afterKeys are those of what After lists.
const afterKeys = "soak, fluctuation, trace, drills"

// After lists what is run once, after the rounds: soak, fluctuations, trace, drills. Their round is 1.
func (p *Plan) After() []Stage {
	var stages []Stage
	add := func(phase Phase, step int, l HeldLoad) {
		stages = append(stages, Stage{Phase: phase, Round: 1, Step: step, Concurrency: l.Concurrency, Rate: l.Rate})
	}
	if p.Soak != nil {
		add(PhaseSoak, 1, p.Soak.HeldLoad)
	}
	for i, f := range p.Fluctuations {
		add(PhaseFluctuation, i+1, f.HeldLoad)
	}
	if p.Trace != nil {
		add(PhaseTrace, 1, p.Trace.HeldLoad)
	}
	for i, d := range p.Drills {
		add(PhaseDrill, i+1, d.HeldLoad)
	}
	return stages
}

// Held is the load of a stage, with its arrivals and its cap.
func (p *Plan) Held(s Stage) HeldLoad {
	switch s.Phase {
	case PhaseSoak:
		return p.Soak.HeldLoad
	case PhaseFluctuation:
		return p.Fluctuations[s.Step-1].HeldLoad
	case PhaseTrace:
		return p.Trace.HeldLoad
	case PhaseDrill:
		return p.Drills[s.Step-1].HeldLoad
	case PhaseVerify:
		return HeldLoad{Concurrency: s.Concurrency, Rate: s.Rate, Arrivals: Poisson, MaxInFlight: p.Verification.MaxInFlight}
	}
	return HeldLoad{Concurrency: s.Concurrency, Rate: s.Rate, Arrivals: p.Ramp.Arrivals, MaxInFlight: p.Ramp.MaxInFlight}
}

// Bounds are the bounds of a stage.
func (p *Plan) Bounds(s Stage) Step {
	switch s.Phase {
	case PhaseSoak:
		return Step{Duration: p.Soak.Duration}
	case PhaseFluctuation:
		return Step{Duration: p.Fluctuations[s.Step-1].Duration}
	case PhaseTrace:
		return Step{Duration: p.Trace.Duration()}
	case PhaseDrill:
		return Step{Duration: p.Drills[s.Step-1].Duration}
	case PhaseVerify:
		if s.Rate > 0 {
			return p.Verification.Step
		}
		after := p.Step // one round must tell as much as all rounds of the baseline
		after.Requests *= max(p.Rounds, 1)
		return after
	}
	return p.Step
}

// CheckCommands finds programs of drills, and what undoes them, that aren't there, before anything
// is sent.
func (p *Plan) CheckCommands() error {
	var problems []strictyaml.Problem
	check := func(key string, how Restore) {
		if len(how.Command) == 0 {
			return
		}
		if _, err := exec.LookPath(how.Command[0]); err != nil {
			var named *exec.Error
			if errors.As(err, &named) {
				err = named.Err
			}
			err = plainCause(err)
			problems = append(problems, strictyaml.Problem{File: p.Path, Key: key,
				Message: fmt.Sprintf("%s can't be run: %v", how.Command[0], err), Fix: "write the path of a program that this machine has"})
		}
	}
	for i, d := range p.Drills {
		check(fmt.Sprintf("drills[%d].command", i), d.Action)
		check(fmt.Sprintf("drills[%d].restore.command", i), d.Restore)
	}
	if len(problems) > 0 {
		return &strictyaml.Error{Problems: problems}
	}
	return nil
}

func loadKeys(more ...string) []string {
	return append([]string{"concurrency", "rate", "arrivals", "max_in_flight", "duration"}, more...)
}

func (r *reader) soak(v strictyaml.Value) {
	if !v.Present() {
		return
	}
	m := v.Map(loadKeys()...)
	if !v.IsMap() {
		return
	}
	s := &Soak{}
	r.load(v, m, &s.HeldLoad, r.concurrency, r.rate)
	r.phaseDuration(m.Get("duration"), &s.Duration, "30m")
	r.plan.Soak = s
}

// load reads a held load: either a concurrency or a rate, by the readers given.
func (r *reader) load(v strictyaml.Value, m strictyaml.Map, into *HeldLoad,
	concurrency func(strictyaml.Value, *int) bool, rate func(strictyaml.Value, *float64) bool,
) {
	c, ra := m.Get("concurrency"), m.Get("rate")
	switch {
	case c.Present() && ra.Present():
		ra.Reject("stands beside concurrency", "keep one of the two")
	case ra.Present():
		rate(ra, &into.Rate)
		r.arrivals(m.Get("arrivals"), &into.Arrivals)
		r.maxInFlight(m.Get("max_in_flight"), &into.MaxInFlight)
		return
	case c.Present():
		concurrency(c, &into.Concurrency)
	default:
		v.Reject("names no load", "write concurrency or rate")
	}
	for _, k := range []string{"arrivals", "max_in_flight"} {
		if w := m.Get(k); w.Present() {
			w.Reject("has no meaning beside concurrency", "remove it, or write rate instead of concurrency")
		}
	}
}

func (r *reader) phaseDuration(v strictyaml.Value, into *time.Duration, example string) {
	if !v.Require("write how long it lasts, such as duration: " + example) {
		return
	}
	d, ok := v.PositiveDuration()
	if !ok {
		return
	}
	if d < minPhase {
		v.Reject(fmt.Sprintf("%v is too short to tell anything", d), fmt.Sprintf("write at least %v", minPhase))
		return
	}
	*into = d
}

func (r *reader) fluctuations(v strictyaml.Value) {
	if !v.Present() {
		return
	}
	items := v.List()
	if len(items) > MaxFluctuations {
		v.Reject(fmt.Sprintf("has %d entries", len(items)), fmt.Sprintf("write at most %d", MaxFluctuations))
		return
	}
	for _, item := range items {
		r.fluctuation(item)
	}
}

func (r *reader) fluctuation(v strictyaml.Value) {
	m := v.Map(loadKeys("shape", "period", "at", "for")...)
	if !v.IsMap() {
		return
	}
	var f Fluctuation
	c := &f.Curve
	if s := m.Get("shape"); s.Require("write shape: square, spike or sine") {
		c.Shape, _ = s.OneOf(level.Square, level.Spike, level.Sine)
	}
	r.load(v, m, &f.HeldLoad,
		func(w strictyaml.Value, into *int) bool {
			low := 0
			r.pair(w, func(a, b strictyaml.Value) {
				if r.concurrency(a, &low) && r.concurrency(b, into) {
					c.Low, c.High = float64(low), float64(*into)
					r.rises(b, c)
				}
			})
			return true
		},
		func(w strictyaml.Value, into *float64) bool {
			r.pair(w, func(a, b strictyaml.Value) {
				if r.rate(a, &c.Low) && r.rate(b, into) {
					c.High, c.PerSecond = *into, true
					r.rises(b, c)
				}
			})
			return true
		})
	r.phaseDuration(m.Get("duration"), &f.Duration, "5m")
	r.curveTimes(m, c, f.Duration)
	r.plan.Fluctuations = append(r.plan.Fluctuations, f)
}

// pair reads a lowest and a highest level.
func (r *reader) pair(v strictyaml.Value, read func(low, high strictyaml.Value)) {
	items := v.List()
	if !v.IsList() {
		return
	}
	if len(items) != 2 {
		v.Reject(fmt.Sprintf("has %d levels", len(items)), "write the lowest and the highest, such as [2, 8]")
		return
	}
	read(items[0], items[1])
}

func (r *reader) rises(high strictyaml.Value, c *level.Curve) {
	if c.High <= c.Low {
		high.Reject(fmt.Sprintf("%s is not above %s", level.FormatRate(c.High), level.FormatRate(c.Low)), "write the lower level first, then the higher one")
	}
}

// curveTimes reads the times of a curve: a period, or when a spike comes and how long it lasts.
func (r *reader) curveTimes(m strictyaml.Map, c *level.Curve, duration time.Duration) {
	period, at, lasts := m.Get("period"), m.Get("at"), m.Get("for")
	without := func(vs ...strictyaml.Value) {
		for _, v := range vs {
			if v.Present() {
				v.Reject("has no meaning for a "+c.Shape, "remove it")
			}
		}
	}
	seconds := func(v strictyaml.Value, into *float64, example string) bool {
		if !v.Require("write " + example) {
			return false
		}
		d, ok := v.PositiveDuration()
		*into = d.Seconds()
		return ok
	}
	switch c.Shape {
	case level.Square, level.Sine:
		without(at, lasts)
		if seconds(period, &c.Period, "the time from one rise to the next, such as period: 1m") && duration > 0 && c.Period > duration.Seconds() {
			period.Reject(fmt.Sprintf("%gs is longer than the whole, %v", c.Period, duration), "shorten it, or lengthen duration")
		}
	case level.Spike:
		without(period)
		ok := seconds(at, &c.At, "when it comes, such as at: 1m")
		if seconds(lasts, &c.For, "how long it lasts, such as for: 20s") && ok && duration > 0 && c.At+c.For >= duration.Seconds() {
			lasts.Reject(fmt.Sprintf("ends at %gs, and nothing is left of %v to see it recover", c.At+c.For, duration), "lengthen duration")
		}
	}
}

func (r *reader) drills(v strictyaml.Value) {
	if !v.Present() {
		return
	}
	items := v.List()
	if len(items) > MaxDrills {
		v.Reject(fmt.Sprintf("has %d entries", len(items)), fmt.Sprintf("write at most %d", MaxDrills))
		return
	}
	names := map[string]bool{}
	for _, item := range items {
		r.drill(item, names)
	}
}

func (r *reader) drill(v strictyaml.Value, names map[string]bool) {
	m := v.Map(loadKeys("name", "at", "command", "request", "timeout", "for", "restore")...)
	if !v.IsMap() {
		return
	}
	if r.plan.Environment == Production {
		v.Reject("does harm on purpose, to a target that serves users", "drill a copy, with environment: isolated or staging")
		return
	}
	d := Drill{Action: Restore{Timeout: time.Minute}, Restore: Restore{Timeout: time.Minute}}
	if n := m.Get("name"); n.Require("name it, such as name: restart") {
		d.Name, _ = n.NonEmpty()
		if names[d.Name] {
			n.Reject(fmt.Sprintf("%q is the name of another drill", d.Name), "give each its own name")
		}
		names[d.Name] = true
	}
	r.load(v, m, &d.HeldLoad, r.concurrency, r.rate)
	r.phaseDuration(m.Get("duration"), &d.Duration, "3m")
	if at := m.Get("at"); at.Require("write when it is done, such as at: 30s") {
		d.At, _ = at.PositiveDuration()
		if d.Duration > 0 && d.At >= d.Duration {
			at.Reject(fmt.Sprintf("%v is not before the end at %v", d.At, d.Duration), "do it earlier, or lengthen duration")
		}
	}
	if !r.doing(m, &d.Action) {
		v.Reject("does nothing", "write command: [systemctl, restart, vllm], or request: {url: ...}")
	}
	if undo := m.Get("restore"); undo.Present() {
		if u := undo.Map("command", "request", "timeout"); undo.IsMap() && !r.doing(u, &d.Restore) {
			undo.Reject("does nothing", "write a command or a request")
		}
	}
	r.drillFor(m, &d)
	r.plan.Drills = append(r.plan.Drills, d)
}

func (r *reader) drillFor(m strictyaml.Map, d *Drill) {
	lasts := m.Get("for")
	if !lasts.Present() {
		return
	}
	d.For, _ = lasts.PositiveDuration()
	switch {
	case !m.Get("restore").Present():
		lasts.Reject("says when to undo the drill, but there is nothing that does", "write restore, or remove it")
	case d.Duration > 0 && d.At+d.For >= d.Duration:
		lasts.Reject(fmt.Sprintf("ends at %v, and nothing is left of %v to see it recover", d.At+d.For, d.Duration), "lengthen duration")
	}
}

// doing reads a command or a request; it is false when there is neither.
func (r *reader) doing(m strictyaml.Map, out *Restore) bool {
	command, request := m.Get("command"), m.Get("request")
	if command.Present() && request.Present() {
		request.Reject("stands beside command", "keep one of the two")
	}
	if command.Present() {
		out.Command = readCommand(command)
	}
	if request.Present() {
		out.Request = readRequest(request)
	}
	if d, ok := m.Get("timeout").PositiveDuration(); ok {
		out.Timeout = d
	}
	return command.Present() || request.Present()
}
