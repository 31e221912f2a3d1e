package run

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// after runs what comes once after the rounds: soak, fluctuations, trace and drills. None of them keeps the
// others from being run but what ends the run.
func (r *Runner) after(ctx context.Context) error {
	stages := r.opts.Plan.After()
	for i, stage := range stages {
		place := Place{Stage: stage, Rounds: 1, Number: i + 1, Of: len(stages)}
		sum, err := r.step(ctx, place)
		if err != nil {
			r.fail(err)
			return err
		}
		if sum.StopRule {
			r.edit(func(m *record.Manifest) {
				m.Reason = addReason(m.Reason, fmt.Sprintf("%s step %d, %s, was cut (%s)", stage.Phase, stage.Step, stage.Level().Words(), sum.Stopped))
			})
		}
	}
	return nil
}

// stopRule is the plan's, but for a phase that is meant to hurt, and for a shard: it doesn't know how
// the others fare, and they would go on without it.
func (r *Runner) stopRule(s plan.Stage) plan.Stop {
	if s.Phase == plan.PhaseDrill || s.Phase == plan.PhaseFluctuation || s.Phase == plan.PhaseVerify || !r.opts.Shard.IsZero() {
		return plan.Stop{}
	}
	return r.opts.Plan.Stop
}

// describe puts into a step's manifest entry what only its phase has.
func (r *Runner) describe(s *record.ManifestStep) {
	switch plan.Phase(s.Phase) {
	case plan.PhaseFluctuation:
		c := r.opts.Plan.Fluctuations[s.Step-1].Curve
		s.Load = &c
	case plan.PhaseTrace:
		s.Name, s.Trace = filepath.Base(r.opts.Plan.Trace.File), replayOf(r.opts.Plan)
	case plan.PhaseDrill:
		s.Name = r.opts.Plan.Drills[s.Step-1].Name
	}
}

// replayOf says what is replayed.
func replayOf(p *plan.Plan) *record.Replay {
	t := p.Trace
	in, out := t.MeanTokens()
	return &record.Replay{
		Format: string(t.Format), SHA256: t.SHA256(), Speed: t.Speed, Requests: len(t.Requests), Duration: t.Duration().Seconds(),
		Rate: t.Rate, Busiest: t.Busiest, InputTokens: in, OutputTokens: out, Cut: t.Cut,
		OutputLength: outputLength(p.Target.API, t.IgnoreEOS),
	}
}

// drill wraps a load into the drill of a stage.
func (r *Runner) drill(s plan.Stage, load drive.Shape) drive.Shape {
	d := r.opts.Plan.Drills[s.Step-1]
	key := fmt.Sprintf("drills[%d]", s.Step-1)
	shape := drive.Drill{Load: load, At: d.At, For: d.For, Note: func(event string, from, to time.Time, err error) { r.noteEvent(s, d.Name, event, from, to, err) }}
	shape.Do = func(ctx context.Context) error {
		r.opts.Progress.Note("drill " + d.Name)
		// What is half done is worse than what is done: an interruption waits for it.
		return r.within(context.WithoutCancel(ctx), d.Action, key+".timeout")
	}
	if len(d.Restore.Command) > 0 || d.Restore.Request != nil {
		shape.Undo = func(ctx context.Context) error {
			r.opts.Progress.Note("undoing the drill " + d.Name)
			return r.within(ctx, d.Restore, key+".restore.timeout")
		}
	}
	return shape
}

// noteEvent puts what was done into the manifest at once, so that a run that is killed tells of it too.
func (r *Runner) noteEvent(s plan.Stage, name, event string, from, to time.Time, err error) {
	e := record.Event{Event: event, StartedAt: from.UTC(), EndedAt: to.UTC()}
	if err != nil {
		e.Error = err.Error()
		switch event {
		case drive.EventRestore:
			err = fmt.Errorf("undo the drill %s: %w: the target may still be as the drill left it", name, err)
		default:
			err = fmt.Errorf("drill %s: %w", name, err)
		}
		r.drills = append(r.drills, err)
	}
	r.edit(func(m *record.Manifest) {
		for i := range m.Steps {
			if m.Steps[i].Phase == string(s.Phase) && m.Steps[i].Round == s.Round && m.Steps[i].Step == s.Step {
				m.Steps[i].Events = append(m.Steps[i].Events, e)
			}
		}
	})
	if err := r.writeManifest(); err != nil {
		r.drills = append(r.drills, err)
	}
}
