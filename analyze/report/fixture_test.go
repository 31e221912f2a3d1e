package report

import (
	"math"
	"time"

	"firstbreach/analyze/verdict"
)

func ptr[T any](v T) *T { return &v }

// began is the start of the fixture's run.
const began = 1_790_000_000.0

// rungSpec is what one concurrency of the fixture does: two slots serve, the rest waits.
type rungSpec struct {
	phase    string
	c        int
	bad      []int64 // TTFT over 700 ms, by round
	ttft     float64 // P50, seconds
	waiting  float64
	failed   int64
	rate     float64
	duration float64
}

func levels() []rungSpec {
	return []rungSpec{
		{verdict.PhaseBaseline, 1, []int64{0, 0, 0}, 0.19, 0, 0, 1.9, 53},
		{verdict.PhaseRamp, 1, []int64{0, 0, 0}, 0.19, 0, 0, 1.9, 53},
		{verdict.PhaseRamp, 2, []int64{1, 0, 1}, 0.24, 0, 0, 3.4, 30},
		{verdict.PhaseRamp, 4, []int64{97, 99, 98}, 1.21, 1.9, 0, 3.5, 30},
		{verdict.PhaseRamp, 8, []int64{97, 97, 96}, 3.9, 5.8, 3, 3.5, 31},
		{verdict.PhaseRecovery, 1, []int64{0, 1, 0}, 0.2, 0, 0, 1.8, 54},
	}
}

// sloFile are the objectives of the fixture, one of every kind.
func sloFile() []verdict.Objective {
	return []verdict.Objective{
		{Name: "ttft", Layer: "user", Kind: "latency", Signal: "time_to_first_token", Threshold: 0.7, Target: "0.95", TargetText: "95%",
			Owner: "inference-platform", Action: "Cap concurrency at the last step that held; add a replica if demand stays above it.", Runbook: "https://runbooks.example.com/chat/ttft"},
		{Name: "success", Layer: "user", Kind: "success", Signal: "success_ratio", Target: "0.95", TargetText: "95%", Owner: "inference-platform", Action: "Roll back the last change."},
		{Name: "capacity", Layer: "user", Kind: "capacity", Signal: "capacity", MinConcurrency: 4, Owner: "inference-platform", Action: "Add a replica before traffic grows."},
		{Name: "recovery", Layer: "user", Kind: "recovery", Signal: "recovery", Within: 120, Owner: "inference-platform", Action: "Drain and restart."},
		{Name: "queue", Layer: "service", Kind: "gauge", Signal: "requests_waiting", Max: ptr(1.), Owner: "inference-platform", Action: "Shed load."},
		{Name: "cpu", Layer: "resource", Kind: "gauge", Signal: "cpu_utilization", Max: ptr(0.9)},
	}
}

// breachRun is a run like that of a real server with two slots: the first breach is 4, the last ok 2.
func breachRun() verdict.Run {
	run := verdict.Run{ID: "20260921-141320-7f3a", Service: "chat", Objectives: sloFile(), Ladder: []int{1, 2, 4, 8}, Rounds: 3, State: "complete", Manifest: true,
		ScrapeInterval: 1, ClockSkew: ptr(0.004), Conditions: map[string]string{
			"api": "openai-chat", "engine": "llamacpp", "model": "gemma-3-270m-q4_k_m", "output_tokens": "16", "prompts": "synthetic, 30 tokens", "url": "http://127.0.0.1:18182", "seed": "7"}}
	at := began
	for round := 1; round <= 3; round++ {
		for i, l := range levels() {
			s := stepOf(l, round, at)
			s.Step = max(1, i)
			run.Steps = append(run.Steps, s)
			at += l.duration + 4
		}
	}
	for _, l := range levels() {
		run.Latency = append(run.Latency, verdict.StepLatency{Phase: l.phase, Concurrency: l.c, TTFT: spread(l.ttft, 1.3), E2E: spread(l.ttft+0.31, 1.2), TPOT: spread(0.021, 1.1)})
	}
	run.Timeline = timeline(run.Steps, at)
	for _, x := range run.Timeline {
		if x.Layer != "user" {
			run.Signals = append(run.Signals, x)
		}
	}
	return run
}

func spread(p50, by float64) verdict.Quantiles {
	return verdict.Quantiles{P50: ptr(p50), P95: ptr(p50 * by), P99: ptr(p50 * by * 1.08)}
}

