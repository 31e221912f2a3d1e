package record_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// TestLateReadsAreCounted: only a value whose threshold lies between its earliest and its latest is
// one that can't be told.
func TestLateReadsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objectives := []slo.Objective{
			{Name: "ttft", Layer: slo.User, Kind: slo.Latency, Signal: slo.SignalTTFT, Threshold: 100 * time.Millisecond},
			{Name: "gaps", Layer: slo.User, Kind: slo.Latency, Signal: slo.SignalICL, Threshold: 30 * time.Millisecond},
		}
		p := record.NewPage(record.PageOptions{Run: "r1", Objectives: objectives, Logger: slog.New(slog.DiscardHandler)})
		s, _, err := p.Begin(t.Context(), record.StepID{Phase: "ramp", Round: 1, Step: 1, Concurrency: 2})
		if err != nil {
			t.Fatal(err)
		}
		s.Enter(record.Warmup, time.Now())
		s.Enter(record.Measure, time.Now())
		for _, r := range []wire.Result{
			{Outcome: wire.OK, TTFT: d(120), TTFTMin: d(90), Gaps: []time.Duration{*d(10), *d(40), *d(50)}, GapsMin: []time.Duration{*d(10), *d(0), *d(45)}},
			{Outcome: wire.OK, TTFT: d(100), TTFTMin: d(90)},
			{Outcome: wire.OK, TTFT: d(120), TTFTMin: d(101)},
			{Outcome: wire.OK, TTFT: d(120), TTFTMin: d(120)},
			{Outcome: wire.ServerError, TTFT: d(120), TTFTMin: d(90)},
			{Outcome: wire.Transport, Warnings: []string{wire.WarnClientLimit}},
		} {
			s.Observe(record.Request{Window: record.Measure, Scheduled: time.Now(), Started: time.Now(), Returned: time.Now(), Result: r})
		}
		s.Warn("late")
		s.Warn("late")
		families := parse(t, ask(p, "1.2.3.4:1", ""))
		for name, want := range map[string]float64{"ttft": 1, "gaps": 1} {
			equal(t, name, counter(t, families, "loadgen_late_read_requests_total", "measure", name), want)
		}
		equal(t, "totals", s.Totals()["measure"].LateReads["ttft"], 1)
		equal(t, "totals of warmup", len(s.Totals()["warmup"].LateReads), 0)
		limited, warnings := s.Client()
		if len(limited) != 1 || limited[0] != string(record.LimitSockets) || len(warnings) != 1 {
			t.Errorf("limited %v, warnings %v", limited, warnings)
		}
		equal(t, "sockets", find(t, families, "loadgen_client_limited", "sockets").GetGauge().GetValue(), 1.0)
		equal(t, "late stamps", find(t, families, "loadgen_client_limited", "late_read_stamps").GetGauge().GetValue(), 0.0)
		s.End(time.Now())
	})
}
