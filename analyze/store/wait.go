package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/scrape"
)

// WaitScraped returns once every target of job has been scraped successfully by a scrape that
// began at or after the given time: from then on queries see everything that the targets had
// counted by then. It asks through the HTTP API, so that what it has seen the next query sees
// too. The context bounds the wait; the error then says which target lags, and why.
func (s *Store) WaitScraped(ctx context.Context, job string, after time.Time) error {
	targets := s.scraper.TargetsActive()[job]
	if len(targets) == 0 {
		return fmt.Errorf("no target of job %q is scraped here; the jobs are: %s", job, strings.Join(slices.Sorted(slices.Values(s.scraper.ScrapePools())), ", "))
	}
	// Prometheus moves the time of a scrape to its own grid when it is this close to it.
	// A scrape just before after may be stored as after it, so the sample must be later by that much.
	moved := min(s.opts.ScrapeInterval/100, scrape.ScrapeTimestampTolerance)
	poll := time.NewTicker(max(s.opts.ScrapeInterval/10, time.Millisecond))
	defer poll.Stop()
	for {
		last, err := s.lastScrapes(ctx, job, after)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("wait for a scrape of job %q: %w", job, err)
		}
		targets = slices.DeleteFunc(slices.Clone(targets), func(t *scrape.Target) bool {
			at, ok := last[targetLabels(t).String()]
			return ok && !at.Before(after.Add(moved))
		})
		if len(targets) == 0 {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return lateError(ctx, job, targets, after)
		}
	}
}

// lastScrapes returns the time of the last successful scrape of each target of job, by its
// labels, as far back as after.
func (s *Store) lastScrapes(ctx context.Context, job string, after time.Time) (map[string]time.Time, error) {
	now := time.Now()
	window := max(now.Sub(after), 0) + 2*s.opts.ScrapeInterval
	query := fmt.Sprintf("up{job=%q}[%s]", job, promDuration(window.Truncate(time.Millisecond)))
	value, _, _, err := promv1.NewAPI(s.client).Query(ctx, query, now)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("%s: the answer is a %s, not samples over time", query, value.Type())
	}
	last := map[string]time.Time{}
	for _, series := range matrix {
		lb := labels.NewBuilder(labels.EmptyLabels())
		for name, v := range series.Metric {
			if name != model.MetricNameLabel {
				lb.Set(string(name), string(v))
			}
		}
		for _, sample := range series.Values {
			if sample.Value == 1 {
				last[lb.Labels().String()] = sample.Timestamp.Time()
			}
		}
	}
	return last, nil
}

func targetLabels(t *scrape.Target) labels.Labels {
	return t.Labels(labels.NewBuilder(labels.EmptyLabels()))
}

// lateError says of each target what became of its last scrape.
func lateError(ctx context.Context, job string, late []*scrape.Target, after time.Time) error {
	errs := []error{fmt.Errorf("job %q was not scraped since %s: %w", job, after.Format(time.RFC3339Nano), context.Cause(ctx))}
	for _, t := range late {
		switch at, err := t.LastScrape(), t.LastError(); {
		case at.IsZero():
			errs = append(errs, fmt.Errorf("%s: never scraped", t.URL()))
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: the scrape at %s failed: %w", t.URL(), at.Format(time.RFC3339Nano), err))
		default:
			errs = append(errs, fmt.Errorf("%s: last scraped at %s", t.URL(), at.Format(time.RFC3339Nano)))
		}
	}
	return errors.Join(errs...)
}
