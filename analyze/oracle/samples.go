package oracle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"firstbreach/loadgen/record"
)

// samples is a Prometheus data directory that is filled as scrapes would fill it: what the metrics
// page shows goes through Prometheus's own parser, native histograms and classic buckets alike.
type samples struct {
	db      *tsdb.DB
	app     storage.Appender
	symbols *labels.SymbolTable
	ref     map[uint64]storage.SeriesRef
	n       int
}

// commitEvery bounds what an appender holds.
const commitEvery = 50_000

func newSamples(dir string) (*samples, error) {
	opts := tsdb.DefaultOptions()
	db, err := tsdb.Open(dir, nil, nil, opts, nil)
	if err != nil {
		return nil, err
	}
	return &samples{db: db, app: db.Appender(context.Background()), symbols: labels.NewSymbolTable(), ref: map[uint64]storage.SeriesRef{}}, nil
}

// scrape adds one scrape of a step.
func (s *samples) scrape(step *record.Step, now time.Time) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(step.At(now)); err != nil {
		return err
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	var page bytes.Buffer
	encoder := expfmt.NewEncoder(&page, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return err
		}
	}
	return s.add(textparse.NewProtobufParser(page.Bytes(), false, true, false, false, s.symbols), now.UnixMilli())
}

func (s *samples) add(p textparse.Parser, ms int64) error {
	builder := labels.NewBuilder(labels.EmptyLabels())
	for {
		entry, err := p.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case entry != textparse.EntrySeries && entry != textparse.EntryHistogram:
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		builder.Reset(l)
		builder.Set("instance", "loadgen:10511")
		builder.Set("job", "loadgen")
		l = builder.Labels()
		ref, hash := s.ref[l.Hash()], l.Hash()
		if entry == textparse.EntrySeries {
			_, _, v := p.Series()
			ref, err = s.app.Append(ref, l, ms, v)
		} else {
			_, _, h, fh := p.Histogram()
			ref, err = s.app.AppendHistogram(ref, l, ms, h, fh)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l, err)
		}
		s.ref[hash] = ref
		if s.n++; s.n%commitEvery == 0 {
			if err := s.app.Commit(); err != nil {
				return err
			}
			s.app = s.db.Appender(context.Background())
		}
	}
}

func (s *samples) close() error { return errors.Join(s.app.Commit(), s.db.Close()) }
