package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"firstbreach/internal/figures"
	"firstbreach/internal/level"
)

// How certain it is which layer turned first.
const (
	Consistent   State = "consistent"   // the same in every round; with three rounds no more than that
	Undetermined State = "undetermined" // the rounds contradict each other, or the intervals overlap
)

// The layers that a breach can be attributed to.
const (
	layerService  = "service"
	layerResource = "resource"
	layerBoth     = "resource and service"
)

// Attribution says which layer turned abnormal first, as far as the run can tell.
type Attribution struct {
	FirstLayer string // service, resource and service; "" when nothing is attributed
	Certainty  State  // "" when nothing is attributed
	Rounds, Of int    // valid rounds at the breach that agree
	Text       string
	Onsets     []SignalOnset
	Hypotheses []Hypothesis
	Clues      []string // what stood out without being a cause
}

// SignalOnset is when a signal left its normal range.
type SignalOnset struct {
	Signal, Layer, Unit string
	Follows             bool         // rises with load as it should: no sign of trouble
	At                  *level.Level // the first step at which it had, in two thirds of the rounds
	Rounds              []RoundOnset
	Of                  int     // rounds looked at
	Normal              *Normal // over the baseline of all rounds; nil for a user objective
	Reason              string  // why there is no onset
}

// RoundOnset is the onset in one round.
type RoundOnset struct {
	Round  int
	Level  level.Level
	Within Interval
	// Inside says that it began while the load of its step was held, not when the step began: more load
	// did not bring it about.
	Inside bool
}

// Follows reports whether a signal is one of those that rise with load in a healthy service.
func Follows(signal string) bool {
	return slices.Contains([]string{"requests_running", "prompt_tokens", "output_tokens", "requests_finished", "disk_read_bytes", "disk_written_bytes"}, signal)
}

// Queueing reports whether a service signal is one of trouble.
func Queueing(signal string) bool {
	return slices.Contains([]string{"requests_waiting", "queue_time", "preemptions", "kv_cache_usage", "rejections"}, signal)
}

// DetectorOf is what leaving the normal range means for a signal.
func DetectorOf(signal, unit string, n Normal, interval float64) Detector {
	d := Detector{Effect: math.Max(0.2*math.Abs(n.Median), LeastRise(unit)), Delay: interval}
	switch signal {
	case "requests_waiting":
		d.Least = 0.999
	case "kv_cache_usage":
		d.Least = 0.9
	case "cpu_utilization", "gpu_utilization", "disk_utilization", "memory_utilization", "gpu_memory_utilization":
		d.Effect = math.Max(d.Effect, 0.1)
	}
	return d
}

// attribute finds the onsets, and from them which layer turned first.
func (r *Result) attribute(run Run) {
	a := &Attribution{}
	r.Attribution = a
	if r.State == Invalid || r.State == NoData {
		a.Text = "Nothing is attributed: the measurement is not good enough."
		return
	}
	a.Onsets = append(r.userOnsets(run), r.signalOnsets(run)...)
	a.Clues = r.clues(a)
	if r.FirstBreach == nil {
		a.Text = "Nothing is attributed: no objective broke."
		if len(a.Clues) > 0 {
			a.Text += " What stood out in the machine is a clue at most."
		}
		return
	}
	r.decideLayer(run, a)
	a.Hypotheses = r.hypotheses(run, a)
}

// ramps gives, for each round, its valid steps of the ladder in order of time.
func (r *Result) ramps(run Run) map[int][]Step {
	out := map[int][]Step{}
	for _, s := range run.Steps {
		if s.Phase != PhaseRamp || s.Start == nil || s.End == nil {
			continue
		}
		if at := r.At(PhaseRamp, s.Level()); at != nil && slices.ContainsFunc(at.Rounds, func(x RoundResult) bool { return x.Round == s.Round && x.Step == s.Step && x.Valid }) {
			out[s.Round] = append(out[s.Round], s)
		}
	}
	for _, steps := range out {
		slices.SortFunc(steps, func(a, b Step) int { return cmp.Compare(*a.Start, *b.Start) })
	}
	return out
}

