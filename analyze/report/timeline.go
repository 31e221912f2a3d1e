package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"firstbreach/analyze/verdict"
)

const (
	timelineWidth  vg.Length = 900
	stripHeight    vg.Length = 26
	panelHeight    vg.Length = 74
	timelineSeries           = 10   // panels at most
	timelineBins             = 600  // stretches of time drawn of each series, each by its least and greatest value
	uprights                 = 150  // lines at step starts; more would be a grey area
	gapFactor                = 3.5  // scrapes without a sample that break a line
	timelineMargin           = 0.01 // of the run, left and right
)

// timelineFigure draws the signals of the run over its time, with the steps above them.
func (d *Document) timelineFigure() (figure, bool) {
	series := d.timelineSeries()
	from, to := span(d.run.Steps)
	if len(series) == 0 || from == nil || to == nil || !to.After(*from) {
		return figure{}, false
	}
	start, length := unixOf(from), to.Sub(*from).Seconds()
	plots := [][]*plot.Plot{{d.strip(start, length)}}
	f := figure{Wide: true, Caption: "Time since " + clock(from) + ". Above: the load of each step. The shaded steps are those of the first breach.",
		Legend: []legendMark{{"area", "p-baseline", "baseline"}, {"area", "p-ramp", "ramp"}, {"area", "p-recovery", "recovery"}}}
	d.bandLegend(&f)
	if d.FirstBreach != nil {
		f.Legend[len(f.Legend)-1].Text = "steps of the first breach"
	}
	for i, s := range series {
		p := d.panel(s, start, length)
		if i == len(series)-1 {
			timeAxis(p, length)
		}
		plots = append(plots, []*plot.Plot{p})
	}
	height := stripHeight + vg.Length(len(series))*panelHeight + vg.Points(14)
	f.SVG = svg(timelineWidth, height, "Timeline of the run", func(c draw.Canvas) { drawStacked(c, plots) })
	return f, true
}

func unixOf(t *time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// timelineSeries are the series with a point, in layer order, as many as there is room for.
func (d *Document) timelineSeries() []verdict.Series {
	var out []verdict.Series
	for _, s := range d.run.Timeline {
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b verdict.Series) int { return timelineRank(a) - timelineRank(b) })
	return out[:min(len(out), timelineSeries)]
}

// timelineRank puts what the user felt first, then the queue, then the machine.
func timelineRank(s verdict.Series) int {
	order := []string{"requests_running", signalWaiting, "kv_cache_usage", signalCPU, signalGPU, signalMemory, signalVRAM, signalDisk}
	rank := slices.Index(order, s.Signal)
	if rank < 0 {
		rank = len(order)
	}
	return layerRank(s.Layer)*(len(order)+1) + rank
}

// drawStacked draws plots under each other with their X axes aligned.
func drawStacked(c draw.Canvas, plots [][]*plot.Plot) {
	// Align gives all tiles one height, so it is asked for the width alone; the heights are set here.
	tiles := draw.Tiles{Rows: len(plots), Cols: 1}
	aligned := plot.Align(plots, tiles, c)
	top := c.Max.Y
	for i, row := range plots {
		height := panelHeight
		switch i {
		case 0:
			height = stripHeight
		case len(plots) - 1:
			height += vg.Points(14)
		}
		at := aligned[i][0]
		at.Max.Y, at.Min.Y = top, top-height
		if i > 0 {
			at.Max.Y -= vg.Points(12) // room for the panel's name
			name := row[0].Title.Text
			row[0].Title.Text = ""
			c.FillText(draw.TextStyle{Color: inkText.stand(), Font: sans(9), YAlign: draw.YTop, Handler: row[0].TextHandler},
				vg.Point{X: row[0].DataCanvas(at).Min.X, Y: top - vg.Points(1)}, name)
		}
		row[0].Draw(at)
		top -= height
	}
}

// strip shows the steps of the run as blocks with their concurrency.
func (d *Document) strip(start, length float64) *plot.Plot {
	p := newPlot()
	p.HideY()
	p.X.LineStyle.Width, p.X.Tick.Length = 0, 0
	p.X.Tick.Marker = plot.ConstantTicks{}
	setTime(p, length)
	p.Y.Min, p.Y.Max = 0, 1
	p.Add(blocks{d.run.Steps, start})
	return p
}

// blocks draws each step of each round as a block.
type blocks struct {
	steps []verdict.Step
	start float64
}

// Plot implements plot.Plotter.
func (b blocks) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	style := draw.TextStyle{Color: inkPaper.stand(), Font: sans(9), XAlign: draw.XCenter, YAlign: draw.YCenter, Handler: p.TextHandler}
	for _, s := range b.steps {
		if s.Start == nil || s.End == nil {
			continue
		}
		left, right := x(*s.Start-b.start), x(*s.End-b.start)-vg.Points(0.6)
		c.SetColor(phaseInk(s.Phase).stand())
		c.Fill(vg.Rectangle{Min: vg.Point{X: left, Y: c.Min.Y}, Max: vg.Point{X: max(right, left+vg.Points(0.4)), Y: c.Max.Y}}.Path())
		if name := s.Level().String(); style.Width(name) < right-left {
			c.FillText(style, vg.Point{X: (left + right) / 2, Y: c.Center().Y}, name)
		}
	}
}

