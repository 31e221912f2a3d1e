package report

import (
	"math"
	"testing"

	"firstbreach/analyze/verdict"
)

func nan() float64 { return math.NaN() }
func inf() float64 { return math.Inf(1) }

func TestFormat(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{seconds(0.75), "750 ms"}, {seconds(0.0000213), "21.3 µs"}, {seconds(4.274), "4.27 s"}, {seconds(0), "0 s"}, {seconds(120), "120 s"}, {seconds(3600), "60 min"},
		{percent(0.05), "5 %"}, {percent(0.001), "0.1 %"}, {percent(0.98), "98 %"}, {percent(1), "100 %"}, {percent(0.10333), "10.3 %"},
		{size(2.31e9), "2.15 GiB"}, {size(12), "12 B"},
		{significant(1234.5), "1234"}, {significant(0.012345), "0.0123"}, {significant(-3.14159), "-3.14"},
		{value(0.97, "ratio"), "97 %"}, {value(65, "watts"), "65 W"}, {value(2048, "bytes_per_second"), "2 KiB/s"}, {value(3, "requests"), "3"},
		{grouped(1234567), "1,234,567"}, {grouped(12), "12"}, {counted(1, "request"), "1 request"}, {counted(2000, "request"), "2,000 requests"},
		{interval(&[2]float64{0.0713, 0.1434}), "7.13–14.3 %"}, {interval(nil), "no data"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if number(ptr(nan())) != nil || number(ptr(inf())) != nil || number(nil) != nil {
		t.Error("what is no number must be null")
	}
	if v := number(ptr(0.123456789)); *v != 0.123457 {
		t.Errorf("%v", *v)
	}
}

func TestObjectiveText(t *testing.T) {
	for _, c := range []struct {
		o    verdict.Objective
		want string
	}{
		{verdict.Objective{Kind: "latency", Signal: "request_duration", Threshold: 30, TargetText: "99.9%"}, "99.9% of requests with E2E ≤ 30 s"},
		{verdict.Objective{Kind: "timeouts", Target: "0.99"}, "0.99 of requests without a timeout"},
		{verdict.Objective{Kind: "gauge", Signal: "gpu_utilization", Max: ptr(0.95)}, "gpu utilization at most 95 %"},
		{verdict.Objective{Kind: "gauge", Signal: "requests_waiting", Max: ptr(4.)}, "requests waiting at most 4"},
		{verdict.Objective{Kind: "expression", Min: ptr(0.2)}, "its expression at least 0.2"},
		{verdict.Objective{Kind: "recovery", Within: 120}, "back to the baseline within 120 s"},
	} {
		if got := objectiveText(c.o); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
