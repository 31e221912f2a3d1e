package window

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/sli"
	"firstbreach/internal/slo"
)

const (
	service  = "service"
	resource = "resource"
	lead     = time.Hour // how long before a breach a signal may have turned to have to do with it
	// An onset takes three samples in a row (verdict.Onset).
	leastBinsOfOnset = 3
	leastNormal      = 10 // samples that a normal range stands on
	rateOver         = 5  // bins that a rate is taken over, at most 5 m
)

// reading is a service or resource signal over the window.
type reading struct {
	signal.Signal
	values []float64
}

// signals reads every service and resource signal that the file's sources have: the greatest of their
// instances.
func (a *analysis) signals(ctx context.Context) ([]reading, []Layer, error) {
	layers := []Layer{{Name: service}, {Name: resource}}
	var out []reading
	over := max(a.Resolution, min(5*time.Minute, rateOver*a.Resolution))
	for _, s := range signal.Signals() {
		at := slices.IndexFunc(layers, func(l Layer) bool { return l.Name == s.Layer })
		if at < 0 {
			continue
		}
		src, err := sli.SourceOf(a.SLO, s)
		if err != nil {
			return nil, nil, err
		}
		if len(src.Matchers) == 0 {
			layers[at].note("selectors." + src.Name + " is not in the SLO file")
			continue
		}
		e, ok := src.Reading(s.Name, over)
		if !ok {
			continue
		}
		values, err := a.series(ctx, s.Name+" at the end of each bin", promexpr.MaxBy(e))
		if err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(values, func(v float64) bool { return !math.IsNaN(v) }) {
			continue
		}
		layers[at].Signals = append(layers[at].Signals, s.Name)
		out = append(out, reading{s, values})
	}
	for i := range layers {
		if len(layers[i].Signals) > 0 {
			layers[i].Reason = ""
		} else if layers[i].Reason == "" {
			layers[i].Reason = "its series have no sample in the window"
		}
	}
	return out, layers, nil
}

func (l *Layer) note(reason string) {
	if l.Reason == "" {
		l.Reason = reason
	} else if !strings.Contains(l.Reason, reason) {
		l.Reason += "; " + reason
	}
}

// attribute says which layer turned first around an incident.
func attribute(in *Incident, signals []reading, layers []Layer, a *analysis) {
	in.Sure = string(verdict.Undetermined)
	if in.Before {
		in.Text = "It was on when the window began: what turned first lies before it."
		return
	}
	from, to := in.Onset[0].Add(-lead), in.Onset[1].Add(2*a.Resolution)
	judged := 0
	for _, s := range signals {
		if verdict.Follows(s.Name) || s.Layer == service && !verdict.Queueing(s.Name) {
			continue
		}
		var points []verdict.Point
		var normal []float64
		for i, v := range s.values {
			if math.IsNaN(v) {
				continue
			}
			t := a.start(i + 1)
			points = append(points, verdict.Point{T: seconds(t), V: v})
			if t.Before(from) || t.Equal(from) {
				normal = append(normal, v)
			}
		}
		if len(normal) < leastNormal {
			continue
		}
		judged++
		n := verdict.NormalOf(normal, verdict.FloorOf(s.Unit))
		at, ok := verdict.Onset(points, n, verdict.DetectorOf(s.Name, s.Unit, n, a.Resolution.Seconds()), seconds(from), seconds(to.Add(lead)))
		if ok && at.From <= seconds(to) {
			in.Turned = append(in.Turned, Turned{Signal: s.Name, Layer: s.Layer, Unit: s.Unit, Onset: [2]time.Time{moment(at.From), moment(at.To)}, Normal: n.Median})
		}
	}
	if judged == 0 && len(signals) > 0 {
		in.Text = fmt.Sprintf("What turned first can't be told: there are fewer than %d bins until %v before it, from which a signal's normal range would be known. Begin the window earlier.", leastNormal, lead)
		return
	}
	slices.SortStableFunc(in.Turned, func(x, y Turned) int { return x.Onset[1].Compare(y.Onset[1]) })
	if lasted := in.lasted(a); len(in.Turned) == 0 && lasted < leastBinsOfOnset {
		in.Text = fmt.Sprintf("It lasted %d bins of %v: too short to see whether a signal left its normal range, which takes %d. A finer resolution may tell.", lasted, a.Resolution, leastBinsOfOnset)
		return
	}
	in.conclude(layers)
}

// lasted is for how many bins an incident was seen.
func (in *Incident) lasted(a *analysis) int {
	end := a.To
	if in.End != nil {
		end = in.End[0].Add(a.Resolution)
	}
	return int(end.Sub(in.Onset[1])/a.Resolution) + 1
}

