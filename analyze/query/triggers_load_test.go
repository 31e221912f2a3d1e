package query_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"firstbreach/analyze/analysis"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
)

// longLadder replaces the ramp by one of six steps, each of so many requests for each stream and for the step.
func (s *scene) longLadder(perStream, perStep int) {
	s.ladder(100, "baseline", "ramp 1", "ramp 2", "ramp 4", "ramp 8", "ramp 16", "ramp 32")
	for i, x := range s.steps {
		s.steps[i].ttft = spread(perStream*x.conc+perStep, 0)
	}
}

// loadTriggers are about what is concluded from the counts.
func loadTriggers() []trigger {
	return []trigger{
		{number: "31", source: "inference-perf#300, #711, #229", name: "three hundred slow requests in the drain after each step",
			change: func(s *scene) {
				s.at(4, func(x *stepSpec) { x.outside = map[string]int{"drain": 300} })
			},
			want: answer{state: verdict.None, says: []string{"ramp at concurrency 4: ttft ok, 0 of 300 bad"}}},
		{number: "32", source: "inference-sim#1369, #1614", name: "a heavy tail in the second half of a soak looks like a backlog that grows",
			change: func(s *scene) {
				soak := stepSpec{phase: "soak", round: 1, step: 1, conc: 2, start: s.until() + 2, length: 30, ttft: spread(330, 0)}
				for _, i := range []int{170, 230, 290} {
					soak.ttft[i] = 60
				}
				s.steps = append(s.steps, soak)
			},
			want: answer{state: verdict.None, says: []string{"soak: held"}}},
		{number: "33", source: "kneed#77, #158, #160, #74", name: "throughput grows with every step: there is no knee",
			change: func(s *scene) { s.longLadder(100, 0) },
			want:   answer{state: verdict.None, says: []string{"throughput: knee none", "Kneedle: not used: throughput has no plateau"}}},
		{number: "34", source: "golang/go#19634, #23471, #19565", name: "one round, so no spread to judge by",
			change: func(s *scene) { s.steps = s.steps[:3] },
			want:   answer{state: verdict.Inconclusive, says: []string{"1 valid round, a verdict needs 3"}}},
		{number: "35", source: "gomoqt#218", name: "four rounds against four: the least possible p flags noise",
			shownBy: "analyze/compare.TestFirstBreachByRound",
			tells:   "the least p that so many rounds can give is printed beside p, and a first breach that moved is `suspected`, no more"},
		{number: "36", source: "evalscope#1641, endpoints#86, aws-do-eks#88, NeMo-Guardrails#2323", name: "three hundred slow requests in the warm-up of each step",
			change: func(s *scene) {
				s.at(4, func(x *stepSpec) { x.outside = map[string]int{"warmup": 300} })
			},
			want: answer{state: verdict.None, says: []string{"ramp at concurrency 4: ttft ok, 0 of 300 bad"}}},
		{number: "37", source: "triton client#114", name: "the rounds are not stable",
			change: func(s *scene) { s.slow(4, 0, 14, 4) },
			want: answer{state: verdict.Inconclusive, says: []string{"ramp at concurrency 4: ttft: "}, and: "exit status 20 with `--fail-on=inconclusive`", check: func(t *testing.T, r verdict.Result) {
				if got := (analysis.FailOn{"inconclusive"}).Exit(r.State); got != analysis.ExitInconclusive {
					t.Errorf("exit status %d", got)
				}
			}}},
		{number: "38", source: "ollama#7758", name: "six requests at once on an engine with one slot: they queue whatever its queue limit",
			change: func(s *scene) {
				s.ladder(100, "baseline", "ramp 2", "ramp 6")
				s.slow(6, 95)
				s.machine = &control{waiting: over(1), running: upTo(1), busy: easy, slow: map[int]int{}}
			},
			want: answer{state: verdict.Breach, at: 6, bad: 285, total: 300, says: []string{"requests waiting"}}},
		{number: "39", source: "NVIDIA/aicr#1197", name: "two rounds pass and one is far off, with nothing changed",
			change: func(s *scene) { s.slow(4, 0, 0, 30) },
			want:   answer{state: verdict.Inconclusive, says: []string{"the rounds differ too much to tell: from 0 % to 30 % bad"}}},
	}
}

// few is a run of so many requests in all at one step, none of them bad.
func few(rounds ...int) func(*scene) {
	return func(s *scene) {
		s.ladder(100, "baseline", "ramp 2")
		s.at(2, func(x *stepSpec) { x.ttft = spread(rounds[x.round-1], 0) })
		s.only, s.more = true, []slo.Objective{p95("ttft", slo.SignalTTFT, time.Second)}
	}
}

