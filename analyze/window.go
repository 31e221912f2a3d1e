package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"

	"firstbreach/analyze/analysis"
	"firstbreach/analyze/standalone"
	"firstbreach/analyze/window"
	"firstbreach/internal/slo"
)

func addWindow(app *kingpin.Application) (string, command) {
	cmd := app.Command("window", "Judge a stretch of production by the SLO file, without any load test: each objective's share of good requests, the budget spent, the breaches with onset, first layer and owner, "+
		"and the number of requests in flight at which production itself first broke.")
	sloFile := cmd.Flag("slo", "SLO file (docs/slo-file.md); its selectors say whose series are read.").Required().PlaceHolder("FILE").String()
	url := cmd.Flag("prometheus.url", "Prometheus that scrapes the service: Prometheus, Thanos, Mimir or VictoriaMetrics.").Required().PlaceHolder("URL").String()
	httpConfig := httpConfigFlag(cmd)
	last := cmd.Flag("last", "How far back from now, or from --to, the window begins: 1h, 7d, 4w. 1d when --from is left out too.").PlaceHolder("DURATION").String()
	from := cmd.Flag("from", "Beginning, such as 2026-11-30T09:00:00Z.").PlaceHolder("TIME").String()
	to := cmd.Flag("to", "End; now when left out.").PlaceHolder("TIME").String()
	resolution := cmd.Flag("resolution", "Width of the bins that requests are counted in: at least four scrape intervals. 1m up to a window of 6h, 5m up to 14d and 15m beyond when left out.").PlaceHolder("DURATION").String()
	out := cmd.Flag("out", "Folder that report.md, report.html and window.json are written to; nothing is written when left out.").PlaceHolder("DIR").String()
	format := cmd.Flag("format", "What is printed: headline (up to three lines) or markdown (the whole report).").Default("markdown").Enum("headline", "markdown")
	failOn := cmd.Flag("fail-on", "Verdicts that make the exit status non-zero: a list of breach (10), undecided (20), no_data (30).").PlaceHolder("LIST").String()
	return cmd.FullCommand(), func(ctx context.Context, e env) (int, error) {
		fail, err := analysis.ParseFailOnWindow(*failOn)
		if err != nil {
			return 0, &standalone.UsageError{Text: err.Error()}
		}
		now := time.Now()
		client, err := prometheusClient(*url, *httpConfig)
		if err != nil {
			return 0, err
		}
		o := window.Options{Client: client, Now: now}
		if o.From, o.To, err = stretch(*last, *from, *to, now); err != nil {
			return 0, &standalone.UsageError{Text: err.Error()}
		}
		if *resolution != "" {
			d, err := duration("--resolution", *resolution)
			if err != nil {
				return 0, &standalone.UsageError{Text: err.Error()}
			}
			o.Resolution = d
		}
		if o.SLO, err = slo.Load(*sloFile); err != nil {
			return 0, err
		}
		if *out != "" {
			if err := (reporting{out: *out}).writable(); err != nil {
				return 0, err
			}
		}
		res, err := window.Analyze(ctx, o)
		if err != nil {
			return 0, err
		}
		if *format == "markdown" {
			err = window.WriteMarkdown(e.stdout, res)
		} else {
			_, err = fmt.Fprintln(e.stdout, strings.Join(res.Headline(), "\n"))
		}
		if err != nil {
			return 0, err
		}
		if *out != "" {
			if err := window.WriteFiles(*out, res); err != nil {
				return 0, err
			}
			fmt.Fprintf(e.stderr, "Report: %s\n", filepath.Join(*out, window.HTMLFile))
		}
		return fail.ExitWindow(res.Verdict), nil
	}
}

// stretch reads the times of a window.
func stretch(last, from, to string, now time.Time) (begin, end time.Time, err error) {
	end = now.Truncate(time.Second)
	if to != "" {
		if end, err = instant("--to", to); err != nil {
			return begin, end, err
		}
	}
	switch {
	case from != "" && last != "":
		return begin, end, fmt.Errorf("--from and --last both say when the window begins: write one")
	case from != "":
		begin, err = instant("--from", from)
		return begin, end, err
	case last == "":
		last = "1d"
	}
	d, err := duration("--last", last)
	return end.Add(-d), end, err
}

func instant(flag, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%s %q is not a time: write one such as 2026-11-30T09:00:00Z or 2026-11-30T10:00:00+01:00", flag, text)
	}
	return t, nil
}

func duration(flag, text string) (time.Duration, error) {
	d, err := model.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s %q is not a duration: write one such as 1h, 7d or 4w", flag, text)
	}
	return time.Duration(d), nil
}