func stepOf(l rungSpec, round int, at float64) verdict.Step {
	const n = 100
	to := at + 1 + n/l.rate
	held := float64(l.c) * n / l.rate
	wobble := 1 + 0.02*float64(round-2)
	s := verdict.Step{Phase: l.phase, Round: round, Concurrency: l.c, Start: ptr(at), MeasureFrom: ptr(at + 1), MeasureTo: ptr(to), End: ptr(at + l.duration),
		Outcomes: map[string]int64{"ok": n - l.failed, "timeout": l.failed}, Timeouts: map[string]int64{"first_token": l.failed}, Good: n - l.bad[round-1] - l.failed,
		Counts:  map[string]verdict.Count{"ttft": {Total: n, Slow: l.bad[round-1], Failed: l.failed}, "success": {Total: n, Failed: l.failed}},
		Scrapes: int(l.duration), ScrapesExpected: int(l.duration), InFlightSeconds: held * 0.997, OccupancySeconds: held * 0.99, SumE2E: held * 0.99,
		OutputTokens: 16 * n, TTFT: spread(l.ttft*wobble, 1.3), E2E: spread((l.ttft+0.31)*wobble, 1.2), TPOT: spread(0.021*wobble, 1.1)}
	busy := math.Min(1, 0.52*float64(l.c)) * 0.99
	over := func(b bool) int {
		if b {
			return 25
		}
		return 0
	}
	s.Readings = map[string]verdict.Reading{
		"requests_waiting": {Layer: "service", Unit: "requests", Mean: ptr(l.waiting), Max: ptr(math.Ceil(l.waiting)), Samples: 28, Over: over(l.waiting > 1)},
		"requests_running": {Layer: "service", Unit: "requests", Mean: ptr(math.Min(2, float64(l.c))), Max: ptr(math.Min(2, float64(l.c))), Samples: 28},
		"cpu_utilization":  {Layer: "resource", Unit: "ratio", Mean: ptr(busy), Max: ptr(math.Min(1, busy+0.01)), Samples: 28, Over: over(busy > 0.9)},
		"memory_used":      {Layer: "resource", Unit: "bytes", Mean: ptr(2.31e9 + 1e7*float64(l.c)), Max: ptr(2.34e9 + 1e7*float64(l.c)), Samples: 28},
		"disk_utilization": {Layer: "resource", Unit: "ratio", Mean: ptr(0.013), Max: ptr(0.06), Samples: 28},
		"gpu_utilization":  {Layer: "resource", Unit: "ratio", Missing: "the exporter sees no GPU"},
		"gpu_memory_used":  {Layer: "resource", Unit: "bytes", Missing: "the exporter sees no GPU"},
	}
	return s
}

// timeline is what a picture of such a run holds, with an outage of the scrapes in it.
func timeline(steps []verdict.Step, end float64) []verdict.Series {
	flight := verdict.Series{Signal: "in_flight_requests", Layer: "user", Unit: "requests"}
	ttft := verdict.Series{Signal: "time_to_first_token", Layer: "user", Unit: "seconds"}
	waiting := verdict.Series{Signal: "requests_waiting", Layer: "service", Unit: "requests"}
	cpu := verdict.Series{Signal: "cpu_utilization", Layer: "resource", Unit: "ratio"}
	for t := began; t < end; t++ {
		if t > began+300 && t < began+312 {
			continue
		}
		var c, mean float64
		for _, s := range steps {
			if t >= *s.Start && t < *s.End {
				c, mean = float64(s.Concurrency), *s.TTFT.P50
			}
		}
		wave := math.Sin(t / 3)
		flight.Points = append(flight.Points, verdict.Point{T: t, V: c})
		waiting.Points = append(waiting.Points, verdict.Point{T: t, V: math.Max(0, c-2)})
		cpu.Points = append(cpu.Points, verdict.Point{T: t, V: math.Min(1, 0.06+0.47*c+0.02*wave)})
		if mean > 0 {
			ttft.Points = append(ttft.Points, verdict.Point{T: t, V: mean * (1 + 0.07*wave)})
		}
	}
	return []verdict.Series{flight, ttft, waiting, cpu}
}

// fixtures are one run for each state that a report can have.
func fixtures() map[string]verdict.Run {
	none := breachRun()
	none.Ladder = []int{1, 2}
	none.Steps = keep(none.Steps, func(s verdict.Step) bool { return s.Concurrency <= 2 })

	open := breachRun()
	for i := range open.Steps {
		if s := &open.Steps[i]; s.Concurrency > 2 {
			s.Counts["ttft"] = verdict.Count{Total: 100, Slow: 4, Failed: 0}
			s.Counts["success"] = verdict.Count{Total: 100}
		}
	}

	throttled := breachRun()
	for i := range throttled.Steps {
		s := &throttled.Steps[i]
		if s.Phase == verdict.PhaseRamp && s.Concurrency > 2 {
			s.OccupancySeconds *= 0.6
			s.InFlightSeconds *= 0.6
			s.SumE2E *= 0.6
		}
	}

	killed := breachRun()
	killed.State = "running"
	killed.Steps = killed.Steps[:9]
	last := &killed.Steps[8]
	last.MeasureTo, last.End = nil, nil

	hostile := breachRun()
	hostile.ID = `<script>alert("1")</script>`
	hostile.Service = "a|b `c` <i>"
	hostile.Conditions[`x"><img src=x onerror=alert(1)>`] = "</td></table>"
	hostile.Objectives[0].Action = "</p><script>alert(2)</script>"
	hostile.Objectives[0].Name = "ttft"

	return map[string]verdict.Run{
		"breach": breachRun(), "none": none, "inconclusive": open, "invalid": throttled, "killed": killed, "empty": {ID: "nothing", State: "complete"}, "hostile": hostile,
	}
}

func keep(steps []verdict.Step, f func(verdict.Step) bool) []verdict.Step {
	var out []verdict.Step
	for _, s := range steps {
		if f(s) {
			out = append(out, s)
		}
	}
	return out
}

// describe judges and reports a run.
func describe(run verdict.Run) *Document {
	at := time.Unix(int64(began)+1200, 0).UTC()
	return New(run, verdict.Judge(run), Meta{Version: "0.1.0-test", SLO: "apiVersion: firstbreach/v1\nservice: chat\n", Plan: "apiVersion: firstbreach/v1\nrounds: 3\n",
		Queries: []Query{
			{Name: "requests by outcome", Kind: "instant", Expr: `last_over_time(loadgen_requests_total{run="20260921-141320-7f3a",window="measure"}[2h])`, At: &at, Series: 198, Samples: 198},
			{Name: "CPU", Kind: "range", Expr: `1 - avg(rate(host_cpu_seconds_total{mode=~"idle|iowait",role="target"}[4s]))`, From: &at, To: &at, StepS: 1, Lookback: 3, Series: 1, Samples: 760},
		}})
}
