package query

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"firstbreach/internal/promexpr"
)

// question is one query to send.
type question struct {
	name string
	expr promexpr.Expr
	at   time.Time // of an instant query; zero for the server's own time
	span v1.Range  // set (Step > 0) for a range query
	// lookback is how long a sample counts in a range query; 0: as the server is set.
	lookback time.Duration
	// label asks for the values of a label instead, on the series of expr between at−back and at.
	label string
	back  time.Duration
	// take is what is done with the answer, one question after the other in their order.
	take func(answer) error
	// lenient keeps a refusal as the answer: one reading is lost, not the run.
	lenient bool
}

// answer is what came back.
type answer struct {
	value  model.Value
	values model.LabelValues // of a label
	err    error             // of a lenient question
}

// ask sends the questions, a bounded number at a time, and hands out and logs the answers in the
// order of the questions.
func (l *loader) ask(ctx context.Context, qs ...question) error {
	answers := make([]answer, len(qs))
	entries := make([]Query, len(qs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(l.Parallel)
	for i, q := range qs {
		g.Go(func() error {
			var err error
			answers[i], entries[i], err = l.askOne(ctx, q)
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, explain(err, l.address))
			}
			return nil
		})
	}
	err := g.Wait()
	for _, e := range entries {
		if e.Name != "" {
			l.log.Queries = append(l.log.Queries, e)
		}
	}
	if err != nil {
		return err
	}
	for i, q := range qs {
		if err := q.take(answers[i]); err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
	}
	return nil
}

func (l *loader) askOne(ctx context.Context, q question) (answer, Query, error) {
	entry := Query{Name: q.name, Kind: Instant, Expr: q.expr.String(), At: q.at.UTC()}
	var a answer
	var r response
	var err error
	switch {
	case q.label != "":
		entry.Kind, entry.Label, entry.At = LabelValues, q.label, time.Time{}
		entry.From, entry.To = q.at.Add(-q.back).UTC(), q.at.UTC()
		a.values, r.warnings, r.infos, err = l.labelValues(ctx, q.label, entry.Expr, entry.From, entry.To)
	case q.span.Step > 0:
		entry.Kind, entry.At = Ranged, time.Time{}
		entry.From, entry.To, entry.StepS = q.span.Start.UTC(), q.span.End.UTC(), q.span.Step.Seconds()
		entry.LookbackS = q.lookback.Seconds()
		r, err = l.ranged(ctx, entry.Expr, q.span, q.lookback)
	default:
		r, err = l.instant(ctx, entry.Expr, q.at)
	}
	a.value, entry.Warnings, entry.Infos = r.value, r.warnings, r.infos
	if err != nil {
		if !q.lenient || !answersItself(err) {
			return a, entry, err
		}
		a.err, entry.Error = err, err.Error()
		return a, entry, nil
	}
	entry.Type, entry.Series, entry.Samples = a.size()
	return a, entry, nil
}

// size describes an answer for the log.
func (a answer) size() (kind string, series, samples int) {
	switch v := a.value.(type) {
	case nil:
		return "values", 0, len(a.values)
	case model.Vector:
		return "vector", len(v), len(v)
	case model.Matrix:
		for _, s := range v {
			samples += len(s.Values)
		}
		return "matrix", len(v), samples
	case *model.Scalar:
		return "scalar", 0, 1
	default:
		return v.Type().String(), 0, 0
	}
}

// vector is the answer of an instant query that gives series.
func (a answer) vector() (model.Vector, error) {
	if v, ok := a.value.(model.Vector); ok {
		return v, nil
	}
	return nil, a.unexpected("an instant vector")
}

// matrix is the answer of a range query, or of an instant query for raw samples.
func (a answer) matrix() (model.Matrix, error) {
	if v, ok := a.value.(model.Matrix); ok {
		return v, nil
	}
	return nil, a.unexpected("a matrix")
}

func (a answer) unexpected(want string) error {
	if a.value == nil {
		return fmt.Errorf("expected %s, got nothing", want)
	}
	return fmt.Errorf("expected %s, got a %s", want, a.value.Type())
}

// askedAt is when the server evaluated an instant query for one number, in unix seconds on its clock.
func (a answer) askedAt() (float64, error) {
	switch v := a.value.(type) {
	case *model.Scalar:
		return float64(v.Timestamp) / 1000, nil
	case model.Vector: // VictoriaMetrics has no scalars
		if len(v) == 1 {
			return float64(v[0].Timestamp) / 1000, nil
		}
	}
	return 0, a.unexpected("one number")
}
