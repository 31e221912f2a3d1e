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
// and notes in the manifest whether they were: by asking Prometheus where its address is known, else
// by what the page saw of its scrapes. Call it before a run is analysed that isn't closed yet; Close
// calls it as well.
func (r *Runner) Settle(ctx context.Context) error {
	if r.page.Live() > 0 {
		r.opts.Progress.Note("waiting for the final values to be scraped")
	}
	return r.settle(ctx)
}

// settle is Settle without a word.
func (r *Runner) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.FinalWait)
	defer cancel()
	var result string
	if r.opts.Confirm != nil {
		if result = r.ask(ctx); result != confirmed {
			r.markUnscraped(r.page.Settle(ctx, 0))
		}
	} else {
		r.markUnscraped(r.page.Settle(ctx, r.opts.FinalWait))
		result = r.seen()
	}
	if result != confirmed {
		r.opts.Logger.Warn("it could not be confirmed that every final value was scraped", "final_scrape", result)
	}
	r.edit(func(m *record.Manifest) { m.FinalScrape = result })
	return r.writeManifest()
}

// seen says whether everything was scraped by what the page saw.
func (r *Runner) seen() string {
	var lost []string
	for _, s := range r.Manifest().Steps {
		if s.Unscraped {
			lost = append(lost, stepID(s).String())
		}
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
	var last error
	for {
		err := r.opts.Confirm(ctx, r.Manifest())
		if err == nil {
			return confirmed
		}
		if last == nil || ctx.Err() == nil { // that the time was up in the middle of a question says nothing
			last = err
		}
		select {
		case <-ctx.Done():
			return "not_confirmed: " + last.Error()
		case <-time.After(confirmEvery):
		}
	}
}
