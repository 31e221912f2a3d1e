package search

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"firstbreach/analyze/verdict"
)

// allowance is the share of bad requests that the objective of the tests allows.
const allowance = 0.05

// service is one whose share of bad requests is known, measured in virtual time.
type service struct {
	share func(concurrency int, at time.Duration) float64
	// alike is the correlation of requests of one round: 0 for independent ones.
	alike float64
	// limited are the levels from which on the client is the bottleneck.
	limited int
	// late is the share that a limited client makes of it.
	late float64

	rng  *rand.Rand
	now  time.Duration
	sent int64
	run  verdict.Run
	asks []Ask
	fail error // of the next measurement
}

func newService(seed uint64, share func(concurrency int, at time.Duration) float64) *service {
	return &service{share: share, rng: rand.New(rand.NewPCG(seed, 5)), run: verdict.Run{
		ID: "r", State: "running", Manifest: true, ScrapeInterval: 1, Conditions: map[string]string{"model": "m"},
		Objectives: []verdict.Objective{{Name: "ttft", Layer: "user", Kind: "latency", Signal: "time_to_first_token", Threshold: 1, Target: "0.95", TargetText: "95%"}},
	}}
}

// steps is a service that breaks at a concurrency: few bad requests below it, many from it on.
func steps(breach int, below, above float64) func(int, time.Duration) float64 {
	return func(n int, _ time.Duration) float64 {
		if n < breach {
			return below
		}
		return above
	}
}

// Measure implements Measurer: a request takes a second.
func (s *service) Measure(_ context.Context, a Ask) (Measured, error) {
	s.asks = append(s.asks, a)
	if s.fail != nil {
		return Measured{}, s.fail
	}
	p := s.share(a.Concurrency, s.now)
	if s.limited > 0 && a.Concurrency >= s.limited {
		p = s.late
	}
	if s.alike > 0 && p > 0 && p < 1 {
		k := 1/s.alike - 1
		p = distuv.Beta{Alpha: p * k, Beta: (1 - p) * k, Src: s.rng}.Rand()
	}
	var bad int64
	for range a.Requests {
		if s.rng.Float64() < p {
			bad++
		}
	}
	n := int64(a.Requests)
	start := s.now.Seconds()
	window := math.Ceil(float64(a.Requests) / float64(a.Concurrency))
	ended := start + window + 2
	held := window * float64(a.Concurrency)
	from, to := start+1, start+1+window
	phase := verdict.PhaseRamp
	if a.Confirms {
		phase = verdict.PhaseConfirm
	}
	step := verdict.Step{
		Phase: phase, Round: a.Round, Step: 1, Concurrency: a.Concurrency, Start: &start, MeasureFrom: &from, MeasureTo: &to, End: &ended,
		Outcomes: map[string]int64{"ok": n}, Good: n - bad, Counts: map[string]verdict.Count{"ttft": {Total: n, Slow: bad}},
		Scrapes: 10, ScrapesExpected: 10, InFlightSeconds: held, OccupancySeconds: held, SumE2E: held,
	}
	if s.limited > 0 && a.Concurrency >= s.limited {
		step.Limited = []string{"late_reads"}
	}
	s.run.Steps = append(s.run.Steps, step)
	s.now = time.Duration((ended + 1) * float64(time.Second))
	s.sent += n + 2*int64(a.Concurrency)
	return Measured{Run: s.run, Requests: s.sent, Time: s.now}, nil
}

// found searches and judges what was found.
func (s *service) found(o Options) (verdict.Result, verdict.Search, error) {
	declared, err := Run(context.Background(), o, s)
	run := s.run
	run.Search, run.State = &declared, "complete"
	return verdict.Judge(run), declared, err
}

// ordinary are the options of most tests.
func ordinary() Options { return Options{Min: 1, Max: 64, Looks: 3, Targets: []float64{1 - allowance}} }

var errBroken = errors.New("the store is gone")