// ownTriggers are those that no tool was caught in.
func ownTriggers() []trigger {
	return []trigger{
		{number: "own", name: "the threshold is the last bucket edge, and nearly every value lies beyond it",
			change: func(s *scene) { s.edges = []float64{0.1, 0.5, 1}; s.slow(4, 99) },
			want:   answer{state: verdict.Breach, at: 4, bad: 297, total: 300}},
		{number: "own", name: "one of two load generators has no bucket edge at the threshold",
			change: func(s *scene) {
				s.alone, s.write = true, twoShards
				s.edit = func(x *sample) { halve(x); x.drop = x.labels[signal.LabelShard] == "1" && x.labels["le"] == "1.0" }
			},
			want: answer{state: verdict.NoData, says: []string{"1 of 2 load generators have no bucket edge at 1s"}}},
		{number: "own", name: "a counter is reset in the middle of a step",
			change: func(s *scene) {
				s.alone = true
				middle := s.steps[5].start + stepLength/2
				s.edit = func(x *sample) {
					l := x.labels
					if x.name == signal.LoadgenRequests && l[signal.LabelWindow] == "measure" && l[signal.LabelConcurrency] == "4" && l[signal.LabelRound] == "2" && x.t > middle {
						x.v = max(0, x.v-40)
					}
				}
			},
			want: answer{state: verdict.Inconclusive, says: []string{"1 counter reset", "2 valid rounds, a verdict needs 3"}}},
		{number: "own", name: "the engine dies after the ramp: no value of it may be carried on into the recovery",
			change: func(s *scene) {
				asked("sum(vllm:num_requests_running)")(s)
				s.ladder(100, "baseline", "ramp 2", "ramp 4", "recovery")
				var from []float64
				for i := range s.steps {
					if x := &s.steps[i]; x.phase == "recovery" {
						x.ttft, x.failed = nil, map[string]int{"transport": 100}
						from = append(from, x.start-1)
					}
				}
				s.edit = func(x *sample) {
					i, _ := slices.BinarySearch(from, x.t)
					x.drop = x.labels["job"] == "vllm" && i > 0 && x.t < from[i-1]+stepLength+2
				}
			},
			want: answer{state: verdict.None, says: []string{"recovery at concurrency 1: asked has no data", "recovery: degraded"}}},
		{number: "own", name: "a step breaks, and a higher one holds",
			change: func(s *scene) { s.slow(2, 30) },
			want:   answer{state: verdict.Inconclusive, says: []string{"broke here, yet held at concurrency 4"}}},
		{number: "own", name: "the load generator held 60 % of the load",
			shownBy: "analyze/query.TestNegativeControls", tells: "`invalid`, by Little's law"},
		{number: "own", name: "load has no effect: every step has the same throughput",
			change: func(s *scene) { s.longLadder(0, 100) },
			want:   answer{state: verdict.None, says: []string{"throughput: knee found at concurrency 1", "Kneedle: not used", "USL: not used"}}},
		{number: "own", name: "58 requests and none of them bad, against an allowance of 5 %",
			change: few(20, 19, 19),
			want:   answer{state: verdict.Inconclusive, says: []string{"ramp at concurrency 2: ttft inconclusive, 0 of 58 bad, 1 more needed"}}},
		{number: "own", name: "59 requests and none of them bad, against an allowance of 5 %",
			change: few(20, 20, 19),
			want:   answer{state: verdict.None, says: []string{"ramp at concurrency 2: ttft ok, 0 of 59 bad"}}},
		{number: "own", name: "a query gives two series",
			change: asked(`{__name__=~"vllm:num_requests_.+"}`),
			want:   answer{state: verdict.None, says: []string{"asked has no data: the expression gives 2 series where one is expected"}}},
	}
}

// halve gives a load generator half of the slots.
func halve(x *sample) {
	if slices.Contains([]string{signal.LoadgenInFlight, signal.LoadgenInFlightSeconds, signal.LoadgenOccupancySeconds}, x.name) {
		x.v /= 2
	}
}

// twoShards writes a run of two load generators.
func twoShards(w *world, r runSpec) {
	for i := range 2 {
		shard := strconv.Itoa(i)
		r.labels = []string{"instance", "h" + shard + ":10511", "job", "loadgen", "role", "client", signal.LabelShard, shard}
		w.write(r)
	}
}
