package drive

import (
	"time"

	"firstbreach/loadgen/record"
)

// at calls f at a moment, at once where it has passed. Each edge sets the timer of the next, so that
// they come in order even in a step that begins too late. The gate's lock is held.
func (g *gate) at(t time.Time, f func()) {
	g.timers = append(g.timers, time.AfterFunc(time.Until(t), f))
}

// edgeMeasure begins measuring.
func (g *gate) edgeMeasure() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.summary.Cold = g.finished < g.step.Warmup
	g.beginMeasure(time.Now())
	g.at(g.step.Edges.MeasureTo, g.edgeDrain)
}

// edgeDrain ends measuring; the load goes on.
func (g *gate) edgeDrain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.window != record.Measure {
		return
	}
	g.endMeasure(time.Now())
	g.at(g.step.Edges.SendUntil, g.edgeClose)
}

// edgeClose ends the load.
func (g *gate) edgeClose() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.summary.Undrained = g.outstanding
	}
	g.close()
}
