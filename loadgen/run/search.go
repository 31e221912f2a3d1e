package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// BeginSearch begins a run whose levels somebody else chooses, step by step, in place of RunRounds: it notes what
// was declared, and runs the baseline.
func (r *Runner) BeginSearch(ctx context.Context, declared record.Search) error {
	before, _ := r.opts.Plan.Around()
	r.edit(func(m *record.Manifest) { m.Search, m.Ladder, m.Rounds = &declared, []int{}, len(before) })
	return r.around(ctx, before)
}

// SearchStep measures one level once and waits until that was scraped. The plan is the run's own, but for
// how many requests it measures.
func (r *Runner) SearchStep(ctx context.Context, stage plan.Stage, requests int) error {
	r.lookAgain(ctx, fmt.Sprintf("before %s, round %d", stage.Level().Words(), stage.Round))
	own := r.opts.Plan
	r.opts.Plan = own.ForSearch(requests)
	defer func() { r.opts.Plan = own }()
	r.searched(stage)
	if _, err := r.step(ctx, Place{Stage: stage, Requests: requests}); err != nil {
		r.fail(err)
		return err
	}
	return r.settle(ctx)
}

// searched notes a level of the ladder that is measured.
func (r *Runner) searched(stage plan.Stage) {
	if stage.Phase != plan.PhaseRamp {
		return
	}
	r.edit(func(m *record.Manifest) {
		if at, found := slices.BinarySearch(m.Ladder, stage.Concurrency); !found {
			m.Ladder = slices.Insert(slices.Clone(m.Ladder), at, stage.Concurrency)
		}
	})
}

// NoteSearch notes how far the search got: the requests that it sent, the seconds that it took, and, once it
// is over, why it ended.
func (r *Runner) NoteSearch(sent int64, took float64, ended string) error {
	r.edit(func(m *record.Manifest) { m.Search.Sent, m.Search.Took, m.Search.Ended = sent, took, ended })
	return r.writeManifest()
}

// EndSearch runs the recovery. A search that is ended this way is a complete run.
func (r *Runner) EndSearch(ctx context.Context) error {
	_, after := r.opts.Plan.Around()
	if err := r.around(ctx, after); err != nil {
		return err
	}
	r.ended = true
	return nil
}

// around runs the steps before or after the search.
func (r *Runner) around(ctx context.Context, stages []plan.Stage) error {
	for _, stage := range stages {
		place := Place{Stage: stage, Rounds: len(stages), Number: 1, Of: 1, Requests: r.opts.Plan.Step.Requests}
		if _, err := r.step(ctx, place); err != nil {
			if !errors.Is(err, ErrInterrupted) {
				err = fmt.Errorf("%s: %w", stage.Phase, err)
			}
			r.fail(err)
			return err
		}
	}
	return nil
}
