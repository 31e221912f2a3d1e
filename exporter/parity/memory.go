package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	"firstbreach/exporter/columns"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

// memory keeps the scrapes of one page, and answers PromQL over them.
type memory struct {
	dir         string
	db          *tsdb.DB
	engine      *promql.Engine
	first, last time.Time
}

func newMemory() (*memory, error) {
	dir, err := os.MkdirTemp("", "parity")
	if err != nil {
		return nil, err
	}
	db, err := tsdb.Open(dir, nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return nil, err
	}
	return &memory{dir: dir, db: db, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
	})}, nil
}

func (m *memory) Close() {
	m.db.Close()
	os.RemoveAll(m.dir)
}

// scrape takes the page as of the given time.
func (m *memory) scrape(ctx context.Context, url string, at time.Time) error {
	at = at.Truncate(time.Millisecond) // as samples are kept, or a range may miss the first one
	page, err := fetch(ctx, url)
	if err != nil {
		return err
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(string(page)))
	if err != nil {
		return err
	}
	app := m.db.Appender(ctx)
	for name, family := range families {
		for _, metric := range family.Metric {
			b := labels.NewScratchBuilder(len(metric.Label) + 1)
			b.Add(labels.MetricName, name)
			for _, l := range metric.Label {
				b.Add(l.GetName(), l.GetValue())
			}
			b.Sort()
			v := metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetUntyped().GetValue()
			if _, err := app.Append(0, b.Labels(), at.UnixMilli(), v); err != nil {
				return err
			}
		}
	}
	if m.first.IsZero() {
		m.first = at
	}
	m.last = at
	return app.Commit()
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: start the exporter, or name its page with --url", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// query evaluates the column's expression over the time between the first and the last scrape. The
// mean over that time of an expression without a range is a mean over the scrapes after the first,
// as the tool reports the ends of its intervals.
func (m *memory) query(ctx context.Context, c columns.Column, device string) (float64, error) {
	span := m.last.Sub(m.first) + time.Millisecond
	expr := c.PromQL(fmt.Sprintf("%dms", span.Milliseconds()))
	if c.OfAMoment() {
		expr = fmt.Sprintf("avg_over_time((%s)[%dms:1s])", c.Expr, span.Milliseconds()-1000)
	}
	return m.value(ctx, expr, device, m.last)
}

// begin is what a column of a moment was at the first scrape.
func (m *memory) begin(ctx context.Context, c columns.Column, device string) (float64, error) {
	return m.value(ctx, c.Expr, device, m.first)
}

func (m *memory) value(ctx context.Context, expr, device string, at time.Time) (float64, error) {
	q, err := m.engine.NewInstantQuery(ctx, m.db, nil, expr, at)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", expr, err)
	}
	defer q.Close()
	result := q.Exec(ctx)
	vector, err := result.Vector()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", expr, err)
	}
	for _, s := range vector {
		if s.Metric.Get("device") == device && !math.IsNaN(s.F) {
			return s.F, nil
		}
	}
	return 0, nil
}

func mapKeys(m map[string]bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
