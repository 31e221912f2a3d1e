package compare

import (
	"math"
	"strings"
	"testing"

	"firstbreach/analyze/report"
	"firstbreach/internal/signal"
)

// served is a run of an engine with so many slots; its throughput above them is capped times what a slot does.
func served(id string, slots, capped float64, seed int) Run {
	r := made(id, 1, 1, 3, seed)
	for i := range r.Report.Steps {
		s := &r.Report.Steps[i]
		n := float64(s.Concurrency)
		running := math.Min(n, slots)
		s.ServiceSignals = map[string]report.Reading{signal.SignalRequestsRunning: {Max: &running}}
		if n > 2 {
			for k := range s.Rounds {
				*s.Rounds[k].Throughput.Requests *= capped
			}
		}
	}
	return r
}

// Twice the slots are the one test of whether slots or compute was the limit.
func TestSlotsOrCompute(t *testing.T) {
	for name, c := range map[string]struct {
		a, b   Run
		limit  string
		says   string
		levels string
	}{
		"throughput doubles": {served("a", 2, 1, 1), served("b", 4, 2, 2), LimitSlots, "4 requests ran at once instead of 2, and at 4, 8 in flight that changed the throughput by +1", "4,8"},
		"it stays":           {served("a", 2, 1, 1), served("b", 4, 1, 2), LimitCompute, "more slots bring nothing", "4,8"},
		"it falls":           {served("a", 2, 1, 1), served("b", 4, 0.8, 2), LimitCompute, "by -19.8 %", "4,8"},
		"on the edge":        {served("a", 2, 1, 1), served("b", 4, 1.05, 2), "", "still undecided", "4,8"},
		"halved":             {served("a", 4, 2, 1), served("b", 2, 1, 2), LimitSlots, "4 requests ran at once instead of 2, and at 4, 8 in flight that changed the throughput by +", "4,8"},
		"none queued":        {served("a", 8, 1, 1), served("b", 100, 1, 2), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Compare(c.a, c.b, Options{}).Slots
			if c.says == "" {
				if got != nil {
					t.Errorf("%+v of two runs that ran the same number at once", got)
				}
				return
			}
			if got == nil || got.Limit != c.limit || !strings.Contains(got.Finding, c.says) || strings.Join(got.Levels, ",") != c.levels {
				t.Errorf("%+v, want limit %q, %q", got, c.limit, c.says)
			}
		})
	}
}

// Where something else was changed as well, the throughput says nothing about the slots.
func TestSlotsAndAnotherModel(t *testing.T) {
	a, b := served("a", 2, 1, 1), served("b", 4, 2, 2)
	b.Report.Conditions["model"], b.Report.Conditions["engine_slots"] = "another", "4"
	got := Compare(a, b, Options{Intended: []string{"model", "engine_slots"}}).Slots
	if got == nil || got.Limit != "" || got.Throughput != nil || !strings.Contains(got.Finding, "differ in model too") {
		t.Errorf("%+v", got)
	}
}
