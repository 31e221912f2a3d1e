package oracle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"firstbreach/analyze/query"
	"firstbreach/analyze/store"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
)

// scrapeEvery is the time between two scrapes of the virtual store, in seconds. Short steps last
// a few of them, as they do with a real store.
const scrapeEvery = 4.0

// Step is what a run said of one step of the ladder.
type Step struct {
	Concurrency int
	True        Shares
	Said        verdict.State
	Why         []string
}

// Trial is one run of a scenario against what is known of it.
type Trial struct {
	Scenario string
	Seed     uint64
	Steps    []Step
	Claimed  int // the concurrency of the first breach that was named; 0 for none
	State    verdict.State

	// FalseBreach: a first breach was named where every objective holds, or for one that holds there.
	// FalseOK: a step was called ok at which an objective is broken.
	FalseBreach, FalseOK bool
}

// Run runs a scenario once in virtual time, has it queried and judged, and compares.
func (s Scenario) Run(ctx context.Context, seed uint64, truth map[int]Shares) (t Trial, err error) {
	dir, err := os.MkdirTemp("", "firstbreach-oracle-")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	objectives, err := s.objectives()
	if err != nil {
		return t, err
	}
	m, err := s.measure(dir, seed, objectives)
	if err != nil {
		return t, fmt.Errorf("%s, seed %d: %w", s.Name, seed, err)
	}
	res, err := judge(ctx, dir, m, objectives)
	if err != nil {
		return t, fmt.Errorf("%s, seed %d: %w", s.Name, seed, err)
	}
	return s.compare(seed, res, truth), nil
}

// objectives are those of the scenario, as an SLO file has them.
func (s Scenario) objectives() (*slo.File, error) {
	return slo.Parse(s.Name, fmt.Appendf(nil, `apiVersion: firstbreach/v1
service: oracle
engine: probe
objectives:
- {name: %s, layer: user, signal: time_to_first_token, threshold: %.6fs, target: %s}
- {name: %s, layer: user, signal: success_ratio, target: %s}
`, ttft, s.TTFT, target, success, target))
}

// measure drives the whole run in virtual time, which ends a little before the present.
func (s Scenario) measure(dir string, seed uint64, f *slo.File) (m record.Manifest, err error) {
	store, err := newSamples(dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	rng := rand.New(rand.NewPCG(seed, 1))
	time0 := &clock{}
	c := &client{
		clock: time0, server: s.Service.start(time0, rng), begin: time.Now().Add(-2 * time.Hour).Truncate(time.Second),
		want: s.requests(), scrape: store.scrape, every: scrapeEvery, next: scrapeEvery * rng.Float64(),
	}
	m = record.Manifest{
		Schema: record.ManifestSchema, Run: fmt.Sprintf("run-%d", seed), State: record.Complete, StartedAt: c.time(0).UTC(),
		Conditions: map[string]string{}, Rounds: s.rounds(), Ladder: s.Ladder, FinalScrape: "confirmed",
	}
	highest := len(s.Ladder) // a step that a stop rule cut is the highest of the later rounds
	for round := range s.rounds() {
		for i, level := range s.Ladder[:highest] {
			if s.Drift != nil {
				c.server.factor = s.Drift(s.place(round, i))
			}
			id := record.StepID{Phase: verdict.PhaseRamp, Round: round + 1, Step: i + 1, Concurrency: level}
			if i == 0 { // the baseline comes first, at the lowest level of the ladder
				baseline := id
				baseline.Phase = verdict.PhaseBaseline
				if err := c.add(&m, baseline, f.Objectives); err != nil {
					return m, err
				}
			}
			if err := c.add(&m, id, f.Objectives); err != nil {
				return m, err
			}
			if m.Steps[len(m.Steps)-1].Stopped != "" {
				highest = i + 1
				break
			}
		}
	}
	m.EndedAt = c.moment(c.now)
	return m, nil
}

// add drives one step and adds it to the manifest.
func (c *client) add(m *record.Manifest, id record.StepID, objectives []slo.Objective) error {
	step, err := c.drive(id, m.Run, objectives)
	m.Steps = append(m.Steps, step)
	return err
}

// judge has a run read from its store and judged, as any run is.
func judge(ctx context.Context, dir string, m record.Manifest, f *slo.File) (res verdict.Result, err error) {
	s, err := store.Open(ctx, store.Options{Dir: dir, ReadOnly: true})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	run, _, err := query.Load(ctx, query.Options{URL: s.URL(), SLO: f, Manifest: &m})
	if err != nil {
		return res, err
	}
	return verdict.Judge(*run), nil
}

// compare holds what a run said against the truth.
func (s Scenario) compare(seed uint64, res verdict.Result, truth map[int]Shares) Trial {
	t := Trial{Scenario: s.Name, Seed: seed, State: res.State}
	for _, level := range s.Ladder {
		step := Step{Concurrency: level, True: truth[level], Said: verdict.NoData}
		if r := res.Step(verdict.PhaseRamp, level); r != nil {
			step.Said, step.Why = r.Verdict, r.Reasons
		}
		if step.Said == verdict.OK && step.True.Worst() > allowance {
			t.FalseOK = true
		}
		t.Steps = append(t.Steps, step)
	}
	if b := res.FirstBreach; b != nil {
		t.Claimed = b.Concurrency
		t.FalseBreach = truth[b.Concurrency][b.Objective] <= allowance
	}
	return t
}