// userOnsets are those of every per-request objective that broke at a step of the ladder.
func (r *Result) userOnsets(run Run) []SignalOnset {
	ramps := r.ramps(run)
	var out []SignalOnset
	for _, o := range run.Objectives {
		if !o.perRequest() {
			continue
		}
		s := SignalOnset{Signal: o.Name, Layer: "user", Of: len(ramps), Reason: "it kept within its allowance"}
		for _, round := range sortedRounds(ramps) {
			for _, step := range ramps[round] {
				c := step.Counts[o.Name]
				at := r.At(PhaseRamp, step.Level()).Objective(o.Name)
				if at == nil || at.Verdict != Breach || c.Total == 0 || float64(c.Slow+c.Failed) <= at.Allowance*float64(c.Total) {
					continue
				}
				within, ok := step.userOnset(o)
				if !ok {
					within = Interval{From: *step.Start, To: *step.End}
				}
				s.Rounds = append(s.Rounds, RoundOnset{Round: round, Level: step.Level(), Within: within})
				break
			}
		}
		s.settle()
		out = append(out, s)
	}
	return out
}

// sortedRounds are the numbers of the rounds, rising.
func sortedRounds(m map[int][]Step) []int {
	var out []int
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// settle finds the step at which two thirds of the rounds had turned.
func (s *SignalOnset) settle() {
	levels := make([]level.Level, 0, len(s.Rounds))
	for _, x := range s.Rounds {
		levels = append(levels, x.Level)
	}
	slices.SortFunc(levels, level.Level.Compare)
	need := (2*s.Of + 2) / 3
	if need == 0 || len(levels) < need {
		if len(levels) > 0 {
			s.Reason = fmt.Sprintf("only in %d of %d rounds", len(levels), s.Of)
		}
		return
	}
	s.At, s.Reason = &levels[need-1], ""
}

// signalOnsets are those of every service and resource signal.
func (r *Result) signalOnsets(run Run) []SignalOnset {
	ramps := r.ramps(run)
	var out []SignalOnset
	for _, series := range run.Signals {
		if series.Layer == "user" {
			continue
		}
		var values []float64
		for _, s := range run.Steps {
			if s.Phase == PhaseBaseline && s.Start != nil && s.End != nil {
				for _, p := range within(series.Points, *s.Start, *s.End) {
					values = append(values, p.V)
				}
			}
		}
		n := NormalOf(values, FloorOf(series.Unit))
		s := SignalOnset{Signal: series.Signal, Layer: series.Layer, Unit: series.Unit, Follows: Follows(series.Signal), Of: len(ramps), Normal: &n,
			Reason: "it stayed in the range of the baseline"}
		if n.Samples < onsetRun {
			s.Reason = "too few samples at the baseline to know its normal range"
		}
		d := DetectorOf(series.Signal, series.Unit, n, run.ScrapeInterval)
		for _, round := range sortedRounds(ramps) {
			steps := ramps[round]
			at, ok := Onset(series.Points, n, d, *steps[0].Start, *steps[len(steps)-1].End)
			if !ok {
				continue
			}
			in := steps[0]
			for _, step := range steps {
				if *step.Start <= at.To {
					in = step
				}
			}
			s.Rounds = append(s.Rounds, RoundOnset{Round: round, Level: in.Level(), Within: at,
				Inside: at.From > *in.Start+2*run.ScrapeInterval})
		}
		s.settle()
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b SignalOnset) int { return cmp.Compare(layerOrder(a.Layer), layerOrder(b.Layer)) })
	return out
}

// within are the points of (from, to].
func within(ps []Point, from, to float64) []Point {
	i, _ := slices.BinarySearchFunc(ps, from, func(p Point, t float64) int {
		if p.T <= t {
			return -1
		}
		return 1
	})
	j := i
	for j < len(ps) && ps[j].T <= to {
		j++
	}
	return ps[i:j]
}