func (in *Incident) conclude(layers []Layer) {
	of := func(layer string) (list []Turned) {
		for _, t := range in.Turned {
			if t.Layer == layer {
				list = append(list, t)
			}
		}
		return list
	}
	svc, res := of(service), of(resource)
	switch {
	case len(svc) > 0 && len(res) > 0:
		switch {
		case slices.ContainsFunc(res, func(t Turned) bool { return t.Onset[1].Before(svc[0].Onset[0]) }):
			in.Layer = resource + " and " + service
			in.Text = fmt.Sprintf("%s left its normal range before %s did.", names(res), names(svc))
		case !slices.ContainsFunc(res, func(t Turned) bool { return !svc[0].Onset[1].Before(t.Onset[0]) }):
			in.Layer, in.Sure = service, string(verdict.Consistent)
			in.Text = fmt.Sprintf("%s left its normal range before %s did.", names(svc), names(res))
		default:
			in.Text = fmt.Sprintf("%s and %s turned in the same interval: their order can't be told at this resolution.", names(svc), names(res))
		}
	case len(svc) > 0:
		in.Layer, in.Sure = service, string(verdict.Consistent)
		in.Text = names(svc) + " left its normal range; no resource did."
	case len(res) > 0:
		in.Text = names(res) + " left its normal range, which by itself is a clue and not a cause; no service signal did."
	default:
		in.Text = "No service or resource signal left its normal range around it."
	}
	for _, l := range layers {
		if len(l.Signals) == 0 {
			in.Text += fmt.Sprintf(" The %s layer has no data: %s.", l.Name, l.Reason)
			if l.Name == resource {
				in.Sure = string(verdict.Undetermined)
			}
		}
	}
}

func names(list []Turned) string {
	var out []string
	for _, t := range list {
		out = append(out, plain(t.Signal))
	}
	return strings.Join(out, ", ")
}

func plain(name string) string { return strings.ReplaceAll(name, "_", " ") }

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func moment(s float64) time.Time { return time.UnixMilli(int64(math.Round(s * 1000))).UTC() }

// gauges judges the objectives on service and resource signals by the samples at the bins' ends, and
// lists what a window can't answer.
func (a *analysis) gauges(ctx context.Context) (out []Gauge, skipped []Skipped, err error) {
	for _, o := range a.SLO.Objectives {
		if o.Kind.PerRequest() {
			continue
		}
		if o.Kind != slo.Gauge && o.Kind != slo.Expression {
			skipped = append(skipped, Skipped{o.Name, "only a load test answers it"})
			continue
		}
		v, err := sli.NewValue(a.SLO, o)
		if err != nil {
			skipped = append(skipped, Skipped{o.Name, err.Error()})
			continue
		}
		values, err := a.series(ctx, o.Name+": its worst reading at the end of each bin", v.Worst())
		if err != nil {
			return nil, nil, err
		}
		out = append(out, a.gauge(o, values))
	}
	return out, skipped, nil
}

func (a *analysis) gauge(o slo.Objective, values []float64) Gauge {
	g := Gauge{Name: o.Name, Layer: string(o.Layer), State: OK, Owner: o.Owner, Action: o.Action}
	var bounds []string
	if o.Max != nil {
		bounds = append(bounds, fmt.Sprintf("at most %v", *o.Max))
	}
	if o.Min != nil {
		bounds = append(bounds, fmt.Sprintf("at least %v", *o.Min))
	}
	g.Bound = strings.Join(bounds, ", ")
	if o.For > 0 {
		g.Bound += fmt.Sprintf(", not longer than %v", o.For)
	}
	run, known := 0, 0
	for i, v := range values {
		if math.IsNaN(v) {
			run = 0
			continue
		}
		known++
		if g.Worst == nil || (o.Max != nil && v > *g.Worst) || (o.Max == nil && v < *g.Worst) {
			g.Worst = &v
		}
		if (o.Max == nil || v <= *o.Max) && (o.Min == nil || v >= *o.Min) {
			run = 0
			continue
		}
		g.Over++
		run++
		// A run of samples over spans at least the time between its first and its last.
		lasted := time.Duration(run-1) * a.Resolution
		g.LongestS = max(g.LongestS, lasted.Seconds())
		if lasted >= o.For && g.State != Breach {
			since := a.start(i + 2 - run)
			g.State, g.Since = Breach, &since
		}
	}
	switch {
	case known == 0:
		g.State, g.Reason = NoData, "its series have no sample in the window"
	case g.State == OK && float64(len(values)-known) > gapShare*float64(len(values)):
		g.State, g.Reason = Undecided, fmt.Sprintf("%d of %d bins have no sample", len(values)-known, len(values))
	}
	return g
}