func phaseInk(phase string) ink {
	switch phase {
	case verdict.PhaseBaseline:
		return inkBaseline
	case verdict.PhaseRecovery:
		return inkRecovery
	}
	return inkRamp
}

func setTime(p *plot.Plot, length float64) {
	p.X.Min, p.X.Max = -timelineMargin*length, (1+timelineMargin)*length
}

// panel draws one series.
func (d *Document) panel(s verdict.Series, start, length float64) *plot.Plot {
	p := newPlot()
	p.Title.Text = plain(s.Signal)
	if s.Layer != "" {
		p.Title.Text += " (" + s.Layer + ")"
	}
	setTime(p, length)
	p.X.Tick.Marker, p.X.Tick.Length = plot.ConstantTicks{}, 0
	for _, step := range d.run.Steps {
		if d.FirstBreach != nil && step.Phase == verdict.PhaseRamp && step.Level() == d.FirstBreach.Level() && step.Start != nil && step.End != nil {
			p.Add(shade(*step.Start-start, *step.End-start))
		}
	}
	p.Add(gridLines())
	var most float64
	for _, run := range unbroken(s.Points) {
		var line plotter.XYs
		for _, q := range thin(run, timelineBins) {
			if x := q.T - start; x >= p.X.Min && x <= p.X.Max && !math.IsNaN(q.V) && !math.IsInf(q.V, 0) {
				line = append(line, plotter.XY{X: x, Y: q.V})
				most = math.Max(most, q.V)
			}
		}
		if len(line) > 0 {
			p.Add(curve(line, stroke(inkMain, 1.2)))
		}
	}
	half := halfway(most)
	if s.Unit == "ratio" && most <= 1 {
		half = 0.5
	}
	p.Y.Min, p.Y.Max = 0, 2*half
	p.Y.Tick.Marker = ticks([]float64{0, half, 2 * half}, func(v float64) string { return value(v, s.Unit) })
	for _, step := range d.run.Steps {
		if step.Start != nil && len(d.run.Steps) <= uprights {
			p.Add(upright{*step.Start - start})
		}
	}
	return p
}

// halfway is half of the end of an axis from 0 that shows most, a round number.
func halfway(most float64) float64 {
	if most <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(most/2)))
	for _, m := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 7.5} {
		if 2*m*unit >= most {
			return m * unit
		}
	}
	return 10 * unit
}

// upright is a thin line at a step's start.
type upright struct{ at float64 }

// Plot implements plot.Plotter.
func (u upright) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	c.StrokeLine2(stroke(inkGrid, 0.5), x(u.at), c.Min.Y, x(u.at), c.Max.Y)
}

// timeAxis labels the X axis in minutes and seconds.
func timeAxis(p *plot.Plot, length float64) {
	step := length
	for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400} {
		if length/s <= 12 {
			step = s
			break
		}
	}
	var at []float64
	for t := 0.0; t <= length; t += step {
		at = append(at, t)
	}
	p.X.Tick.Length = vg.Points(4)
	p.X.Tick.Marker = ticks(at, func(t float64) string {
		if length >= 3600 {
			return fmt.Sprintf("%d:%02d h", int(t)/3600, int(t)/60%60)
		}
		return fmt.Sprintf("%d:%02d", int(t)/60, int(t)%60)
	})
}

// unbroken cuts a series where samples are missing, so that no line bridges an outage.
func unbroken(points []verdict.Point) [][]verdict.Point {
	if len(points) < 3 {
		return [][]verdict.Point{points}
	}
	var gaps []float64
	for i := 1; i < len(points); i++ {
		gaps = append(gaps, points[i].T-points[i-1].T)
	}
	slices.Sort(gaps)
	widest := gapFactor * gaps[len(gaps)/2]
	var out [][]verdict.Point
	from := 0
	for i := 1; i <= len(points); i++ {
		if i == len(points) || points[i].T-points[i-1].T > widest {
			out, from = append(out, points[from:i]), i
		}
	}
	return out
}

// thin keeps, of each of a number of stretches, the least and the greatest value: what a line of so
// many pixels shows of the whole.
func thin(points []verdict.Point, bins int) []verdict.Point {
	if len(points) <= 2*bins {
		return points
	}
	var out []verdict.Point
	for b := range bins {
		part := points[b*len(points)/bins : (b+1)*len(points)/bins]
		low, high := part[0], part[0]
		for _, q := range part {
			if q.V < low.V {
				low = q
			}
			if q.V > high.V {
				high = q
			}
		}
		if low.T > high.T {
			low, high = high, low
		}
		if out = append(out, low); low != high {
			out = append(out, high)
		}
	}
	return out
}
