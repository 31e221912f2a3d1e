package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/loadgen/record"
)

// Querier is what ByQuery needs of a Prometheus; v1.API has it.
type Querier interface {
	Query(ctx context.Context, query string, at time.Time, opts ...v1.Option) (model.Value, v1.Warnings, v1.Infos, error)
}

// ByQuery is an Options.Confirm that compares the finished requests in a Prometheus with the
// manifest: the last raw sample of each counter, by step, window and outcome.
func ByQuery(api Querier) func(ctx context.Context, m record.Manifest) error {
	return func(ctx context.Context, m record.Manifest) error {
		now := time.Now()
		back := (now.Sub(m.StartedAt) + time.Minute).Truncate(time.Second)
		expr := promexpr.MaxBy(promexpr.LastOverTime(promexpr.Range(
			promexpr.Select(signal.LoadgenRequests, promexpr.Eq(signal.LabelRun, m.Run)), back)),
			signal.LabelPhase, signal.LabelRound, signal.LabelStep, signal.LabelWindow, signal.LabelOutcome)
		v, _, _, err := api.Query(ctx, expr.String(), now)
		if err != nil {
			return fmt.Errorf("ask Prometheus: %w", err)
		}
		vector, ok := v.(model.Vector)
		if !ok {
			return errors.New("ask Prometheus: the answer is no vector")
		}
		return compare(vector, m)
	}
}

// compare names the first total that Prometheus doesn't have.
func compare(vector model.Vector, m record.Manifest) error {
	have := map[model.LabelValue]int{}
	key := func(phase string, round, step int, window, outcome string) model.LabelValue {
		return model.LabelValue(fmt.Sprintf("%s/%d/%d/%s/%s", phase, round, step, window, outcome))
	}
	for _, s := range vector {
		round, _ := strconv.Atoi(string(s.Metric[signal.LabelRound]))
		step, _ := strconv.Atoi(string(s.Metric[signal.LabelStep]))
		have[key(string(s.Metric[signal.LabelPhase]), round, step,
			string(s.Metric[signal.LabelWindow]), string(s.Metric[signal.LabelOutcome]))] = int(s.Value)
	}
	for _, s := range m.Steps {
		for window, t := range s.Totals {
			for outcome, want := range t.Outcomes {
				k := key(s.Phase, s.Round, s.Step, window, outcome)
				if got, ok := have[k]; !ok || got != want {
					return fmt.Errorf("Prometheus has %d requests of %s, the manifest %d", got, k, want)
				}
			}
		}
	}
	return nil
}
