package window

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"firstbreach/analyze/query"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/burnrate"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/sli"
	"firstbreach/internal/slo"
)

// Bounds of a window.
const (
	LeastBins = 10
	MostBins  = 10_000 // Prometheus gives at most 11,000 points of a series
	gapShare  = 0.05   // of the bins: with more of them unseen, nothing is called ok
)

// Options say what to judge, and where its series are.
type Options struct {
	SLO *slo.File
	URL string // base of a Prometheus HTTP API
	// Client is used in place of URL when it is set, for instance one with credentials.
	Client api.Client
	From   time.Time // moved later, by less than a bin, to a whole number of bins
	To     time.Time
	Now    time.Time // our clock
	// Resolution is the width of a bin; when 0, 1 m up to a window of 6 h, 5 m up to 14 d, 15 m beyond.
	Resolution time.Duration
}

// OptionError is a window that can't be judged as it was asked for.
type OptionError struct{ Text string }

func (e *OptionError) Error() string { return e.Text }

func (o Options) withDefaults() (Options, int, error) {
	bad := func(format string, args ...any) (Options, int, error) {
		return o, 0, &OptionError{fmt.Sprintf(format, args...)}
	}
	span := o.To.Sub(o.From)
	switch {
	case o.SLO == nil:
		return bad("no SLO file: the objectives say what to read")
	case span <= 0:
		return bad("the window ends at %s, which is not after its beginning %s", stamp(o.To), stamp(o.From))
	case o.To.After(o.Now):
		return bad("the window ends at %s, which is in the future: now is %s", stamp(o.To), stamp(o.Now))
	}
	if o.Resolution == 0 {
		switch {
		case span <= 6*time.Hour:
			o.Resolution = time.Minute
		case span <= 14*24*time.Hour:
			o.Resolution = 5 * time.Minute
		default:
			o.Resolution = 15 * time.Minute
		}
	}
	n := int(span / o.Resolution)
	switch {
	case o.Resolution < 10*time.Second:
		return bad("a resolution of %v is finer than scrapes are: write at least four times the scrape interval, such as 1m", o.Resolution)
	case n < LeastBins:
		return bad("a window of %v has %d bins of %v: take one of at least %v, or a finer resolution", span, n, o.Resolution, LeastBins*o.Resolution)
	case n > MostBins:
		return bad("a window of %v has %d bins of %v, and Prometheus gives at most %d: take a coarser resolution", span, n, o.Resolution, MostBins)
	}
	o.From = o.To.Add(-time.Duration(n) * o.Resolution)
	return o, n, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Analyze judges the window. The error is an *OptionError, a *strictyaml.Error where the SLO file asks
// what the engine's series can't answer exactly, or says that Prometheus can't be asked.
func Analyze(ctx context.Context, o Options) (*Result, error) {
	o, n, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	ratios, err := sli.Ratios(o.SLO) // before anything is asked
	if err != nil {
		return nil, err
	}
	ask, err := query.OpenRanges(query.Options{URL: o.URL, Client: o.Client})
	if err != nil {
		return nil, &OptionError{err.Error()}
	}
	a := &analysis{Options: o, ask: ask, n: n}
	r := &Result{Service: o.SLO.Service, Engine: o.SLO.Engine, SLO: o.SLO.Path, From: o.From.UTC(), To: o.To.UTC(), ResolutionS: o.Resolution.Seconds(),
		PeriodS: o.SLO.Window.Seconds(), Bins: n, Limits: limits()}
	flight, err := a.inFlight(ctx, ratios)
	if err != nil {
		return nil, err
	}
	signals, layers, err := a.signals(ctx)
	if err != nil {
		return nil, err
	}
	r.Layers = layers
	for _, ratio := range ratios {
		c, err := a.counts(ctx, ratio)
		if err != nil {
			return nil, err
		}
		ob := a.judge(ratio, c)
		ob.InFlight = levels(c, flight, c.allowance)
		for i := range ob.Breaches {
			attribute(&ob.Breaches[i], signals, layers, a)
		}
		r.GapBins = max(r.GapBins, ob.GapBins)
		r.Objectives = append(r.Objectives, ob)
	}
	if r.Gauges, r.Skipped, err = a.gauges(ctx); err != nil {
		return nil, err
	}
	together(r.Objectives)
	r.Verdict = overall(r.Objectives)
	r.Log = ask.Log
	return r, nil
}

func limits() []string {
	return []string{
		"This was watched, not tried: that an objective broke at some number of requests in flight doesn't show that the number broke it. Slow requests stay in flight longer, so trouble of any origin raises that number. A load test (analyze standalone) can tell.",
		"The intervals take requests for independent. Within an incident they are not: see the breaches for where they bunched.",
		"Requests are counted when they end, as increase() estimates from scrapes: a bin's count is right to about one scrape interval at its edges, and the window's to one at each end.",
	}
}

// Check is an error, a *strictyaml.Error, where a file asks what no window can answer exactly, such as a
// threshold that is no bucket edge.
func Check(f *slo.File) error {
	_, err := sli.Ratios(f)
	return err
}

// analysis is one window under way.
type analysis struct {
	Options
	ask *query.Ranges
	n   int // bins
}

// start is where bin i begins.
func (a *analysis) start(i int) time.Time { return a.From.Add(time.Duration(i) * a.Resolution).UTC() }

// series evaluates an expression that gives one series at the end of every bin; NaN where it gives
// nothing.
func (a *analysis) series(ctx context.Context, name string, e promexpr.Expr) ([]float64, error) {
	return a.finer(ctx, name, e, 1)
}

// whole evaluates an expression once, at the end of the window; ok is false where it gives nothing.
func (a *analysis) whole(ctx context.Context, name string, e promexpr.Expr) (v float64, ok bool, err error) {
	m, err := a.ask.Range(ctx, name, e, v1.Range{Start: a.To, End: a.To, Step: a.Resolution})
	if err != nil || len(m) != 1 || len(m[0].Values) != 1 {
		return 0, false, err
	}
	v = float64(m[0].Values[0].Value)
	return v, v >= 0, nil
}

// finer does so at parts of each bin.
func (a *analysis) finer(ctx context.Context, name string, e promexpr.Expr, parts int) ([]float64, error) {
	step := a.Resolution / time.Duration(parts)
	m, err := a.ask.Range(ctx, name, e, v1.Range{Start: a.From.Add(step), End: a.To, Step: step})
	if err != nil {
		return nil, err
	}
	if len(m) > 1 {
		return nil, fmt.Errorf("%s: Prometheus answered with %d series in place of one", name, len(m))
	}
	out := make([]float64, a.n*parts)
	for i := range out {
		out[i] = math.NaN()
	}
	for _, s := range m {
		for _, p := range s.Values {
			i := int(math.Round(p.Timestamp.Time().Sub(a.From).Seconds()/step.Seconds())) - 1
			if i >= 0 && i < len(out) {
				out[i] = float64(p.Value)
			}
		}
	}
	return out, nil
}

// counted are an objective's requests, bin by bin: when they were. How many there were in all is
// asked for the window as a whole, since a bin's increase stands on one scrape interval less than it
// has.
type counted struct {
	bad, total []float64
	all, miss  int64  // of the whole window, and the bad ones among them
	seen       []bool // something was scraped
	allowance  float64
}

// busy reports whether requests ended in a bin.
func (c counted) busy(i int) bool { return c.seen[i] && c.total[i] > 0 }

// over reports whether more of a bin's requests were bad than may be.
func (c counted) over(i int) bool { return c.busy(i) && c.bad[i] > c.allowance*c.total[i] }

func (c counted) sum(from, to int) (bad, total int64) {
	var b, t float64
	for i := from; i < to; i++ {
		if c.busy(i) {
			b, t = b+c.bad[i], t+c.total[i]
		}
	}
	return int64(math.Round(math.Min(b, t))), int64(math.Round(t))
}

func (a *analysis) counts(ctx context.Context, r sli.Ratio) (c counted, err error) {
	name := r.Objective.Name
	if c.total, err = a.series(ctx, name+": all requests of each bin", promexpr.SumBy(r.Total(sli.IncreaseOver(a.Resolution)))); err != nil {
		return c, err
	}
	if c.bad, err = a.series(ctx, name+": bad requests of each bin", promexpr.SumBy(r.Bad(sli.IncreaseOver(a.Resolution)))); err != nil {
		return c, err
	}
	up, err := a.series(ctx, name+": whether a target was scraped in each bin", promexpr.MaxBy(promexpr.MaxOverTime(promexpr.Range(r.Source.Up(), a.Resolution))))
	if err != nil {
		return c, err
	}
	c.allowance, _ = burnrate.Budget(r.Objective.Target).Float64()
	c.seen = make([]bool, a.n)
	for i := range c.seen {
		c.seen[i] = up[i] >= 1 || c.total[i] >= 0
		if c.seen[i] && !(c.total[i] >= 0) {
			c.total[i] = 0 // its series begin with the first request
		}
		if c.seen[i] && !(c.bad[i] >= 0) {
			c.bad[i] = 0
		}
	}
	span := a.To.Sub(a.From)
	all, ok, err := a.whole(ctx, name+": all requests of the window", promexpr.SumBy(r.Total(sli.IncreaseOver(span))))
	if err != nil {
		return c, err
	}
	miss, some, err := a.whole(ctx, name+": bad requests of the window", promexpr.SumBy(r.Bad(sli.IncreaseOver(span))))
	if err != nil {
		return c, err
	}
	c.miss, c.all = c.sum(0, a.n)
	if ok && some {
		c.all, c.miss = int64(math.Round(all)), int64(math.Round(math.Min(miss, all)))
	}
	return c, nil
}

// judge says what the counts show of an objective.
func (a *analysis) judge(r sli.Ratio, c counted) Objective {
	o := r.Objective
	ob := Objective{Name: o.Name, Signal: o.Signal, Text: textOf(o), Target: o.Target.Float(), Owner: o.Owner, Contact: a.SLO.Owners[o.Owner].Contact,
		Action: o.Action, Runbook: o.Runbook, Source: r.Source.Name, Histogram: r.Histogram, Notes: r.Notes}
	for i := range c.seen {
		switch {
		case !c.seen[i]:
			ob.GapBins++
		case !c.busy(i):
			ob.IdleBins++
		}
	}
	ob.Bad, ob.Requests = c.miss, c.all
	if ob.Requests == 0 {
		ob.State, ob.Reason = NoData, "No request ended in the window: that is neither good nor bad."
		if ob.GapBins == a.n {
			ob.Reason = "Nothing was scraped in the window: check selectors." + r.Source.Name + " in the SLO file, and the target."
		}
		return ob
	}
	k, n := float64(ob.Bad), float64(ob.Requests)
	good := 1 - k/n
	ci := verdict.ClopperPearson(k, n)
	goodCI := [2]float64{1 - ci[1], 1 - ci[0]}
	burn := k / n / c.allowance
	spent := burn * a.To.Sub(a.From).Seconds() / a.SLO.Window.Seconds()
	ob.Good, ob.Interval, ob.BurnRate, ob.Spent = &good, &goodCI, &burn, &spent
	ob.Breaches = a.incidents(o, c)
	switch {
	case verdict.AtMost(k, n, c.allowance) > verdict.Alpha:
		ob.State = Undecided
		ob.Reason = fmt.Sprintf("%d requests are too few, or too near the target, to tell %s from %s.", ob.Requests, percent(good), percent(o.Target.Float()))
	case float64(ob.GapBins) > gapShare*float64(a.n):
		ob.State = Undecided
		ob.Reason = fmt.Sprintf("What was seen is good, but in %d of %d bins nothing was scraped.", ob.GapBins, a.n)
	default:
		ob.State = OK
	}
	return ob
}

// together decides which objectives broke: each claim of a breach is corrected for the others (Holm).
func together(list []Objective) {
	var ps []float64
	var of []int
	for i, ob := range list {
		if ob.State != NoData {
			ps, of = append(ps, verdict.AtLeast(float64(ob.Bad), float64(ob.Requests), 1-ob.Target)), append(of, i)
		}
	}
	for j, p := range verdict.Holm(ps) {
		if p <= verdict.Alpha {
			list[of[j]].State, list[of[j]].Reason = Breach, ""
		}
	}
}

// overall is the verdict of the objectives together. One without data beside others with requests isn't
// idle: its series are missing, and nothing is ok by the rest alone.
func overall(list []Objective) State {
	count := map[State]int{}
	for _, ob := range list {
		count[ob.State]++
	}
	for i := range list {
		if list[i].State == NoData && count[NoData] < len(list) {
			list[i].Reason = "Its series counted no request, while those of other objectives did: look whether the service exports what is read (see Queries)."
		}
	}
	switch {
	case count[Breach] > 0:
		return Breach
	case count[Undecided] > 0, count[OK] > 0 && count[NoData] > 0:
		return Undecided
	case count[OK] > 0:
		return OK
	}
	return NoData
}

// incidents are the stretches in which more was bad than may be, and more than chance explains: the
// exact test of each, at Alpha over the number of stretches that a window has (Bonferroni), so that a
// sound window shows none in 19 of 20.
func (a *analysis) incidents(o slo.Objective, c counted) []Incident {
	level := verdict.Alpha / (float64(a.n) * float64(a.n+1) / 2)
	var out []Incident
	for i := 0; i < a.n; i++ {
		if !c.over(i) {
			continue
		}
		last, good := i, 0
		for j := i + 1; j < a.n && good < 2; j++ {
			switch {
			case c.over(j):
				last, good = j, 0
			case c.busy(j):
				good++
			}
		}
		bad, total := c.sum(i, last+1)
		if verdict.AtLeast(float64(bad), float64(total), c.allowance) <= level {
			out = append(out, a.incident(o, c, i, last, bad, total))
		}
		i = last
	}
	return out
}

func (a *analysis) incident(o slo.Objective, c counted, first, last int, bad, total int64) Incident {
	before := first - 1
	for before >= 0 && !c.busy(before) {
		before--
	}
	// A request that ended in the first bad bin had been under way for its threshold at least.
	in := Incident{Onset: [2]time.Time{a.start(before + 1).Add(-o.Threshold), a.start(first + 1)}, Before: before < 0, Requests: total, Bad: bad}
	for after := last + 1; after < a.n; after++ {
		if c.busy(after) {
			in.End = &[2]time.Time{a.start(last), a.start(after + 1)}
			break
		}
	}
	return in
}

func textOf(o slo.Objective) string {
	if o.Kind == slo.Latency {
		return fmt.Sprintf("%s within %v for %s", plain(o.Signal), o.Threshold, o.Target.Text())
	}
	return fmt.Sprintf("%s of at least %s", plain(o.Signal), o.Target.Text())
}

func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e6)/1e4, 'f', -1, 64) + " %"
}
