package record_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// A probe's series are there at 0 from the start, without any label of a run, and with a bucket edge
// at every threshold.
func TestSteady(t *testing.T) {
	registry := prometheus.NewRegistry()
	steady := record.NewSteady(objectives(), time.Now())
	if err := registry.Register(steady); err != nil {
		t.Fatal(err)
	}
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	before := scrape(handler, "prometheus/1")
	for _, want := range []string{
		"\nloadgen_requests_total{outcome=\"ok\"} 0\n", "\nloadgen_requests_total{outcome=\"dropped\"} 0\n", "\nloadgen_timeouts_total{kind=\"connect\"} 0\n",
		"\nloadgen_time_to_first_token_seconds_bucket{le=\"0.7\"} 0\n", "\nloadgen_time_to_first_token_seconds_count 0\n", "\nloadgen_good_requests_total 0\n",
	} {
		if !strings.Contains(before, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	for _, label := range []string{"run=", "phase=", "window=", "round=", "concurrency="} {
		if strings.Contains(before, label) {
			t.Errorf("it has a label %s", label)
		}
	}
	fast := 300 * time.Millisecond
	now := time.Now()
	steady.Observe(record.Request{Window: record.Measure, Scheduled: now, Started: now, Returned: now.Add(fast), Result: wire.Result{Outcome: wire.OK, SentAt: now, TTFT: &fast, E2E: &fast, TPOT: &fast, End: fast}})
	steady.Observe(record.Request{Window: record.Measure, Scheduled: now, Started: now, Returned: now, Result: wire.Result{Outcome: wire.Dropped}})
	after := scrape(handler, "prometheus/1")
	for _, want := range []string{
		"\nloadgen_requests_total{outcome=\"ok\"} 1\n", "\nloadgen_requests_total{outcome=\"dropped\"} 1\n", "\nloadgen_time_to_first_token_seconds_bucket{le=\"0.7\"} 1\n",
	} {
		if !strings.Contains(after, want) {
			t.Errorf("afterwards it lacks %s", want)
		}
	}
}
