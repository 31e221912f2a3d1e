package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"firstbreach/loadgen/record"
)

// confirmed is the manifest's word for a run whose every final value was scraped.
const confirmed = "confirmed"

// confirmEvery is the time between two questions to Prometheus.
const confirmEvery = time.Second

// Settle waits until the final values of every step so far have been scraped, at most FinalWait,
// and notes in the manifest whether they were. Call it before a run is analysed that isn't closed
// yet; Close calls it as well.
func (r *Runner) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.FinalWait)
	defer cancel()
	r.opts.Progress.Note("waiting for the final values to be scraped")
	left := r.page.Settle(ctx, r.opts.FinalWait)
	result := r.confirm(ctx, left)
	if result != confirmed {
		r.markUnscraped(left)
		r.opts.Logger.Warn("it could not be confirmed that every final value was scraped", "final_scrape", result)
	}
	r.edit(func(m *record.Manifest) { m.FinalScrape = result })
	return r.writeManifest()
}

// confirm says whether everything was scraped: by asking Prometheus where its address is known,
// else by what was seen of its scrapes.
func (r *Runner) confirm(ctx context.Context, left []record.StepID) string {
	if r.opts.Confirm != nil {
		return r.ask(ctx)
	}
	var lost []string
	for _, s := range r.Manifest().Steps {
		if s.Unscraped {
			lost = append(lost, stepID(s).String())
		}
	}
	for _, id := range left {
		lost = append(lost, id.String())
	}
	switch {
	case len(lost) == 0:
		return confirmed
	case r.page.Scrapers() == 0:
		return "not_confirmed: nobody scrapes this page; add it to the scrape configuration of Prometheus"
	case len(lost) > 3:
		return fmt.Sprintf("not_confirmed: the final values of %d steps were not scraped twice by everybody who scrapes, among them %s",
			len(lost), strings.Join(lost[:3], ", "))
	default:
		return "not_confirmed: not scraped twice by everybody who scrapes: " + strings.Join(lost, ", ")
	}
}

// ask repeats its question until Prometheus has everything or the time is up.
func (r *Runner) ask(ctx context.Context) string {
	for {
		err := r.opts.Confirm(ctx, r.Manifest())
		if err == nil {
			return confirmed
		}
		select {
		case <-ctx.Done():
			return "not_confirmed: " + err.Error()
		case <-time.After(confirmEvery):
		}
	}
}
