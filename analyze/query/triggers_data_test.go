package query_test

import (
	"time"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
)

// asked adds an objective in PromQL to a scene.
func asked(promql string) func(*scene) {
	return func(s *scene) {
		s.machine = &control{waiting: over(8), running: upTo(8), busy: easy, slow: map[int]int{}}
		s.more = append(s.more, slo.Objective{Name: "asked", Layer: slo.Service, Kind: slo.Expression, PromQL: promql, Max: number(3), Line: 12})
	}
}

// gauge adds a limit on a signal of the catalogue.
func gauge(sig string) slo.Objective {
	return slo.Objective{Name: "gauge", Layer: slo.Service, Kind: slo.Gauge, Signal: sig, Max: number(3)}
}

// p95 is an objective on a latency: 95 % of requests at or below the threshold.
func p95(name, sig string, threshold time.Duration) slo.Objective {
	target, err := slo.ParseTarget("95%")
	if err != nil {
		panic(err)
	}
	return slo.Objective{Name: name, Layer: slo.User, Kind: slo.Latency, Signal: sig, Threshold: threshold, Target: target}
}

// emptyTriggers are about data that isn't there.
func emptyTriggers() []trigger {
	return []trigger{
		{number: "1", source: "argo-rollouts#1466", name: "a query answers with an empty vector",
			change: asked("sum(pages_total)"),
			want:   answer{state: verdict.None, says: []string{"asked has no data: the expression gives nothing"}}},
		{number: "2", source: "argo-rollouts#180", name: "a ratio is NaN because there was no traffic",
			change: asked(`sum(loadgen_requests_total{outcome="rejected"}) / sum(loadgen_requests_total{outcome="rejected"})`),
			want:   answer{state: verdict.None, says: []string{"asked has no data: the expression gives NaN"}}},
		{number: "3", source: "argo-rollouts#363", name: "a query gives a scalar in place of a vector",
			change: asked("scalar(sum(vllm:num_requests_running))"),
			want:   answer{state: verdict.None, says: []string{"ramp at concurrency 4: asked crossed in 3 of 3 rounds"}}},
		{number: "4", source: "argo-rollouts#1905", name: "a query has no value yet: its series begin in the second round",
			change: func(s *scene) {
				asked("sum(vllm:num_requests_running)")(s)
				begin := s.steps[3].start
				s.edit = func(x *sample) { x.drop = x.labels["job"] == "vllm" && x.t < begin }
			},
			want: answer{state: verdict.None, says: []string{"ramp at concurrency 4: asked crossed in 2 of 2 rounds"}}},
		{number: "5", source: "argo-rollouts#4348", name: "a query is no PromQL",
			change: asked("sum("),
			want:   answer{refused: true, says: []string{"slo.yaml:12: objective asked"}}},
		{number: "6", source: "flagger#1011", name: "traffic and series stop in the middle of a step",
			change: func(s *scene) {
				s.alone = true
				end := s.until() - stepLength/2
				s.skip = func(t float64) bool { return t > end }
			},
			want: answer{state: verdict.Inconclusive, says: []string{"2 valid rounds, a verdict needs 3", "no end of measuring"}}},
		{number: "7", source: "flagger#892", name: "an objective's signal is one that nobody scrapes",
			change: func(s *scene) { s.more = []slo.Objective{gauge("requests_waiting")} },
			want:   answer{state: verdict.None, says: []string{`gauge has no data: no series of vLLM with {job="vllm"}`}}},
		{number: "8", source: "flagger#1353, #1035, #1689", name: "there was no traffic in production",
			shownBy: "analyze/window.TestIdle", tells: "`no_data`: idle time is counted as idle, neither good nor bad"},
		{number: "9", source: "flagger#1762", name: "the newest sample is incomplete: the last scrape of a step is missing",
			change: func(s *scene) {
				end := s.until() - 2
				s.skip = func(t float64) bool { return t > end }
			},
			want: answer{state: verdict.Inconclusive, says: []string{"2 valid rounds, a verdict needs 3", "Prometheus and the manifest differ"}}},
		{number: "10", source: "k6#4283", name: "0 of 0 requests were bad",
			change: func(s *scene) { s.at(4, func(x *stepSpec) { x.ttft = nil }) },
			want:   answer{state: verdict.Invalid, says: []string{"no measured request"}}},
		{number: "11", source: "k6#1053, #1346", name: "the metric of an objective was never recorded",
			change: func(s *scene) {
				s.more = []slo.Objective{p95("tpot", slo.SignalTPOT, time.Second)}
				s.edit = func(x *sample) { x.drop = of(x.name, signal.LoadgenTPOT) }
			},
			want: answer{state: verdict.NoData, says: []string{"tpot: Prometheus has no samples of " + signal.LoadgenTPOT}}},
		{number: "12", source: "k6#2520", name: "one class of requests had none",
			change: twoClasses,
			want:   answer{state: verdict.Invalid, says: []string{"class chat: none", "class batch: invalid"}}},
	}
}

// of reports whether a series is one of a histogram's.
func of(name, histogram string) bool {
	return name == histogram || name == histogram+"_bucket" || name == histogram+"_sum" || name == histogram+"_count"
}

// twoClasses splits every step into two classes of requests; of the second there is none.
func twoClasses(s *scene) {
	all := s.steps
	s.steps = nil
	for _, x := range all {
		chat, batch := x, x
		chat.class, batch.class, batch.ttft = "chat", "batch", nil
		s.steps = append(s.steps, chat, batch)
	}
	s.edit = halve
	s.manifest = func(m *record.Manifest) { m.Classes = []record.ManifestClass{{Name: "chat"}, {Name: "batch"}} }
}
