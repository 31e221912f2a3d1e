package run

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// Progress shows people how a run goes. Its methods are called from one goroutine at a time.
type Progress interface {
	// Every is the time between two updates.
	Every() time.Duration
	Begin(p Place)
	Update(p Place, g record.Glance)
	// End closes a step; stopped says what cut it short, "" when it ran its course.
	End(p Place, g record.Glance, stopped string)
	Note(text string)
}

// Place is where in the run a step is.
type Place struct {
	plan.Stage
	Rounds   int // in all
	Number   int // of the step in its round, all phases together
	Of       int // 0 in a search: how many steps there will be is not known
	Requests int // measured requests that are planned; 0 where a time is planned instead
}

func (p Place) String() string {
	if p.Of == 0 {
		return fmt.Sprintf("search  %-8s  %s, round %d", p.Phase, p.Level().Words(), p.Round)
	}
	return fmt.Sprintf("round %d/%d  %-8s  step %d/%d  %s", p.Round, p.Rounds, p.Phase, p.Number, p.Of, p.Level().Words())
}

// short fits beside a bar and the figures into 80 columns, so that no line wraps.
func (p Place) short() string {
	unit := "c="
	if p.Rate > 0 {
		unit = "r="
	}
	if p.Of == 0 {
		return fmt.Sprintf("search %s %s%s #%d", p.Phase, unit, p.Level(), p.Round)
	}
	return fmt.Sprintf("%d/%d %s %s%s", p.Round, p.Rounds, p.Phase, unit, p.Level())
}

// figures are the three numbers of the measured requests so far.
func figures(g record.Glance) string {
	if g.Finished == 0 {
		return fmt.Sprintf("warming up (%d requests)", g.All)
	}
	ttft := "-"
	if g.TTFTP95 > 0 {
		ttft = g.TTFTP95.Round(g.TTFTP95 / 100).Round(10 * time.Microsecond).String()
	}
	rate := "-"
	if g.Elapsed > 0 {
		rate = fmt.Sprintf("%.1f", float64(g.Finished)/g.Elapsed.Seconds())
	}
	return fmt.Sprintf("TTFT P95 %s  ok %.1f%%  %s req/s", ttft, 100*float64(g.OK)/float64(g.Finished), rate)
}

// NewProgress shows a bar on a terminal, and plain lines elsewhere.
func NewProgress(w io.Writer, terminal bool) Progress {
	if terminal {
		return &bar{w: w}
	}
	return lines{w}
}

// lines writes a line for each step that ends, and one about every five seconds meanwhile.
type lines struct{ w io.Writer }

func (l lines) Every() time.Duration { return 5 * time.Second }
func (l lines) Begin(Place)          {}
func (l lines) Note(text string)     { fmt.Fprintln(l.w, text) }

func (l lines) Update(p Place, g record.Glance) {
	fmt.Fprintf(l.w, "%s  ... %d measured  %s\n", p, g.Finished, figures(g))
}

func (l lines) End(p Place, g record.Glance, stopped string) {
	fmt.Fprintln(l.w, ending(p, g, stopped))
}

func ending(p Place, g record.Glance, stopped string) string {
	line := fmt.Sprintf("%s  %d measured  %s", p, g.Finished, figures(g))
	if stopped != "" {
		line += "  [" + stopped + "]"
	}
	return line
}

// bar shows the step under way as a bar, and leaves a line for each that has ended.
type bar struct {
	w   io.Writer
	bar *progressbar.ProgressBar
}

func (b *bar) Every() time.Duration { return 250 * time.Millisecond }

func (b *bar) Begin(p Place) {
	limit := p.Requests
	if limit <= 0 {
		limit = -1 // a spinner
	}
	b.bar = progressbar.NewOptions(limit, progressbar.OptionSetWriter(b.w), progressbar.OptionClearOnFinish(),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetWidth(10), progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionSetDescription(p.short()))
}

func (b *bar) Update(p Place, g record.Glance) {
	b.bar.Describe(p.short() + "  " + figures(g))
	n := g.Finished
	if p.Requests > 0 {
		n = min(n, p.Requests-1) // at its limit the bar would take itself off while the step still drains
	}
	_ = b.bar.Set(n)
}

func (b *bar) End(p Place, g record.Glance, stopped string) {
	_ = b.bar.Clear()
	fmt.Fprintln(b.w, ending(p, g, stopped))
}

func (b *bar) Note(text string) { fmt.Fprintln(b.w, text) }

// silent shows nothing.
type silent struct{}

func (silent) Every() time.Duration             { return time.Hour }
func (silent) Begin(Place)                      {}
func (silent) Update(Place, record.Glance)      {}
func (silent) End(Place, record.Glance, string) {}
func (silent) Note(string)                      {}

// show keeps the progress of a step up to date until the function it returns is called.
func (r *Runner) show(p Place, live lives) (stop func()) {
	r.opts.Progress.Begin(p)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(r.opts.Progress.Every())
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				r.opts.Progress.Update(p, live.Glance(now))
			}
		}
	})
	return func() { close(done); wg.Wait() }
}
