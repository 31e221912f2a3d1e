package calibrate

import (
	"net"
	"strings"
	"testing"
	"time"
)

// TestMeasure reads a source in this same process: the figures say little, but they are all there and
// nothing is lost.
func TestMeasure(t *testing.T) {
	source := Source{Prefill: 20 * time.Millisecond, Gap: 5 * time.Millisecond, Tokens: 8}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- source.Serve(t.Context(), l) }()
	for _, load := range []Load{
		{Streams: 4, Warmup: 100 * time.Millisecond, Measure: 300 * time.Millisecond},
		{Streams: 4, Measure: 200 * time.Millisecond, Wave: true, ReadStamps: true},
	} {
		load.URL, load.Source = "http://"+l.Addr().String(), source
		v, err := Measure(t.Context(), load)
		if err != nil {
			t.Fatal(err)
		}
		if v.Failed != 0 || v.Missed != 0 || v.Requests < 4 || v.TTFT.N < 4 || v.Chunk.N <= v.TTFT.N || v.Chunk.P99 <= 0 || v.Chunk.P99 > v.Chunk.Max || v.FullTTFT.N == 0 {
			t.Errorf("%+v", v)
		}
		if load.ReadStamps && v.StampSource != "read" {
			t.Errorf("stamps %s, want read", v.StampSource)
		}
		var table strings.Builder
		if err := WriteTable(&table, []Level{v}); err != nil || strings.Count(table.String(), "\n") != 2 || strings.Contains(table.String(), "NaN") {
			t.Errorf("%v\n%s", err, table.String())
		}
	}
}

func TestSpread(t *testing.T) {
	var s spread
	for i := range 1000 {
		s.add(time.Duration(i+1) * time.Microsecond)
		s.add(-time.Duration(i+1) * time.Microsecond)
	}
	v := s.sum()
	for _, q := range []struct{ got, want float64 }{{v.P50, 500e-6}, {v.P99, 990e-6}, {v.Max, 1e-3}} {
		if q.got < q.want*0.99 || q.got > q.want*1.03 {
			t.Errorf("%g, want %g", q.got, q.want)
		}
	}
	if v.N != 2000 {
		t.Errorf("%d values", v.N)
	}
}