// turned are the signals of a layer that had turned at or below a level.
func (a *Attribution) turned(layer string, upTo level.Level) []SignalOnset {
	var out []SignalOnset
	for _, s := range a.Onsets {
		if s.Layer == layer && !s.Follows && s.At != nil && s.At.Compare(upTo) <= 0 && (layer != layerService || Queueing(s.Signal)) {
			out = append(out, s)
		}
	}
	return out
}

// decideLayer attributes the first breach.
func (r *Result) decideLayer(run Run, a *Attribution) {
	at := r.FirstBreach.Level()
	service, resource := a.turned(layerService, at), a.turned(layerResource, at)
	a.Of = r.FirstBreach.Rounds
	slow := r.slowed(at)
	var outside []SignalOnset // resources that rose while the load was held
	for _, s := range resource {
		if s.insideRounds(at)*3 >= 2*s.Of {
			outside = append(outside, s)
		}
	}
	switch {
	case len(outside) > 0 && (len(service) > 0 || slow != ""):
		a.FirstLayer, a.Certainty, a.Rounds = layerBoth, Consistent, outside[0].insideRounds(at)
		a.Text = fmt.Sprintf("%s rose while the load of %s was held: more load did not bring that about. ", names(outside), outside[0].At.Words())
		if a.Rounds < a.Of {
			a.Certainty = Undetermined
		}
		if len(service) > 0 {
			a.Text += "The service turned with it: " + names(service) + "."
		} else {
			a.Text += "The service slowed with it: " + slow + "."
		}
	case len(service) > 0:
		first := slices.MinFunc(service, func(x, y SignalOnset) int { return x.At.Compare(*y.At) })
		a.FirstLayer, a.Certainty, a.Rounds = layerService, Consistent, first.roundsUpTo(at)
		if a.Rounds < a.Of {
			a.Certainty = Undetermined
		}
		a.Text = fmt.Sprintf("The service turned at or before the step at which users felt it: %s, in %d of %d rounds.", names(service), a.Rounds, a.Of)
		a.Text += orderAgainst(first, resource)
	case slow != "" && len(resource) > 0:
		a.FirstLayer, a.Certainty, a.Rounds = layerBoth, Undetermined, len(resource[0].Rounds)
		a.Text = fmt.Sprintf("Nothing waited, but the service slowed (%s) while %s was up.", slow, names(resource))
	case len(resource) > 0:
		a.Certainty = Undetermined
		a.Text = fmt.Sprintf("No service signal turned before the users felt it. %s was up, which by itself is a clue and not a cause.", names(resource))
	default:
		a.Certainty = Undetermined
		a.Text = "Neither a service nor a resource signal turned at or before the breach."
		if !slices.ContainsFunc(run.Signals, func(s Series) bool { return s.Layer == layerService }) {
			a.Text = "There is no service signal to tell the layer by: name the engine and its metrics."
		}
	}
	if !slices.ContainsFunc(run.Signals, func(s Series) bool { return s.Layer == layerResource }) {
		a.Text += " The resource layer has no data."
	}
}

// orderAgainst says how the resources stand to the first service signal.
func orderAgainst(first SignalOnset, resource []SignalOnset) string {
	var earlier, same []SignalOnset
	for _, s := range resource {
		switch c := s.At.Compare(*first.At); {
		case c < 0:
			earlier = append(earlier, s)
		case c == 0:
			same = append(same, s)
		}
	}
	var text string
	if len(earlier) > 0 {
		text += fmt.Sprintf(" %s had turned at a lower step, at which users felt nothing: a clue.", names(earlier))
	}
	for _, s := range same {
		text += fmt.Sprintf(" Its order against %s, in the same step, is %s.", words(s.Signal), order(s, first))
	}
	return text
}

