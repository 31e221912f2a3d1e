package report

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// ladderFigures are the charts by concurrency.
func (d *Document) ladderFigures() []figure {
	steps := d.charted()
	if len(steps) == 0 {
		return nil
	}
	var out []figure
	for _, o := range d.latencyCharts() {
		if f, ok := d.latencyFigure(steps, o); ok {
			out = append(out, f)
		}
	}
	for _, o := range d.Objectives {
		if f, ok := d.exceedanceFigure(steps, o); ok {
			out = append(out, f)
		}
	}
	if f, ok := d.throughputFigure(steps); ok {
		out = append(out, f)
	}
	return out
}

// latencyCharts are the latency objectives of the file, and TTFT in any case.
func (d *Document) latencyCharts() []Objective {
	var out []Objective
	ttft := false
	for _, o := range d.Objectives {
		if o.Kind == "latency" && latencyOfSignal(Latency{}, o.Signal) != nil {
			out = append(out, o)
			ttft = ttft || o.Signal == "time_to_first_token"
		}
	}
	if !ttft {
		out = append(out, Objective{Signal: "time_to_first_token"})
	}
	return out
}

// latencyOfSignal picks the quantiles of a signal; nil for one that isn't kept.
func latencyOfSignal(l Latency, signal string) *Quantiles {
	switch signal {
	case "time_to_first_token":
		return &l.TTFT
	case "request_duration":
		return &l.E2E
	case "time_per_output_token":
		return &l.TPOT
	}
	return nil
}

// quantileOf picks the quantile that an objective's target speaks of, P95 unless it is one of the
// other two.
func quantileOf(o Objective) (name string, pick func(Quantiles) *float64) {
	switch strings.TrimRight(o.Target, "0") {
	case "0.99":
		return "P99", func(q Quantiles) *float64 { return q.P99 }
	case "0.5":
		return "P50", func(q Quantiles) *float64 { return q.P50 }
	}
	return "P95", func(q Quantiles) *float64 { return q.P95 }
}

func (d *Document) latencyFigure(steps []Step, o Objective) (figure, bool) {
	name, pick := quantileOf(o)
	get := func(l Latency) *float64 { return pick(*latencyOfSignal(l, o.Signal)) }
	var line, rounds plotter.XYs
	for i, s := range steps {
		if v := get(s.Latency); v != nil {
			line = append(line, plotter.XY{X: float64(i), Y: *v})
		}
		for j, r := range s.Rounds {
			if v := get(r.Latency); v != nil && r.Valid {
				rounds = append(rounds, plotter.XY{X: aside(i, j, len(s.Rounds)), Y: *v})
			}
		}
	}
	if len(line) == 0 {
		return figure{}, false
	}
	title := latencyName(o.Signal) + " " + name + " by " + steps[0].Level().Kind()
	f := figure{Title: title, Caption: "Quantiles are estimates, for reading only; the verdict counts requests over the line.",
		Legend: []legendMark{{"line", "c1", "all rounds"}, {"ring", "c1", "one round"}}}
	p := newPlot()
	stepAxis(p, steps)
	d.bracketBand(p, steps)
	all := append(append(plotter.XYs{}, line...), rounds...)
	if o.Threshold != nil {
		all = append(all, plotter.XY{Y: *o.Threshold})
		f.Legend = append(f.Legend, legendMark{"dash", "limit", "SLO " + seconds(*o.Threshold)})
	}
	scaleSeconds(p, all)
	p.Add(gridLines())
	if o.Threshold != nil {
		p.Add(across{*o.Threshold, stroke(inkLimit, 1.4, vg.Points(5), vg.Points(3))})
	}
	p.Add(curve(line, stroke(inkMain, 1.8)), dots(line, inkMain, 2.6, false), dots(rounds, inkMain, 2.4, true))
	f.SVG = svg(chartWidth, chartHeight, title, p.Draw)
	d.bandLegend(&f)
	return f, true
}

// aside puts the rounds of a step side by side, so that equal ones all show.
func aside(step, round, rounds int) float64 {
	const width = 0.16
	if rounds < 2 {
		return float64(step)
	}
	return float64(step) + width*(float64(round)/float64(rounds-1)-0.5)
}

// bandLegend explains the shaded stretch.
func (d *Document) bandLegend(f *figure) {
	if d.FirstBreach != nil {
		f.Legend = append(f.Legend, legendMark{"area", "band", "first breach"})
	}
}

// scaleSeconds chooses the Y axis for durations: logarithmic where they span more than a decade.
func scaleSeconds(p *plot.Plot, points plotter.XYs) {
	low, high := math.Inf(1), 0.0
	for _, q := range points {
		low, high = math.Min(low, q.Y), math.Max(high, q.Y)
	}
	if low > 0 && high/low > 10 {
		p.Y.Min, p.Y.Max = low*0.8, high*1.25
		p.Y.Scale = plot.LogScale{}
		p.Y.Tick.Marker = logTicks(p.Y.Min, p.Y.Max, seconds)
		return
	}
	p.Y.Min, p.Y.Max = 0, niceTop(high)
	p.Y.Tick.Marker = linearTicks(p.Y.Max, seconds)
}

// errorBars is a share with its interval.
type errorBars struct {
	plotter.XYs
	plotter.YErrors
}

