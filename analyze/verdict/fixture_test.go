package verdict

import "fmt"

func ptr[T any](v T) *T { return &v }

// p95 is the objective most tests judge: at most 5 % of requests over 2 s.
func p95(name string) Objective {
	return Objective{Name: name, Layer: "user", Kind: "latency", Signal: "time_to_first_token", Threshold: 2, Target: "0.95", TargetText: "95%",
		Owner: "platform", Action: "Cap concurrency."}
}

// ladderRun is a complete run of the given concurrencies, three rounds of 100 requests each, with
// the bad requests of each round by concurrency.
func ladderRun(bad map[int][]int64, ladder ...int) Run {
	run := Run{ID: "r1", Objectives: []Objective{p95("ttft")}, Ladder: ladder, Rounds: 3, State: "complete", Manifest: true,
		ScrapeInterval: 1, ClockSkew: ptr(0.01), Conditions: map[string]string{"model": "m"}}
	for _, c := range ladder {
		for i, k := range bad[c] {
			run.Steps = append(run.Steps, goodStep(PhaseRamp, i+1, c, k, 100))
		}
	}
	return run
}

// goodStep is a step that passes every gate: 20 s of measuring with the load held.
func goodStep(phase string, round, concurrency int, bad, total int64) Step {
	at := float64(1000*round + 10*concurrency)
	const window = 20.0
	held := float64(concurrency) * window
	return Step{Phase: phase, Round: round, Step: 1, Concurrency: concurrency,
		Start: ptr(at), MeasureFrom: ptr(at + 1), MeasureTo: ptr(at + 1 + window), End: ptr(at + 22),
		Outcomes: map[string]int64{"ok": total}, Timeouts: map[string]int64{}, Good: total - bad,
		Counts:  map[string]Count{"ttft": {Total: total, Slow: bad}},
		Scrapes: 22, ScrapesExpected: 22, InFlightSeconds: held, OccupancySeconds: held,
		SumE2E: held, OutputTokens: 10 * total, E2E: Quantiles{P99: ptr(0.5)}}
}

// verdicts writes the ladder's verdicts in short: "1:ok 2:breach".
func verdicts(r Result) string {
	var s string
	for _, i := range r.ladder() {
		s += fmt.Sprintf("%d:%s ", r.Steps[i].Concurrency, r.Steps[i].Verdict)
	}
	if s != "" {
		s = s[:len(s)-1]
	}
	return s
}
