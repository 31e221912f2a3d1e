package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// ink is a colour of the page. A chart is drawn with a stand-in of its own for each, which the SVG
// then has replaced by the page's variable: so it follows light, dark and print.
type ink int

// The colours of charts, by the CSS variable that holds them.
const (
	inkPaper ink = iota
	inkText
	inkGrid
	inkMain
	inkSecond
	inkLimit
	inkBand
	inkFit
	inkBaseline
	inkRamp
	inkRecovery
	inkCount
)

// variable is the CSS variable of a colour.
func (i ink) variable() string {
	return [inkCount]string{"paper", "muted", "grid", "c1", "c2", "limit", "band", "fit", "p-baseline", "p-ramp", "p-recovery"}[i]
}

// stand is the stand-in drawn for a colour.
func (i ink) stand() color.Color { return color.RGBA{R: 0x0D, G: 0xEC, B: 0x10 + byte(i), A: 0xFF} }

// hex is how the SVG writes the stand-in.
func (i ink) hex() string { return fmt.Sprintf("#0DEC%02X", 0x10+int(i)) }

// mark is one entry of a chart's legend.
type legendMark struct{ Class, Ink, Text string }

// figure is a chart with what stands around it.
type figure struct {
	Title, Caption string
	Legend         []legendMark
	SVG            template.HTML
	Wide           bool
}

const (
	chartWidth  vg.Length = 440
	chartHeight vg.Length = 235
)

// newPlot is an empty plot in the page's colours.
func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.LineStyle.Color = inkGrid.stand()
		a.LineStyle.Width = vg.Points(0.8)
		a.Tick.LineStyle = a.LineStyle
		a.Tick.Length = vg.Points(4)
		a.Padding = vg.Points(2)
		a.Tick.Label.Color = inkText.stand()
		a.Tick.Label.Font = sans(9)
		a.Label.TextStyle.Color = inkText.stand()
		a.Label.TextStyle.Font = sans(9)
	}
	p.Y.Tick.LineStyle.Width = 0 // only room between label and plot
	p.Y.LineStyle.Width = 0
	return p
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// stroke is a line style in a colour of the page.
func stroke(i ink, width float64, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: i.stand(), Width: vg.Points(width), Dashes: dashes}
}

// gridLines draws a line at each labelled tick of the Y axis.
func gridLines() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Width = 0
	g.Horizontal = stroke(inkGrid, 0.6)
	return g
}

// svg renders a drawing and hands its colours over to the page.
func svg(width, height vg.Length, label string, drawOn func(draw.Canvas)) template.HTML {
	c := vgsvg.New(width, height)
	drawOn(draw.New(c))
	var buf bytes.Buffer
	if _, err := c.WriteTo(&buf); err != nil {
		return "" // a bytes.Buffer doesn't fail
	}
	return adopt(buf.String(), label)
}

// adopt makes a stand-alone SVG part of the page: no prologue, no size of its own, the page's font
// and colours, and a name for those who don't see it.
func adopt(s, label string) template.HTML {
	if at := strings.Index(s, "<svg"); at >= 0 {
		s = s[at:]
	}
	head := strings.Index(s, ">")
	box := regexp.MustCompile(`viewBox="[^"]*"`).FindString(s[:head])
	s = fmt.Sprintf(`<svg %s role="img" aria-label="%s">`, box, template.HTMLEscapeString(label)) + s[head+1:]
	s = regexp.MustCompile(`font-family:[^;"]*;font-variant:[^;"]*;font-weight:[^;"]*;font-style:[^;"]*;?`).ReplaceAllString(s, "")
	for i := range inkCount {
		s = strings.ReplaceAll(s, i.hex(), "var(--"+i.variable()+")")
	}
	return template.HTML(s) //nolint:gosec // drawn here; vgsvg escapes every text in it
}

// ticks are labelled marks at given places.
func ticks(at []float64, label func(float64) string) plot.ConstantTicks {
	var t plot.ConstantTicks
	for _, v := range at {
		t = append(t, plot.Tick{Value: v, Label: label(v)})
	}
	return t
}

// stepAxis puts the steps of the ladder on the X axis, evenly apart.
func stepAxis(p *plot.Plot, steps []Step) {
	const labels = 14
	every := (len(steps) + labels - 1) / labels
	var t plot.ConstantTicks
	for i, s := range steps {
		if every < 2 || i%every == 0 {
			t = append(t, plot.Tick{Value: float64(i), Label: s.Level().String()})
		}
	}
	p.X.Tick.Marker = t
	p.X.Min, p.X.Max = -0.4, float64(len(steps))-0.6
	p.X.Label.Text = steps[0].Level().Kind()
}

// niceTop is the end of an axis from 0 that shows most.
func niceTop(most float64) float64 {
	if most <= 0 {
		return 1
	}
	return most * 1.08
}

// linearTicks are a few round numbers from 0 to top.
func linearTicks(top float64, label func(float64) string) plot.ConstantTicks {
	step := math.Pow(10, math.Floor(math.Log10(top)))
	switch n := top / step; {
	case n < 1.5:
		step /= 4
	case n < 3:
		step /= 2
	case n > 6:
		step *= 2
	}
	var at []float64
	for v := 0.0; v <= top*1.0001; v += step {
		at = append(at, v)
	}
	return ticks(at, label)
}

// logTicks are 1, 2 and 5 of each decade between two values.
func logTicks(low, high float64, label func(float64) string) plot.ConstantTicks {
	var at []float64
	wide := high/low > 300
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v >= low && v <= high && (m == 1 || !wide) {
				at = append(at, v)
			}
		}
	}
	return ticks(at, label)
}

// bracketBand shades the stretch in which the first breach lies.
func (d *Document) bracketBand(p *plot.Plot, steps []Step) {
	if d.FirstBreach == nil {
		return
	}
	from, to := -0.4, -1.0
	for i, s := range steps {
		if l, ok := d.FirstBreach.LastOKLevel(); ok && s.Level() == l {
			from = float64(i)
		}
		if s.Level() == d.FirstBreach.Level() {
			to = float64(i)
		}
	}
	if to < from {
		return
	}
	p.Add(shade(from, to))
}

// band is a vertical stretch over the whole height of a plot.
type band struct {
	from, to float64
	ink      ink
}

func shade(from, to float64) band { return band{from, to, inkBand} }

// Plot implements plot.Plotter.
func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	left, right := max(x(b.from), c.Min.X), min(x(b.to), c.Max.X)
	c.SetColor(b.ink.stand())
	c.Fill(vg.Rectangle{Min: vg.Point{X: left, Y: c.Min.Y}, Max: vg.Point{X: right, Y: c.Max.Y}}.Path())
}

// across is a horizontal line over the whole width of a plot.
type across struct {
	at    float64
	style draw.LineStyle
}

// Plot implements plot.Plotter.
func (l across) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	c.StrokeLine2(l.style, c.Min.X, y(l.at), c.Max.X, y(l.at))
}

// DataRange implements plot.DataRanger.
func (l across) DataRange() (xmin, xmax, ymin, ymax float64) {
	return math.Inf(1), math.Inf(-1), l.at, l.at
}

// dots draws small discs, or rings for what is only one round.
func dots(points plotter.XYs, i ink, radius float64, ring bool) plot.Plotter {
	s := &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: i.stand(), Radius: vg.Points(radius), Shape: draw.CircleGlyph{}}}
	if ring {
		s.Shape = draw.RingGlyph{}
	}
	return s
}

// curve draws a line through points.
func curve(points plotter.XYs, style draw.LineStyle) plot.Plotter {
	return &plotter.Line{XYs: points, LineStyle: style}
}
