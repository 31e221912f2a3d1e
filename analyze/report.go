package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"firstbreach/analyze/analysis"
	"firstbreach/analyze/report"
	"firstbreach/analyze/standalone"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/release"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
)

// reporting is one `analyze report`.
type reporting struct {
	dir, url, runID, slo, out, format string
}

func (r reporting) run(ctx context.Context, e env) (state verdict.State, err error) {
	src, err := r.source()
	if err != nil {
		return "", err
	}
	url := r.url
	if url == "" {
		s, err := analysis.OpenDir(ctx, r.dir, e.logger)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		url = s.URL()
	}
	doc, res, err := analysis.Run(ctx, analysis.Options{Source: src, Prometheus: analysis.Prometheus{URL: url}, Version: release.Version()})
	if err != nil {
		return "", err
	}
	return res.State, r.write(doc, e.stdout)
}

// source is what is known of the run without asking Prometheus.
func (r reporting) source() (analysis.Source, error) {
	if r.dir == "" {
		if r.runID == "" || r.slo == "" || r.url == "" {
			return analysis.Source{}, &standalone.UsageError{Text: "name a run directory with --run, or a run by --run-id, --slo and --prometheus.url"}
		}
		f, err := slo.Load(r.slo)
		return analysis.Source{RunID: r.runID, SLO: f}, err
	}
	src, err := analysis.ReadDir(r.dir)
	if err != nil {
		return src, err
	}
	if r.runID != "" && r.runID != src.RunID {
		return src, &standalone.UsageError{Text: fmt.Sprintf("--run-id is %s, but %s holds run %s", r.runID, r.dir, src.RunID)}
	}
	if r.slo != "" {
		src.SLO, err = slo.Load(r.slo)
	}
	return src, err
}

// write puts the report where it belongs and prints what was asked for.
func (r reporting) write(doc *report.Document, stdout io.Writer) error {
	if r.format == "markdown" {
		if err := doc.WriteMarkdown(stdout); err != nil {
			return err
		}
	} else {
		for _, line := range doc.Headline() {
			fmt.Fprintln(stdout, line)
		}
	}
	out := r.out
	if out == "" {
		out = r.dir
	}
	if out == "" {
		return nil // nowhere to write: printed only
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := doc.WriteDir(out); err != nil {
		return err
	}
	if r.format != "markdown" {
		fmt.Fprintf(stdout, "\nReport: %s\n", filepath.Join(out, record.ReportHTML))
	}
	return nil
}
