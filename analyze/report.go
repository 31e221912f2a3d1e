package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/api"

	"firstbreach/analyze/analysis"
	"firstbreach/analyze/report"
	"firstbreach/analyze/standalone"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/capacity"
	"firstbreach/internal/promapi"
	"firstbreach/internal/release"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
)

// reporting is one `analyze report`.
type reporting struct {
	dir, url, httpConfig, runID, slo, out, format string
	capacity                                      string   // where what held is written; "" for nowhere
	shards                                        []string // run directories of the other shards
}

func (r reporting) run(ctx context.Context, e env) (state verdict.State, err error) {
	src, err := r.source()
	if err != nil {
		return "", err
	}
	if err := r.writable(); err != nil {
		return "", err
	}
	var prometheus analysis.Prometheus
	if r.url != "" {
		if prometheus.Client, err = prometheusClient(r.url, r.httpConfig); err != nil {
			return "", err
		}
	} else {
		s, err := analysis.OpenDir(ctx, r.dir, e.logger)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		prometheus.URL = s.URL()
	}
	doc, res, err := analysis.Run(ctx, analysis.Options{Source: src, Prometheus: prometheus, Version: release.Version()})
	if err != nil {
		return "", err
	}
	if err := r.write(doc, src, e.stdout); err != nil {
		return res.State, err
	}
	return res.State, r.writeCapacity(src, res, e.stdout)
}

// writeCapacity writes what the run showed to hold, for the capacity alert. A run that shows nothing of
// the kind leaves the file as it is: an older number is better than a made-up one.
func (r reporting) writeCapacity(src analysis.Source, res verdict.Result, stdout io.Writer) error {
	if r.capacity == "" {
		return nil
	}
	n, ok := res.Holds()
	if !ok {
		return fmt.Errorf("%s was not written: the run is %s and shows no concurrency up to which every step held", r.capacity, res.State)
	}
	c := capacity.File{Service: src.SLO.Service, Engine: src.SLO.Engine, Run: src.RunID, At: time.Now().UTC().Truncate(time.Second), Concurrency: n}
	if m := src.Manifest; m != nil {
		c.Conditions = m.Conditions
		if m.EndedAt != nil {
			c.At = m.EndedAt.UTC().Truncate(time.Second)
		}
	}
	if err := c.Write(r.capacity); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Capacity: %d, written to %s; generate the alerts again\n", n, r.capacity)
	return nil
}

// source is what is known of the run without asking Prometheus.
func (r reporting) source() (analysis.Source, error) {
	if r.url == "" && r.httpConfig != "" {
		return analysis.Source{}, &standalone.UsageError{Text: "--http.config.file is for --prometheus.url, which is missing"}
	}
	if r.dir == "" {
		if r.runID == "" || r.slo == "" || r.url == "" {
			return analysis.Source{}, &standalone.UsageError{Text: "name a run directory with --run, or a run by --run-id, --slo and --prometheus.url"}
		}
		f, err := slo.Load(r.slo)
		return analysis.Source{RunID: r.runID, SLO: f}, err
	}
	src, err := analysis.ReadDirs(append([]string{r.dir}, r.shards...))
	if err != nil {
		return src, err
	}
	if r.runID != "" && r.runID != src.RunID {
		return src, &standalone.UsageError{Text: fmt.Sprintf("--run-id is %s, but %s holds run %s", r.runID, r.dir, src.RunID)}
	}
	if r.slo != "" {
		f, err := slo.Load(r.slo)
		if err != nil {
			return src, err
		}
		src.UseSLO(f)
	}
	return src, nil
}

func httpConfigFlag(cmd *kingpin.CmdClause) *string {
	return cmd.Flag("http.config.file", "File with the credentials, headers, TLS and proxy that --prometheus.url wants, in the form of Prometheus' HTTP client configuration, as promtool has it.").PlaceHolder("FILE").String()
}

// prometheusClient is a client of the Prometheus that the flags name.
func prometheusClient(url, httpConfig string) (api.Client, error) {
	c, err := promapi.New(url, httpConfig)
	if err != nil {
		return nil, &standalone.UsageError{Text: "--prometheus.url, --http.config.file: " + err.Error()}
	}
	return c, nil
}

// writable refuses a directory that can't take the report, before the work of making one.
func (r reporting) writable() error {
	out := cmp.Or(r.out, r.dir)
	if out == "" {
		return nil
	}
	err := os.MkdirAll(out, 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(out, ".report-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return &standalone.UsageError{Text: fmt.Sprintf("the report can't be written to %s: %v (fix: name a directory of yours with --out)", out, err)}
	}
	return nil
}

// write puts the report where it belongs and prints what was asked for.
func (r reporting) write(doc *report.Document, src analysis.Source, stdout io.Writer) error {
	if r.format == "markdown" {
		if err := doc.WriteMarkdown(stdout); err != nil {
			return err
		}
	} else {
		for _, line := range doc.Headline() {
			fmt.Fprintln(stdout, line)
		}
		if src.OtherSLO != "" {
			fmt.Fprintf(stdout, "\nSLO file: %s\n", src.OtherSLO)
		}
	}
	out := cmp.Or(r.out, r.dir)
	if out == "" {
		return nil // nowhere to write: printed only
	}
	if err := doc.WriteDir(out); err != nil {
		return err
	}
	if r.format != "markdown" {
		fmt.Fprintf(stdout, "\nReport: %s\n", filepath.Join(out, record.ReportHTML))
	}
	return nil
}
