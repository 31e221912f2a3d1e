package standalone

import (
	"context"
	"errors"
	"fmt"
	"time"

	"firstbreach/analyze/analysis"
	"firstbreach/analyze/search"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// checkSearch refuses a search that the plan, or the objectives, can't carry.
func (o Options) checkSearch(f *files) error {
	if o.Search == nil {
		return nil
	}
	o.Search.Targets = nil
	for _, x := range f.slo.PerRequest() {
		o.Search.Targets = append(o.Search.Targets, x.Target.Float())
	}
	if err := o.Search.Validate(); err != nil {
		return usage(err)
	}
	return f.plan.CheckSearch(o.Search.Max)
}

// search looks for the exact first breach.
func (j *job) search(ctx context.Context) error {
	o, began := *j.Search, time.Now()
	declared := record.Search{Min: o.Min, Max: o.Max, Looks: o.Looks, Requests: o.Requests, Seconds: o.Time.Seconds()}
	if err := j.runner.BeginSearch(ctx, declared); err != nil {
		return err
	}
	found, err := search.Run(ctx, o, searching{j, began})
	if err := errors.Join(err, j.runner.NoteSearch(found.Sent, found.Took, found.Ended)); err != nil {
		return err
	}
	fmt.Fprintf(j.Out, "\nThe search is over: %s. Now the recovery.\n", found.Ended)
	return j.runner.EndSearch(ctx)
}

// searching measures for a search.
type searching struct {
	*job
	began time.Time
}

// Measure is of search.Measurer.
func (s searching) Measure(ctx context.Context, a search.Ask) (m search.Measured, err error) {
	stage := plan.SearchStage(a.Concurrency, a.Round, a.Confirms)
	fmt.Fprintf(s.Progress, "search: %s, round %d: %s\n", stage.Level().Words(), a.Round, a.Why)
	if err := s.runner.SearchStep(ctx, stage, a.Requests); err != nil {
		return m, err
	}
	m.Requests = s.sent()
	if err := s.runner.NoteSearch(m.Requests, time.Since(s.began).Seconds(), ""); err != nil {
		return m, err
	}
	run, _, err := analysis.Load(ctx, s.analysis())
	if err != nil {
		return m, fmt.Errorf("analyse the search so far: %w", err)
	}
	m.Run, m.Time = *run, time.Since(s.began)
	return m, nil
}

// sent counts the requests of the run so far.
func (s searching) sent() (n int64) {
	for _, step := range s.runner.Manifest().Steps {
		for _, t := range step.Totals {
			for _, of := range t.Outcomes {
				n += int64(of)
			}
		}
	}
	return n
}
