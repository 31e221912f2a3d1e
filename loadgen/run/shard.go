package run

import (
	"context"
	"fmt"
	"time"

	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// shardLate is how much later than its edge a shard may begin a step. Slots start spread over a
// service time anyway, and windows change at edges of their own.
const shardLate = 500 * time.Millisecond

// await puts the next step on the page and returns when its load is to begin: for a shard that is
// the step's edge, otherwise after the cooldown.
func (r *Runner) await(ctx context.Context, id record.StepID) (lives, *plan.Edges, error) {
	if r.opts.Shard.IsZero() {
		if err := r.cooldown(ctx); err != nil {
			return nil, nil, err
		}
		live, err := r.begin(ctx, id)
		return live, nil, err
	}
	edges := r.opts.Plan.Edges(r.opts.StartAt, r.slot)
	r.slot++
	live, err := r.begin(ctx, id) // the time until the edge is there to be scraped in
	if err != nil {
		return nil, nil, err
	}
	if wait := time.Until(edges.Start); wait > 5*time.Second && !r.started {
		r.opts.Progress.Note(fmt.Sprintf("shard %s waits until %s", r.opts.Shard, edges.Start.UTC().Format(time.RFC3339)))
	}
	timer := time.NewTimer(time.Until(edges.Start))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		live.End(time.Now())
		return nil, nil, ctx.Err()
	case <-timer.C:
	}
	if late := time.Since(edges.Start); late > shardLate {
		live.Limit(record.LimitShardLate)
		r.opts.Logger.Warn("this shard was late for a step, which will count as invalid: the step before took longer than its time; raise cooldown or step.duration",
			"step", id, "late", late)
	}
	return live, &edges, nil
}

// judgeShard notes what the edges did to a step.
func (r *Runner) judgeShard(live lives, sum drive.Summary) {
	if sum.Cold {
		live.Limit(record.LimitShardCold)
		r.opts.Logger.Warn("a step was measured before its warm-up was over and will count as invalid: raise step.duration, a quarter of it is the warm-up",
			"step", live.ID())
	}
	if sum.Undrained > 0 {
		live.Warn(fmt.Sprintf("the load ended before %d measured requests had", sum.Undrained))
	}
}
