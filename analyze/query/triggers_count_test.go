package query_test

import (
	"math"
	"strconv"
	"strings"
	"time"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
)

// countTriggers are about how samples are counted.
func countTriggers() []trigger {
	const bucket = signal.LoadgenTTFT + "_bucket"
	return []trigger{
		{number: "13", source: "k6#449", name: "every step begins badly and ends well: the last look is a good one",
			change: func(s *scene) { s.slow(4, 15) },
			want:   answer{state: verdict.Breach, at: 4, bad: 45, total: 300}},
		{number: "14", source: "kayenta#799, #377", name: "the baseline has no series of errors, the ramp has",
			change: func(s *scene) {
				s.at(4, func(x *stepSpec) { x.failed = map[string]int{"server_error": 10} })
				s.edit = func(x *sample) {
					x.drop = x.name == signal.LoadgenRequests && x.labels[signal.LabelOutcome] != "ok" && x.v == 0
				}
			},
			want: answer{state: verdict.Breach, at: 4, bad: 30, total: 330}},
		{number: "15", source: "kayenta#700", name: "baseline and ramp are both empty: nothing was scraped",
			change: func(s *scene) { s.edit = func(x *sample) { x.drop = true } },
			want:   answer{state: verdict.Invalid, says: []string{`has no series of run "r15"`}}},
		{number: "16", source: "prometheus#3886, #10466", name: "the series of failures begin at their final values, in the last scrape of the step",
			change: func(s *scene) {
				s.at(4, func(x *stepSpec) { x.failed = map[string]int{"server_error": 10} })
				s.edit = func(x *sample) {
					x.drop = x.name == signal.LoadgenRequests && x.labels[signal.LabelOutcome] == "server_error" && x.v < 10
				}
			},
			want: answer{state: verdict.Breach, at: 4, bad: 30, total: 330}},
		{number: "17", source: "prometheus#12967", name: "scrapes and steps don't fit: increase() would give fractions of requests",
			change: func(s *scene) { s.every = 3; s.slow(4, 11, 10, 10) },
			want:   answer{state: verdict.Breach, at: 4, bad: 31, total: 300}},
		{number: "18", source: "prometheus#13020, grafana#76830", name: "two of a hundred requests take a minute: the P99 jumps to the top bucket edge, 5 s",
			change: func(s *scene) {
				s.at(4, func(x *stepSpec) { x.ttft[0], x.ttft[1] = 60, 60 })
			},
			want: answer{state: verdict.None, says: []string{"ramp at concurrency 4: ttft ok, 6 of 300 bad", "P99 of loadgen_time_to_first_token_seconds is at least 5 s at ramp 4"}}},
		{number: "19", source: "prometheus#13221, #6897", name: "one observation was NaN, and so is the histogram's sum",
			change: func(s *scene) {
				s.edit = func(x *sample) {
					if x.name == signal.LoadgenTTFT+"_sum" {
						x.v = math.NaN()
					}
				}
			},
			want: answer{state: verdict.None, says: []string{"ramp at concurrency 4: ttft ok, 0 of 300 bad"}}},
		{number: "20", source: "spiceai#12693", name: "every value lies in the first bucket, and the threshold too",
			change: func(s *scene) { s.more = []slo.Objective{p95("quick", slo.SignalTTFT, 50*time.Millisecond)} },
			want:   answer{state: verdict.NoData, says: []string{`no bucket edge at 50ms (le="0.05"; the edges are 0.1 and up)`}}},
		{number: "21", source: "redpanda-operator#1789", name: "the threshold, 30 s, lies inside a bucket, (10, 100]",
			change: func(s *scene) {
				s.edges = []float64{0.1, 1, 10, 100}
				s.more = []slo.Objective{p95("patient", slo.SignalTTFT, 30*time.Second)}
			},
			want: answer{state: verdict.NoData, says: []string{`no bucket edge at 30s (le="30"; the edges are …, 10, 100, …)`}}},
		{number: "22", source: "kube-prometheus#2573, pyrra#1611, multicluster-observability-operator#2739", name: "Prometheus was upgraded in the second round: le=\"1\" became le=\"1.0\"",
			change: func(s *scene) {
				s.slow(4, 20)
				upgraded := s.steps[4].start
				s.edit = func(x *sample) {
					if x.t < upgraded {
						x.labels["le"] = strings.TrimSuffix(x.labels["le"], ".0")
					}
				}
			},
			want: answer{state: verdict.Breach, at: 4, bad: 60, total: 300}},
		{number: "23", source: "optimize-controller#229", name: "the final values come a minute after the end",
			change: func(s *scene) {
				end := s.until()
				s.skip = func(t float64) bool { return t > end && t < end+60 }
				s.steps[len(s.steps)-1].tail = 62
			},
			want: answer{state: verdict.None}},
		{number: "24", source: "thanos#7376", name: "the newest scrapes of each step are partly there: the count is new, the bucket is not, so values look slow",
			change: func(s *scene) {
				ended := map[string]float64{}
				s.at(4, func(x *stepSpec) { ended[strconv.Itoa(x.round)] = x.start + x.length })
				s.edit = func(x *sample) {
					end := ended[x.labels[signal.LabelRound]]
					x.drop = x.name == bucket && x.labels[signal.LabelConcurrency] == "4" && x.labels["le"] == "1.0" && x.t > end-4
				}
			},
			want: answer{state: verdict.Invalid, says: []string{"the last scrape is only partly there"}}},
		{number: "25", source: "prometheus#4675", name: "a scrape every six minutes: slower than the lookback of five",
			change: func(s *scene) { s.every = 360; s.slow(4, 20) },
			want:   answer{state: verdict.Breach, at: 4, bad: 60, total: 300}},
		{number: "26", source: "prometheus/common#423, client_golang#1303", name: "a query gives a string",
			change: asked(`"up"`),
			want:   answer{refused: true, says: []string{"slo.yaml:12: objective asked: PromQL: the expression gives a string"}}},
		{number: "27", source: "aitra-meter#76, hyperdx#3114", name: "an engine has several series, one of each part: the last, or the first, was taken for all",
			shownBy: "analyze/query.TestSeveralEngines", tells: "queues are added up over the parts, shares are those of the fullest"},
		{number: "28", source: "parca#2016, prometheus#3059, loopover#9156", name: "our clock is an hour off",
			change: func(s *scene) {
				s.options.Now = func() time.Time { return time.Now().Add(-time.Hour) }
			},
			want: answer{state: verdict.Invalid, says: []string{"set both clocks by NTP"}}},
		{number: "29", source: "grafana#10664, #25011, #11345", name: "an annotation in seconds appears in 1970",
			shownBy: "analyze/serve.TestDeliveries", tells: "begin and end of an annotation are sent in milliseconds"},
		{number: "30", source: "vllm#8115, #13412", name: "the TTFT histogram counts more requests than ended well",
			change: func(s *scene) {
				s.edit = func(x *sample) {
					if of(x.name, signal.LoadgenTTFT) && x.labels[signal.LabelWindow] == "measure" && x.v > 0 {
						x.v += 40
					}
				}
			},
			want: answer{state: verdict.Invalid, says: []string{"holds 140 values and 0 requests had none, but 100 requests were ok"}}},
	}
}
