package analysis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/api"

	"firstbreach/analyze/query"
	"firstbreach/analyze/report"
	"firstbreach/analyze/store"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
)

// Source is what is known of a run before Prometheus is asked.
type Source struct {
	RunID    string
	SLO      *slo.File
	Plan     string           // as used; "" without a run directory
	Manifest *record.Manifest // nil without a run directory
	OtherSLO string           // says that SLO is not the run's own; "" where it is, or nobody knows
}

// ReadDir reads what a run directory knows of its run.
func ReadDir(dir string) (Source, error) {
	m, err := record.ReadManifest(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return Source{}, &NoRunError{dir}
	case err != nil:
		return Source{}, fmt.Errorf("read the run: %w; it can be reported without its manifest: --run-id ID --slo %s --prometheus.url URL", err, filepath.Join(dir, record.SLOFile))
	}
	f, err := slo.Load(filepath.Join(dir, record.SLOFile))
	if err != nil {
		return Source{}, err
	}
	plan, err := os.ReadFile(filepath.Join(dir, record.PlanFile))
	if err != nil {
		return Source{}, fmt.Errorf("read the plan of the run: %w", err)
	}
	return Source{RunID: m.Run, SLO: f, Plan: string(plan), Manifest: &m}, nil
}

// UseSLO judges the run by another SLO file, and says so where it differs from the run's own.
func (s *Source) UseSLO(f *slo.File) {
	if s.SLO != nil && !bytes.Equal(s.SLO.Source, f.Source) {
		s.OtherSLO = fmt.Sprintf("judged by %s, which differs from the SLO file that the run was made with (%s)", f.Path, s.SLO.Path)
	}
	s.SLO = f
}

// NoRunError says that a directory is not that of a run.
type NoRunError struct{ Dir string }

func (e *NoRunError) Error() string {
	return fmt.Sprintf("%s is no run directory, it has no %s: name the one that the run wrote, runs/<run ID> unless --out named another", e.Dir, record.ManifestFile)
}

// Prometheus is where the run's series are.
type Prometheus struct {
	URL    string
	Client api.Client // used in place of URL when set, for instance one with credentials
}

// OpenDir serves the Prometheus data of a run directory for as long as the store that it returns is
// open.
func OpenDir(ctx context.Context, dir string, logger *slog.Logger) (*store.Store, error) {
	data := filepath.Join(dir, record.StoreDir)
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s holds no Prometheus data (no folder %s in it): name the Prometheus that scraped the run with --prometheus.url", dir, record.StoreDir)
	}
	return store.Open(ctx, store.Options{Dir: data, ReadOnly: true, Logger: logger})
}

// Options say how a run is analysed.
type Options struct {
	Source
	Prometheus
	Version string
	Now     func() time.Time // time.Now when nil
}

// Load queries one run, for somebody who judges it himself.
func Load(ctx context.Context, o Options) (*verdict.Run, *query.Log, error) {
	run, log, err := query.Load(ctx, query.Options{
		URL: o.URL, Client: o.Client, RunID: o.RunID, SLO: o.SLO, Manifest: o.Manifest, Now: o.Now,
	})
	if err != nil {
		return nil, log, err
	}
	run.OtherSLO = o.OtherSLO
	return run, log, nil
}

// Run queries, judges and describes one run.
func Run(ctx context.Context, o Options) (*report.Document, verdict.Result, error) {
	run, log, err := Load(ctx, o)
	if err != nil {
		return nil, verdict.Result{}, err
	}
	res := verdict.Judge(*run)
	return report.New(*run, res, report.Meta{
		Version: o.Version, Queries: queries(log), SLO: string(o.SLO.Source), Plan: o.Plan,
	}), res, nil
}

// queries turns the log into what the report shows of it.
func queries(log *query.Log) []report.Query {
	var out []report.Query
	for _, q := range log.Queries {
		out = append(out, report.Query{
			Name: q.Name, Kind: string(q.Kind), Expr: q.Expr,
			At: moment(q.At), From: moment(q.From), To: moment(q.To), StepS: q.StepS, Lookback: q.LookbackS,
			Series: q.Series, Samples: q.Samples, Warnings: append(q.Warnings, q.Infos...), Error: q.Error,
		})
	}
	return out
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