// order compares two onsets round by round.
func order(a, b SignalOnset) string {
	before, after, of := 0, 0, 0
	for _, x := range a.Rounds {
		for _, y := range b.Rounds {
			if x.Round != y.Round {
				continue
			}
			of++
			switch {
			case x.Within.Before(y.Within):
				before++
			case y.Within.Before(x.Within):
				after++
			}
		}
	}
	switch {
	case of > 0 && before == of:
		return fmt.Sprintf("before it in %d of %d rounds (consistent)", before, of)
	case of > 0 && after == of:
		return fmt.Sprintf("after it in %d of %d rounds (consistent)", after, of)
	}
	return "undetermined: the intervals overlap"
}

// insideRounds counts the rounds in which the signal rose while the load was held, at or below a level.
func (s SignalOnset) insideRounds(upTo level.Level) int {
	n := 0
	for _, x := range s.Rounds {
		if x.Inside && x.Level.Compare(upTo) <= 0 {
			n++
		}
	}
	return n
}

func (s SignalOnset) roundsUpTo(l level.Level) int {
	n := 0
	for _, x := range s.Rounds {
		if x.Level.Compare(l) <= 0 {
			n++
		}
	}
	return n
}

// names lists signals with the step at which they turned.
func names(ss []SignalOnset) string {
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = fmt.Sprintf("%s (from %s)", words(s.Signal), s.At.Words())
	}
	return strings.Join(out, ", ")
}

// slowed says how the engine itself worked more slowly at a level than at the one before it, or "".
func (r *Result) slowed(at level.Level) string {
	now := r.At(PhaseRamp, at)
	before := r.beforeBreach()
	if now == nil || before == nil {
		return ""
	}
	var why []string
	if c, ok := changeOf(*before, *now, quantity{"time per output token", "seconds", func(x RoundResult) *float64 { return x.Latency.TPOT.P50 }, false}); ok && c.Ratio() >= 1.2 {
		why = append(why, c.words())
	}
	if a, b := before.Measured.OutputTokensPerSecond, now.Measured.OutputTokensPerSecond; a != nil && b != nil && *b < 0.8**a {
		why = append(why, fmt.Sprintf("output tokens down %s %%", figures.Write(100*(1 - *b / *a), 2)))
	}
	return strings.Join(why, ", ")
}

// beforeBreach is the step to compare a breach with: the last that held, else the baseline.
func (r *Result) beforeBreach() *StepResult {
	if l, ok := r.FirstBreach.LastOKLevel(); ok {
		return r.At(PhaseRamp, l)
	}
	return r.firstOf(PhaseBaseline)
}

// ceiling is the share from which a machine is as good as full.
const ceiling = 0.9

// clues are resources that stood out, whether or not something broke.
func (r *Result) clues(a *Attribution) []string {
	var out []string
	for _, name := range []string{"cpu_utilization", "gpu_utilization", "disk_utilization", "memory_utilization", "gpu_memory_utilization"} {
		if s := r.firstOf(PhaseBaseline); s != nil {
			if m := s.Readings[name].Mean; m != nil && *m >= ceiling {
				out = append(out, fmt.Sprintf("%s was %s at the baseline already, before the load", words(name), percent(*m)))
				continue
			}
		}
		for _, s := range r.measuredLadder() {
			if m := s.Readings[name].Mean; m != nil && *m >= ceiling {
				out = append(out, fmt.Sprintf("%s was %s at %s, the first step at which it was %s or more", words(name), percent(*m), s.Level().Words(), percent(ceiling)))
				break
			}
		}
	}
	for _, s := range a.Onsets {
		if n := len(s.Rounds); s.Layer == layerResource && n > 0 && s.At == nil {
			out = append(out, fmt.Sprintf("%s rose in %d of %d rounds, at %s", words(s.Signal), n, s.Of, s.Rounds[0].Level.Words()))
		}
	}
	return out
}