func (d *Document) exceedanceFigure(steps []Step, o Objective) (figure, bool) {
	var points, rounds, fit plotter.XYs
	var bars errorBars
	var allowance float64
	for i, s := range steps {
		for _, r := range s.Objectives {
			if r.Name != o.Name || r.Share == nil {
				continue
			}
			x := float64(i)
			allowance = r.Allowance
			points = append(points, plotter.XY{X: x, Y: *r.Share})
			if r.CI != nil {
				bars.XYs = append(bars.XYs, plotter.XY{X: x, Y: *r.Share})
				bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{*r.Share - r.CI[0], r.CI[1] - *r.Share})
			}
			if r.Isotonic != nil {
				fit = append(fit, plotter.XY{X: x, Y: *r.Isotonic})
			}
			for j, one := range r.PerRound {
				rounds = append(rounds, plotter.XY{X: aside(i, j, len(r.PerRound)), Y: float64(one.Bad) / float64(one.Total)})
			}
		}
	}
	if len(points) == 0 {
		return figure{}, false
	}
	title := o.Name + ": requests that missed it, by " + steps[0].Level().Kind()
	f := figure{Title: title, Caption: fmt.Sprintf("%s. The scale is that of square roots, so that small shares show.", o.Text),
		Legend: []legendMark{{"bar", "c1", "share, 95 % CI"}, {"ring", "c1", "one round"}, {"line", "fit", "isotonic fit"}, {"dash", "limit", "allowed " + percent(allowance)}}}
	p := newPlot()
	stepAxis(p, steps)
	d.bracketBand(p, steps)
	scaleShare(p, bars, rounds, allowance)
	p.Add(gridLines(), across{allowance, stroke(inkLimit, 1.4, vg.Points(5), vg.Points(3))}, curve(fit, stroke(inkFit, 1.2)))
	if e, err := plotter.NewYErrorBars(bars); err == nil {
		e.LineStyle = stroke(inkMain, 1.4)
		e.CapWidth = vg.Points(8)
		p.Add(e)
	}
	p.Add(dots(points, inkMain, 3, false), dots(rounds, inkMain, 2.4, true))
	f.SVG = svg(chartWidth, chartHeight, title, p.Draw)
	d.bandLegend(&f)
	return f, true
}

// rootScale puts square roots on an axis that begins at 0.
type rootScale struct{}

// Normalize implements plot.Normalizer.
func (rootScale) Normalize(low, high, x float64) float64 {
	return math.Sqrt(math.Max(0, x-low)) / math.Sqrt(high-low)
}

// scaleShare chooses the Y axis for shares.
func scaleShare(p *plot.Plot, bars errorBars, rounds plotter.XYs, allowance float64) {
	most := 2 * allowance
	for i, b := range bars.XYs {
		most = math.Max(most, b.Y+bars.YErrors[i].High)
	}
	for _, r := range rounds {
		most = math.Max(most, r.Y)
	}
	p.Y.Min, p.Y.Max = 0, math.Min(1, most*1.05)
	p.Y.Scale = rootScale{}
	var at []float64
	last := -1.0
	for _, v := range []float64{0, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1} {
		place := rootScale{}.Normalize(0, p.Y.Max, v)
		if v <= p.Y.Max && place-last > 0.085 {
			at, last = append(at, v), place
		}
	}
	p.Y.Tick.Marker = ticks(at, percent)
}

func (d *Document) throughputFigure(steps []Step) (figure, bool) {
	series := []struct {
		ink  ink
		name string
		pick func(Throughput) *float64
	}{
		{inkSecond, "ok requests", func(t Throughput) *float64 { return t.Requests }},
		{inkMain, "goodput: met every objective", func(t Throughput) *float64 { return t.Goodput }},
	}
	title := "Throughput and goodput by " + steps[0].Level().Kind() + ", requests per second"
	f := figure{Title: title, Caption: "Goodput that falls while throughput holds is work done too late to count."}
	p := newPlot()
	stepAxis(p, steps)
	d.bracketBand(p, steps)
	p.Add(gridLines())
	var most float64
	for _, s := range series {
		var line, rounds plotter.XYs
		for i, at := range steps {
			if v := s.pick(at.Throughput); v != nil {
				line = append(line, plotter.XY{X: float64(i), Y: *v})
				most = math.Max(most, *v)
			}
			for j, r := range at.Rounds {
				if v := s.pick(r.Throughput); v != nil && r.Valid {
					rounds = append(rounds, plotter.XY{X: aside(i, j, len(at.Rounds)), Y: *v})
					most = math.Max(most, *v)
				}
			}
		}
		if len(line) == 0 {
			return figure{}, false
		}
		p.Add(curve(line, stroke(s.ink, 1.8)), dots(line, s.ink, 2.6, false), dots(rounds, s.ink, 2.4, true))
		f.Legend = append(f.Legend, legendMark{"line", s.ink.variable(), s.name})
	}
	f.Legend = append(f.Legend, legendMark{"ring", "muted", "one round"})
	p.Y.Min, p.Y.Max = 0, niceTop(most)
	p.Y.Tick.Marker = linearTicks(p.Y.Max, significant)
	f.SVG = svg(chartWidth, chartHeight, title, func(c draw.Canvas) { p.Draw(c) })
	d.bandLegend(&f)
	return f, true
}
