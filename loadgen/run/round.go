package run

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"firstbreach/internal/level"
	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// ErrInterrupted is returned by RunRounds and AppendRound when their context ended.
var ErrInterrupted = errors.New("interrupted")

// round runs the next round.
func (r *Runner) round(ctx context.Context) error {
	if r.rounds++; r.rounds > 1 {
		r.lookAgain(ctx, fmt.Sprintf("before round %d", r.rounds))
	}
	stages := r.opts.Plan.Stages(r.rounds)
	var ceiling level.Level // after a baseline that failed; zero: none
	for i, stage := range stages {
		if r.skip(stage, ceiling) {
			continue
		}
		place := Place{Stage: stage, Rounds: r.Manifest().Rounds, Number: i + 1, Of: len(stages), Requests: r.opts.Plan.Step.Requests}
		sum, err := r.step(ctx, place)
		if err != nil {
			r.fail(err)
			return err
		}
		if sum.StopRule {
			ceiling = r.stopped(stage, sum, ceiling)
		}
	}
	return nil
}

// skip reports whether a stop leaves out this step of the ladder.
func (r *Runner) skip(s plan.Stage, ceiling level.Level) bool {
	switch {
	case s.Phase != plan.PhaseRamp:
		return false
	case r.rampCap > 0 && s.Step > r.rampCap:
		return true
	case ceiling.IsZero():
		return false
	case s.Rate > 0: // how many are in flight at a rate isn't known before: the lowest alone may be as low
		return s.Step > 1
	}
	return s.Concurrency > ceiling.Concurrency
}

// stopped notes what the stop rule means for the steps to come: on the ladder, this round and the
// later ones go no higher; a baseline that failed keeps its own round from going above it. It returns
// the highest level that may still be run in this round, zero for any.
func (r *Runner) stopped(s plan.Stage, sum drive.Summary, ceiling level.Level) level.Level {
	switch s.Phase {
	case plan.PhaseRamp:
		r.rampCap = s.Step
	case plan.PhaseBaseline:
		ceiling = s.Level()
	}
	r.edit(func(m *record.Manifest) {
		m.Reason = addReason(m.Reason, fmt.Sprintf("round %d stopped at %s step %d, %s (%s)",
			s.Round, s.Phase, s.Step, s.Level().Words(), sum.Stopped))
	})
	return ceiling
}

func (r *Runner) fail(err error) {
	if r.failure == nil {
		r.failure = err
	}
}

// step runs one step and keeps what it measured.
func (r *Runner) step(ctx context.Context, place Place) (drive.Summary, error) {
	stage := place.Stage
	id := record.StepID{Phase: string(stage.Phase), Round: stage.Round, Step: stage.Step, Concurrency: stage.Concurrency, Rate: stage.Rate, Shard: r.opts.Shard.String()}
	live, edges, err := r.await(ctx, id)
	if err != nil {
		if ctx.Err() != nil {
			err = interrupted(ctx, stage)
		}
		return drive.Summary{}, err
	}
	r.started = true
	n := r.addStep(live)
	if err := r.writeManifest(); err != nil {
		live.End(time.Now())
		return drive.Summary{}, err
	}
	sum, err := r.drive(ctx, place, live, edges)
	r.judgeShard(live, sum)
	live.End(sum.Ended)
	err = errors.Join(err, r.closeStep(n, live, sum))
	r.opts.Progress.End(place, live.Glance(sum.Ended), sum.Stopped)
	if err == nil && sum.Stopped == drive.Interrupted {
		err = interrupted(ctx, stage)
	}
	return sum, err
}

// begin puts the step on the page, which may have to wait for scrapes of the steps before; after a
// while it says so.
func (r *Runner) begin(ctx context.Context, id record.StepID) (lives, error) {
	note := time.AfterFunc(5*time.Second, func() {
		if r.page.Scrapers() == 0 {
			r.opts.Progress.Note(fmt.Sprintf("waiting up to %s: nobody has scraped the metrics page yet", r.opts.ScrapeWait))
		} else {
			r.opts.Progress.Note(fmt.Sprintf("waiting up to %s until the steps before have been scraped", r.opts.ScrapeWait))
		}
	})
	defer note.Stop()
	live, dropped, err := r.page.BeginClasses(ctx, id, r.recordClasses())
	r.markUnscraped(dropped)
	return live, err
}

// drive sends the step's load, with the progress shown beside it.
func (r *Runner) drive(ctx context.Context, place Place, live lives, edges *plan.Edges) (drive.Summary, error) {
	p, stage := r.opts.Plan, place.Stage
	stop := r.show(place, live)
	defer stop()
	check := r.checkSelf(live)
	defer check.stop()
	shape, warmup := r.shape(stage)
	sum, err := shape.Drive(ctx, drive.Step{
		Bounds: p.Bounds(stage), Stop: r.stopRule(stage), Warmup: warmup,
		Body:   func(n int) []byte { return r.body(stage, r.opts.Shard.Number(n)) },
		Sender: r.target, Recorder: recorder{live, r.ledger}, Classes: r.driveClasses(), ClassOf: p.ClassOf,
		Grace: r.opts.Grace, Abort: r.opts.Abort, Edges: edges,
	})
	if sum.Service > 0 {
		r.service = sum.Service
		if stage.Phase == plan.PhaseBaseline {
			r.baseline = sum.Service
		}
	}
	return sum, err
}

