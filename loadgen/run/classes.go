package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"firstbreach/internal/slo"
	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// makeClasses makes a target for each class of the plan: its own prompts, headers and priority, to the
// same endpoint.
func (r *Runner) makeClasses() error {
	for i, c := range r.opts.Plan.Classes {
		if r.opts.Target != nil { // given by whoever runs this: it knows of no classes
			r.classes = append(r.classes, r.opts.Target)
			continue
		}
		t, err := NewTarget(r.opts.Plan.ForClass(i), r.opts.RunID)
		if err != nil {
			return fmt.Errorf("class %s: %w", c.Name, err)
		}
		r.classes = append(r.classes, t)
	}
	return nil
}

// body is the body of a step's n-th request.
func (r *Runner) body(s plan.Stage, n int) []byte {
	if len(r.classes) == 0 {
		return r.target.Body(s, n)
	}
	return r.classes[r.opts.Plan.ClassOf(n)].Body(s, n)
}

// promptsSHA256 is the digest over the prompts of all classes.
func (r *Runner) promptsSHA256() string {
	if len(r.classes) == 0 {
		return r.target.PromptsSHA256()
	}
	h := sha256.New()
	for _, t := range r.classes {
		fmt.Fprintln(h, t.PromptsSHA256())
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (r *Runner) driveClasses() []drive.Class {
	var all []drive.Class
	for i, c := range r.opts.Plan.Classes {
		all = append(all, drive.Class{Sender: r.classes[i], MaxInFlight: c.MaxInFlight})
	}
	return all
}

// recordClasses are the classes with their objectives; a plan without any has one that has no name.
func (r *Runner) recordClasses() []record.Class {
	all := r.opts.SLO.Objectives
	if len(r.opts.Plan.Classes) == 0 {
		return []record.Class{{Objectives: all}}
	}
	var classes []record.Class
	for _, c := range r.opts.Plan.Classes {
		own := record.Class{Name: c.Name, Objectives: all}
		if c.Objectives != nil {
			own.Objectives = slices.DeleteFunc(slices.Clone(all), func(o slo.Objective) bool { return !slices.Contains(c.Objectives, o.Name) })
		}
		classes = append(classes, own)
	}
	return classes
}

func classesOf(p *plan.Plan) []record.ManifestClass {
	var all []record.ManifestClass
	for _, c := range p.Classes {
		all = append(all, record.ManifestClass{Name: c.Name, Weight: c.Weight, Priority: c.Priority, MaxInFlight: c.MaxInFlight, Objectives: c.Objectives})
	}
	return all
}

// lives is a step that is being driven: one entry, or one for each class.
type lives []*record.Step

// ID names the step, without its class where it has several.
func (l lives) ID() record.StepID {
	id := l[0].ID()
	if len(l) > 1 {
		id.Class = ""
	}
	return id
}

// End marks the values as final.
func (l lives) End(now time.Time) {
	for _, s := range l {
		s.End(now)
	}
}

// Limit marks the step as one in which the client was the bottleneck, whatever the class.
func (l lives) Limit(x record.Limit) {
	for _, s := range l {
		s.Limit(x)
	}
}

// Warn notes what the client says about itself.
func (l lives) Warn(text string) {
	for _, s := range l {
		s.Warn(text)
	}
}

// Glance is what a progress line shows, over all classes; of the TTFT that of the slowest.
func (l lives) Glance(now time.Time) record.Glance {
	var g record.Glance
	for _, s := range l {
		one := s.Glance(now)
		g.Finished, g.OK, g.All, g.InFlight = g.Finished+one.Finished, g.OK+one.OK, g.All+one.All, g.InFlight+one.InFlight
		g.TTFTP95, g.Elapsed = max(g.TTFTP95, one.TTFTP95), max(g.Elapsed, one.Elapsed)
	}
	return g
}

// recorder keeps a step's requests: first in the ledger, then on the page, so that no counter ever
// holds a request without a line.
type recorder struct {
	lives
	ledger *record.Ledger
}

// Enter implements drive.Recorder.
func (r recorder) Enter(w record.Window, now time.Time) {
	for _, s := range r.lives {
		s.Enter(w, now)
	}
}

// Sent, Returned and BackingOff implement drive.Recorder.
func (r recorder) Sent(class int, now time.Time)     { r.lives[class].Sent(now) }
func (r recorder) Returned(class int, now time.Time) { r.lives[class].Returned(now) }
func (r recorder) BackingOff(class, slots int, now time.Time) {
	r.lives[class].BackingOff(slots, now)
}

// Record implements drive.Recorder.
func (r recorder) Record(q record.Request) error {
	s := r.lives[q.Class]
	if err := r.ledger.Append(s.ID(), q); err != nil {
		return err
	}
	s.Observe(q)
	return nil
}

// reads counts how the chunks of every class were read.
type reads []Target

// Reads implements reader.
func (ts reads) Reads() wire.Reads {
	var sum wire.Reads
	for _, t := range ts {
		if r, ok := t.(reader); ok {
			one := r.Reads()
			sum.Chunks, sum.Late, sum.Unstamped, sum.Lagging = sum.Chunks+one.Chunks, sum.Late+one.Late, sum.Unstamped+one.Unstamped, sum.Lagging+one.Lagging
		}
	}
	return sum
}
