package run

import (
	"strings"
	"testing"
	"time"

	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

func TestSelfCheckLimits(t *testing.T) {
	const us = time.Microsecond
	for _, tt := range []struct {
		name  string
		w     window
		limit record.Limit
		warn  string
	}{
		{"kernel stamps, in time", window{reads: wire.Reads{Chunks: 1000, Late: 4, Lagging: 9}, sched: time.Second, sleep: time.Second}, "", ""},
		{"kernel stamps, late", window{reads: wire.Reads{Chunks: 1000, Late: 5}}, "", "after the next one had come"},
		{"kernel stamps, lagging", window{reads: wire.Reads{Chunks: 1000, Lagging: 10}}, "", "a millisecond or more"},
		{"read stamps, in time", window{reads: wire.Reads{Chunks: 1000, Unstamped: 1000}, sched: 499 * us, sleep: 1999 * us}, "", ""},
		{"read stamps, slow to be scheduled", window{reads: wire.Reads{Chunks: 1000, Unstamped: 1000}, sched: 500 * us}, record.LimitLateReads, ""},
		{"read stamps, slow to wake", window{reads: wire.Reads{Chunks: 1000, Unstamped: 1000}, sleep: 2000 * us}, record.LimitLateReads, ""},
		{"a few read stamps", window{reads: wire.Reads{Chunks: 1000, Unstamped: 4}, sched: time.Second}, "", ""},
		{"more read stamps", window{reads: wire.Reads{Chunks: 1000, Unstamped: 5}, sched: time.Second}, record.LimitLateReads, ""},
	} {
		limit, warnings := tt.w.judge()
		if limit != tt.limit || (tt.warn == "") != (len(warnings) == 0) || !strings.Contains(strings.Join(warnings, ""), tt.warn) {
			t.Errorf("%s: %q, %q", tt.name, limit, warnings)
		}
	}
}

func TestP99(t *testing.T) {
	var ds []time.Duration
	for i := range 200 {
		ds = append(ds, time.Duration(200-i))
	}
	if got := p99(ds); got != 198 {
		t.Errorf("%d, want 198", got)
	}
	if p99(nil) != 0 || p99(ds[:1]) != 200 {
		t.Error("few values")
	}
}

func TestLatenciesAreThoseSinceTheLastCall(t *testing.T) {
	l := newLatencies()
	for range 1000 {
		done := make(chan struct{})
		go func() { close(done) }()
		<-done
	}
	if d := l.p99(); d <= 0 || d > 10*time.Second {
		t.Errorf("P99 %v after a thousand goroutines", d)
	}
}