// shape is how a stage is driven, and how many requests have to finish before it is measured: as
// many as are in flight when it has come to rest, which for a rate is the rate times the time that
// a request takes at the baseline (Little's law).
func (r *Runner) shape(s plan.Stage) (shape drive.Shape, warmup int) {
	held := r.opts.Plan.Held(s)
	switch s.Phase {
	case plan.PhaseFluctuation:
		c := r.opts.Plan.Fluctuations[s.Step-1].Curve
		low, _ := c.Levels()
		return drive.Fluctuate{Curve: c, Poisson: held.Arrivals != plan.Constant, MaxInFlight: held.MaxInFlight, Seed: seedOf(r.opts.Plan.Fixed.Seed, s)},
			r.inFlight(low, held.MaxInFlight)
	case plan.PhaseTrace:
		times := make([]time.Duration, len(r.opts.Plan.Trace.Requests))
		for i, q := range r.opts.Plan.Trace.Requests {
			times[i] = q.At
		}
		return drive.Replay{Times: times, MaxInFlight: held.MaxInFlight}, r.inFlight(s.Level(), held.MaxInFlight)
	case plan.PhaseDrill:
		return r.drill(s, r.holding(s, held)), r.inFlight(s.Level(), held.MaxInFlight)
	}
	return r.holding(s, held), r.inFlight(s.Level(), held.MaxInFlight)
}

// holding is the shape of a load that is held.
func (r *Runner) holding(s plan.Stage, held plan.HeldLoad) drive.Shape {
	seed := seedOf(r.opts.Plan.Fixed.Seed, s)
	if s.Rate == 0 {
		share := r.opts.Shard.Share(s.Concurrency)
		if share == 0 {
			return drive.Idle{}
		}
		return drive.Closed{Concurrency: share, Spread: r.spread(), Seed: seed}
	}
	return drive.Open{Rate: s.Rate, Poisson: held.Arrivals != plan.Constant, MaxInFlight: held.MaxInFlight, Seed: seed}
}

// inFlight is how many requests a level will have in flight.
func (r *Runner) inFlight(l level.Level, most int) int {
	if l.Rate == 0 {
		return r.opts.Shard.Share(l.Concurrency)
	}
	return max(1, int(min(math.Ceil(l.Rate*r.baseline.Seconds()), float64(most))))
}

// seedOf makes the arrivals and the pauses of each step its own, and the same whenever the plan is run again.
func seedOf(seed int64, s plan.Stage) [2]uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d/%d/%s", s.Phase, s.Round, s.Step, s.Level())
	return [2]uint64{uint64(seed), h.Sum64()}
}

// spread is the time over which the next step's slots start: one service time as last measured,
// but never so long that it eats the step.
func (r *Runner) spread() time.Duration {
	if !r.opts.Shard.IsZero() {
		return min(r.service, r.opts.Plan.Lead()/2)
	}
	if limit := r.opts.Plan.Step.MaxDuration / 4; limit > 0 {
		return min(r.service, limit)
	}
	return r.service
}

// cooldown lets the target come to rest before each step but the first.
func (r *Runner) cooldown(ctx context.Context) error {
	if !r.started {
		return ctx.Err()
	}
	timer := time.NewTimer(r.opts.Plan.Cooldown)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// addStep puts a step that begins into the manifest and returns its place there.
func (r *Runner) addStep(live lives) (n int) {
	r.edit(func(m *record.Manifest) {
		n = len(m.Steps)
		for i, one := range live {
			id := one.ID()
			m.Steps = append(m.Steps, record.ManifestStep{
				Phase: id.Phase, Round: id.Round, Step: id.Step, Concurrency: id.Concurrency, Rate: id.Rate, Class: id.Class, Shard: id.Shard,
				StartedAt: time.Now().UTC(), Totals: one.Totals(),
			})
			r.describe(&m.Steps[n+i])
		}
	})
	return n
}

// closeStep puts what a step measured into the manifest.
func (r *Runner) closeStep(n int, live lives, sum drive.Summary) error {
	r.edit(func(m *record.Manifest) {
		for i, one := range live {
			s := &m.Steps[n+i]
			s.StartedAt = sum.Started.UTC()
			s.MeasureFrom, s.MeasureTo, s.EndedAt = moment(sum.MeasureFrom), moment(sum.MeasureTo), moment(sum.Ended)
			s.Stopped, s.Totals = sum.Stopped, one.Totals()
			s.Limited, s.Warnings = one.Client()
		}
	})
	return errors.Join(r.ledger.Sync(), r.writeManifest())
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// markUnscraped marks steps that left the page too early, or are on it still at the end.
func (r *Runner) markUnscraped(ids []record.StepID) {
	r.edit(func(m *record.Manifest) {
		for _, id := range ids {
			for i := range m.Steps {
				if stepID(m.Steps[i]) == id {
					m.Steps[i].Unscraped = true
				}
			}
		}
	})
}

func stepID(s record.ManifestStep) record.StepID {
	return record.StepID{Phase: s.Phase, Round: s.Round, Step: s.Step, Concurrency: s.Concurrency, Rate: s.Rate, Class: s.Class, Shard: s.Shard}
}

// interrupted says where, and by what, as far as the context's cause tells.
func interrupted(ctx context.Context, s plan.Stage) error {
	why := "on demand"
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		why = "by " + cause.Error()
	}
	return fmt.Errorf("%w %s in round %d, %s step %d, %s", ErrInterrupted, why, s.Round, s.Phase, s.Step, s.Level().Words())
}
