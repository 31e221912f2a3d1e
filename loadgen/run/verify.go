package run

import (
	"context"
	"errors"
	"fmt"

	"firstbreach/loadgen/plan"
)

// Verify sends a load through an admission proxy, and then that of the recovery. It is for a run whose
// rounds are over, and is no part of them: it changes no verdict of the ladder.
func (r *Runner) Verify(ctx context.Context, v plan.Verification) (err error) {
	through := r.opts.Plan.Through(v)
	target, err := NewTarget(through, r.opts.RunID)
	if err != nil {
		return fmt.Errorf("send through the admission proxy: %w", err)
	}
	own, direct := r.opts.Plan, r.target
	r.opts.Plan, r.target = through, target
	defer func() {
		r.opts.Plan, r.target = own, direct
		target.Close()
	}()
	stages := through.VerifyStages()
	for i, stage := range stages {
		place := Place{Stage: stage, Rounds: 1, Number: i + 1, Of: len(stages)}
		if _, err := r.step(ctx, place); err != nil {
			if !errors.Is(err, ErrInterrupted) {
				r.fail(err)
			}
			return err
		}
	}
	return nil
}
