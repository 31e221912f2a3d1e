package query

import (
	"cmp"
	"context"
	"fmt"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"firstbreach/internal/promexpr"
)

// Ranges asks a Prometheus range queries that belong to no run, and keeps their log.
type Ranges struct {
	Log Log
	p   *prometheus
}

// OpenRanges connects to the Prometheus of the options; only URL, Client and Pause count.
func OpenRanges(o Options) (*Ranges, error) {
	o.Pause = cmp.Or(o.Pause, DefaultPause)
	p, err := connect(o)
	if err != nil {
		return nil, err
	}
	return &Ranges{p: p}, nil
}

// Range evaluates an expression at every step of a range. name says in words what is asked, for the log
// and for errors.
func (r *Ranges) Range(ctx context.Context, name string, expr promexpr.Expr, span v1.Range) (model.Matrix, error) {
	resp, err := r.p.ranged(ctx, expr.String(), span, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, explain(err, r.p.address))
	}
	entry := Query{Name: name, Kind: Ranged, Expr: expr.String(), From: span.Start.UTC(), To: span.End.UTC(),
		StepS: span.Step.Seconds(), Warnings: resp.warnings, Infos: resp.infos}
	entry.Type, entry.Series, entry.Samples = answer{value: resp.value}.size()
	r.Log.Queries = append(r.Log.Queries, entry)
	m, ok := resp.value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("%s: Prometheus answered with a %s in place of a matrix", name, entry.Type)
	}
	return m, nil
}
