package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"firstbreach/loadgen/record"
	"firstbreach/loadgen/run"
)

// answers is a Prometheus that gives one answer after the other, the last one for ever.
type answers struct {
	values []model.Value
	err    error
	asked  []string
}

func (a *answers) Query(_ context.Context, q string, _ time.Time, _ ...v1.Option) (model.Value, v1.Warnings, v1.Infos, error) {
	a.asked = append(a.asked, q)
	v := a.values[0]
	if len(a.values) > 1 {
		a.values = a.values[1:]
	}
	return v, nil, nil, a.err
}

func sample(round, window, outcome string, v float64) *model.Sample {
	return &model.Sample{Value: model.SampleValue(v), Metric: model.Metric{
		"phase": "ramp", "round": model.LabelValue(round), "step": "1", "window": model.LabelValue(window), "outcome": model.LabelValue(outcome),
	}}
}

func TestByQuery(t *testing.T) {
	m := record.Manifest{Run: "r1", StartedAt: time.Now().Add(-time.Hour), Steps: []record.ManifestStep{{
		Phase: "ramp", Round: 1, Step: 1, Totals: map[string]record.Totals{"measure": {Outcomes: map[string]int{"ok": 20, "timeout": 0}}},
	}}}
	tests := map[string]struct {
		value model.Value
		err   error
		want  string
	}{
		"everything":            {model.Vector{sample("1", "measure", "ok", 20), sample("1", "measure", "timeout", 0)}, nil, ""},
		"more than that":        {model.Vector{sample("1", "measure", "ok", 20), sample("1", "measure", "timeout", 0), sample("2", "measure", "ok", 3)}, nil, ""},
		"one too few":           {model.Vector{sample("1", "measure", "ok", 19), sample("1", "measure", "timeout", 0)}, nil, "Prometheus has 19 requests of ramp/1/1/measure/ok, the manifest 20"},
		"a zero that isn't one": {model.Vector{sample("1", "measure", "ok", 20)}, nil, "ramp/1/1/measure/timeout"},
		"nothing":               {model.Vector{}, nil, "Prometheus has 0 requests"},
		"no vector":             {&model.Scalar{}, nil, "no vector"},
		"gone":                  {nil, errors.New("connection refused"), "connection refused"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := &answers{values: []model.Value{tc.value}, err: tc.err}
			err := run.ByQuery(a)(t.Context(), m)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if !strings.Contains(a.asked[0], `last_over_time(loadgen_requests_total{run="r1"}[1h1m])`) {
				t.Errorf("asked %s", a.asked[0])
			}
		})
	}
}

// With a Prometheus to ask, its word counts: it may have everything although the page saw too few
// scrapes, and it is asked again until it has.
func TestSettleByQuery(t *testing.T) {
	for name, tc := range map[string]struct {
		misses int // questions that it answers with less than everything
		want   string
		lost   int
	}{
		"it has everything in the end": {3, "confirmed", 0},
		"it never does":                {1000, "not_confirmed: not yet", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options(t, &target{}, 1)
				o.Plan.Rounds = 1
				asked := 0
				o.Confirm = func(context.Context, record.Manifest) error {
					if asked++; asked <= tc.misses {
						return errors.New("not yet")
					}
					return nil
				}
				r := start(t, o)
				o.Plan.Ramp.Concurrency = nil // baseline and recovery alone: both fit on the page
				began := time.Now()
				if err := errors.Join(r.RunRounds(t.Context()), r.Close(t.Context())); err != nil {
					t.Fatal(err)
				}
				m, _ := totals(t, o)
				equal(t, "final scrape", m.FinalScrape, tc.want)
				equal(t, "unscraped", unscraped(m), tc.lost)
				if took := time.Since(began); took > 44*time.Second+o.FinalWait+time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
