package query

import (
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
)

// maxTimeline bounds the points of one series of the picture.
const maxTimeline = 600

// ttftQuestions ask for the mean TTFT over the run. It is for the picture alone: a rate over four
// scrapes is smooth, not exact.
func (l *loader) ttftQuestions() []question {
	f := l.forms[signal.LoadgenTTFT]
	length := l.end.Sub(l.begin)
	if l.run.ScrapeInterval == 0 || length <= 0 || f.native+f.classic == 0 {
		return nil
	}
	every := max(l.resolution(length), (length/maxTimeline).Truncate(time.Millisecond)+time.Millisecond)
	over := max(4*seconds(l.run.ScrapeInterval), every)
	rate := func(metric string) promexpr.Expr { return promexpr.Rate(promexpr.Range(l.own(metric), over)) }
	top := f.either(promexpr.SumBy(rate(signal.LoadgenTTFT+suffixSum)), promexpr.HistogramSum(promexpr.SumBy(rate(signal.LoadgenTTFT))))
	bottom := f.either(promexpr.SumBy(rate(signal.LoadgenTTFT+suffixCount)), promexpr.HistogramCount(promexpr.SumBy(rate(signal.LoadgenTTFT))))
	return []question{{
		name: "mean TTFT over the run", expr: promexpr.Div(top, bottom), lenient: true,
		span: v1.Range{Start: l.begin, End: ceilSecond(l.end), Step: every},
		take: func(a answer) error { return l.ttft.take(a) },
	}}
}

// drawTimeline picks what the picture of the run shows: the load, the latency, and of service and
// machine the signals that people look at first and those with an objective.
func (l *loader) drawTimeline(signals []series) {
	shown := []string{
		signal.SignalRequestsRunning, signal.SignalRequestsWaiting, signal.SignalKVCacheUsage,
		signal.SignalCPUUtilization, signal.SignalMemoryUtilization, signal.SignalGPUUtilization, signal.SignalGPUMemoryUtilization,
	}
	for _, o := range l.SLO.Objectives {
		shown = append(shown, o.Signal)
		if o.Signal == "" {
			shown = append(shown, o.Name)
		}
	}
	l.draw(series{name: "in_flight_requests", layer: signal.LayerUser, unit: signal.UnitRequests, line: l.inFlightLine()})
	l.draw(series{name: signal.SignalTTFT, layer: signal.LayerUser, unit: signal.UnitSeconds, line: l.ttft.line})
	for _, r := range slices.Concat(signals, l.expressions) {
		if slices.Contains(shown, r.name) {
			l.draw(r)
		}
	}
}

// keepSignals hands on every signal as it was sampled.
func (l *loader) keepSignals(signals []series) {
	for _, r := range slices.Concat(signals, l.expressions) {
		i, j := window(r.line, unix(l.begin)-margin.Seconds(), unix(l.end)+margin.Seconds())
		if i < j {
			l.run.Signals = append(l.run.Signals, verdict.Series{Signal: r.name, Layer: r.layer, Unit: r.unit, Points: r.line[i:j]})
		}
	}
}

func (l *loader) draw(r series) {
	i, j := window(r.line, unix(l.begin)-margin.Seconds(), unix(l.end)+margin.Seconds())
	if i < j {
		l.run.Timeline = append(l.run.Timeline, verdict.Series{
			Signal: r.name, Layer: r.layer, Unit: r.unit, Points: thin(r.line[i:j], maxTimeline),
		})
	}
}

// inFlightLine adds up the requests in flight of the steps that are on the page at each scrape, and
// then of the shards.
func (l *loader) inFlightLine() []verdict.Point {
	shards := map[string]map[float64]float64{}
	for _, x := range l.inFlight {
		if shards[x.name] == nil {
			shards[x.name] = map[float64]float64{}
		}
		for _, p := range x.points {
			shards[x.name][p.T] += p.V
		}
	}
	var ts []*track
	for name, at := range shards {
		t := &track{key: name}
		for x, v := range at {
			t.points = append(t.points, verdict.Point{T: x, V: v})
		}
		slices.SortFunc(t.points, func(a, b verdict.Point) int {
			if a.T < b.T {
				return -1
			}
			return 1
		})
		ts = append(ts, t)
	}
	f := formula{
		metric: signal.Metric{Reading: signal.ReadValue, Aggregate: signal.Sum, Scale: 1},
		top:    [1]operand{{tracks: ts}}, times: grid(ts), stale: 3 * l.run.ScrapeInterval,
	}
	return f.line()
}

// thin averages neighbours until at most n points are left.
func thin(ps []verdict.Point, n int) []verdict.Point {
	if len(ps) <= n {
		return slices.Clone(ps)
	}
	each := (len(ps) + n - 1) / n
	var out []verdict.Point
	for chunk := range slices.Chunk(ps, each) {
		var t, v float64
		for _, p := range chunk {
			t += p.T
			v += p.V
		}
		out = append(out, verdict.Point{T: t / float64(len(chunk)), V: v / float64(len(chunk))})
	}
	return out
}
