package record

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"firstbreach/internal/level"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/wire"
)

// descs are the descriptors of one step's series: the step labels are constant, the rest varies.
type descs struct {
	requests, timeouts, good, undefined *prometheus.Desc
	prompt, cached, output              *prometheus.Desc
	inFlight, inFlightSeconds, backoff  *prometheus.Desc
	occupancy, start, end               *prometheus.Desc
	late, limited                       *prometheus.Desc

	ttft, duration, tpot, icl, rejection, dispatch, queueWait histogramDesc

	steady bool // without steps, and so without windows: everything is measured
}

// values are the label values of a window's series.
func (d *descs) values(w Window, more ...string) []string {
	if d.steady {
		return more
	}
	return append([]string{string(w)}, more...)
}

// stepLabels are the labels of all series of a step. Those that don't apply are left out, so that a
// plan without rates, classes and shards has none of them.
func stepLabels(run string, id StepID) prometheus.Labels {
	labels := prometheus.Labels{
		signal.LabelRun: run, signal.LabelPhase: id.Phase, signal.LabelRound: strconv.Itoa(id.Round),
		signal.LabelStep: strconv.Itoa(id.Step),
	}
	if id.Rate > 0 {
		labels[signal.LabelRate] = level.FormatRate(id.Rate)
	} else {
		labels[signal.LabelConcurrency] = strconv.Itoa(id.Concurrency)
	}
	if id.Class != "" {
		labels[signal.LabelClass] = id.Class
	}
	if id.Shard != "" {
		labels[signal.LabelShard] = id.Shard
	}
	return labels
}

func newDescs(run string, id StepID, objectives []slo.Objective) *descs {
	return describe(stepLabels(run, id), false, objectives)
}

// describe makes the descriptors; steady ones have no window label.
func describe(labels prometheus.Labels, steady bool, objectives []slo.Objective) *descs {
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		if steady {
			variable = slices.DeleteFunc(slices.Clone(variable), func(l string) bool { return l == signal.LabelWindow })
		}
		return prometheus.NewDesc(name, help, variable, labels)
	}
	edges := func(defaults []float64, sig string) []float64 {
		return withThresholds(defaults, thresholdsOf(objectives, sig))
	}
	const window = signal.LabelWindow
	return &descs{
		steady:    steady,
		requests:  desc(signal.LoadgenRequests, "Finished requests by how they ended.", window, signal.LabelOutcome),
		timeouts:  desc(signal.LoadgenTimeouts, "Requests with outcome timeout by the deadline that passed.", window, signal.LabelKind),
		good:      desc(signal.LoadgenGoodRequests, "Requests that met every per-request user objective at once.", window),
		undefined: desc(signal.LoadgenUndefined, "Requests with outcome ok that have no value for a latency objective.", window, signal.LabelObjective),
		late: desc(signal.LoadgenLateReads,
			"Values of requests with outcome ok that met the threshold at the earliest possible arrival and not at the latest, because the client read late.", window, signal.LabelObjective),
		limited:  desc(signal.LoadgenClientLimited, "1 when the client itself was the bottleneck in this step.", signal.LabelReason),
		prompt:   desc(signal.LoadgenPromptTokens, "Prompt tokens as the server counted them.", window),
		cached:   desc(signal.LoadgenCachedPromptTokens, "Prompt tokens that the server took from its prefix cache.", window),
		output:   desc(signal.LoadgenOutputTokens, "Output tokens.", window),
		inFlight: desc(signal.LoadgenInFlight, "Requests in flight."),
		inFlightSeconds: desc(signal.LoadgenInFlightSeconds,
			"Time integral of the requests in flight, by the window of the step's clock.", window),
		backoff: desc(signal.LoadgenBackoffSeconds,
			"Time integral of the slots of a closed loop that wait because their requests failed fast, by the window of the step's clock.", window),
		occupancy: desc(signal.LoadgenOccupancySeconds,
			"Sum over finished requests of the time from being handed to the client until the connection was free, by the request's window.", window),
		start: desc(signal.LoadgenStepStart, "Unix time at which the window started.", window),
		end:   desc(signal.LoadgenStepEnd, "Unix time at which the window ended.", window),

		ttft: histogramDesc{signal.LoadgenTTFT, "Time to the first generated text, ok requests: from sending, in an open loop from when the request was due.",
			labels, edges(ttftEdges(), slo.SignalTTFT), nil, steady},
		duration: histogramDesc{signal.LoadgenDuration, "Time to the last token or the finish event, ok requests: from sending, in an open loop from when the request was due.",
			labels, edges(durationEdges(), slo.SignalDuration), nil, steady},
		tpot: histogramDesc{signal.LoadgenTPOT, "Time per output token after the first, ok requests.",
			labels, edges(tokenEdges(), slo.SignalTPOT), nil, steady},
		icl: histogramDesc{signal.LoadgenICL, "Gap between text-bearing chunks, ok requests.",
			labels, edges(tokenEdges(), slo.SignalICL), nil, steady},
		rejection: histogramDesc{signal.LoadgenRejectionDuration, "Time from sending until a request was refused.", labels, ttftEdges(), nil, steady},
		dispatch:  histogramDesc{signal.LoadgenDispatchDelay, "How late the client itself began to send a request.", labels, dispatchEdges(), nil, steady},
		queueWait: histogramDesc{signal.LoadgenQueueWait, "Time in the server's queue, as the server itself tells it.",
			labels, ttftEdges(), []string{signal.LabelSource}, steady},
	}
}

// histogramDesc makes the histogram of one window.
type histogramDesc struct {
	name, help string
	labels     prometheus.Labels
	edges      []float64
	extra      []string // variable labels beside the window
	steady     bool     // without a window label
}

// histogram is native (growth 1.1, bounded, never reset) and classic at once.
func (h histogramDesc) histogram(w Window, extra ...string) prometheus.Histogram {
	labels := prometheus.Labels{}
	if !h.steady {
		labels[signal.LabelWindow] = string(w)
	}
	for k, v := range h.labels {
		labels[k] = v
	}
	for i, k := range h.extra {
		labels[k] = extra[i]
	}
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: h.name, Help: h.help, ConstLabels: labels, Buckets: h.edges,
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
		NativeHistogramMaxExemplars:    -1,
	})
}

// frozen is a metric as it was when the step was copied.
type frozen struct {
	desc *prometheus.Desc
	data *dto.Metric
}

func (f frozen) Desc() *prometheus.Desc { return f.desc }

func (f frozen) Write(m *dto.Metric) error {
	m.Label, m.Gauge, m.Counter = f.data.Label, f.data.Gauge, f.data.Counter
	m.Histogram, m.TimestampMs = f.data.Histogram, f.data.TimestampMs
	return nil
}

// Describe implements prometheus.Collector. It sends nothing: the histograms of a queue wait come
// and go with what the server tells.
func (s *Step) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. The copy is made under the lock, the channel is filled
// outside it, so that a slow scraper never holds up a request.
func (s *Step) Collect(ch chan<- prometheus.Metric) {
	for _, m := range s.snapshot(time.Now()) {
		ch <- m
	}
}

// At is the step as a scrape at a given time would see it, for load that runs in a time of its own.
func (s *Step) At(now time.Time) prometheus.Collector { return stepAt{s, now} }

type stepAt struct {
	*Step
	now time.Time
}

// Collect implements prometheus.Collector.
func (s stepAt) Collect(ch chan<- prometheus.Metric) {
	for _, m := range s.snapshot(s.now) {
		ch <- m
	}
}

func (s *Step) snapshot(now time.Time) []prometheus.Metric {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.integrate(now)
	}
	out := []prometheus.Metric{gauge(s.descs.inFlight, float64(s.flight))}
	if s.descs.steady {
		t := s.windows[Measure.index()]
		return appendHistograms(s.appendCounters(out, t, Measure), t)
	}
	for _, l := range Limits() {
		v := 0.0
		if s.limited[l] {
			v = 1
		}
		out = append(out, gauge(s.descs.limited, v, string(l)))
	}
	for i, w := range Windows() {
		out = s.appendCounters(out, s.windows[i], w)
		out = appendHistograms(out, s.windows[i])
		if e := s.edges[i]; !e.from.IsZero() {
			out = append(out, gauge(s.descs.start, unix(e.from), string(w)))
		}
		if e := s.edges[i]; !e.to.IsZero() {
			out = append(out, gauge(s.descs.end, unix(e.to), string(w)))
		}
	}
	return out
}

func (s *Step) appendCounters(out []prometheus.Metric, t *tally, w Window) []prometheus.Metric {
	d := s.descs
	for _, o := range wire.Outcomes() {
		out = append(out, counter(d.requests, float64(t.outcomes[o]), d.values(w, string(o))...))
	}
	for _, k := range wire.TimeoutKinds() {
		out = append(out, counter(d.timeouts, float64(t.timeouts[k]), d.values(w, string(k))...))
	}
	for _, name := range sortedKeys(t.undefined) {
		out = append(out, counter(d.undefined, float64(t.undefined[name]), d.values(w, name)...))
	}
	for _, name := range sortedKeys(t.late) {
		out = append(out, counter(d.late, float64(t.late[name]), d.values(w, name)...))
	}
	if !d.steady { // a closed loop's alone
		out = append(out, counter(d.backoff, t.backoff.Seconds(), d.values(w)...))
	}
	return append(out,
		counter(d.good, float64(t.good), d.values(w)...),
		counter(d.prompt, float64(t.promptTokens), d.values(w)...),
		counter(d.cached, float64(t.cachedTokens), d.values(w)...),
		counter(d.output, float64(t.outputTokens), d.values(w)...),
		counter(d.inFlightSeconds, t.inFlight.Seconds(), d.values(w)...),
		counter(d.occupancy, t.occupancy.Seconds(), d.values(w)...),
	)
}

func appendHistograms(out []prometheus.Metric, t *tally) []prometheus.Metric {
	for _, h := range []prometheus.Histogram{t.ttft, t.duration, t.tpot, t.icl, t.rejection, t.dispatch} {
		out = append(out, freeze(h))
	}
	for _, source := range sortedKeys(t.queueWait) {
		out = append(out, freeze(t.queueWait[source]))
	}
	return out
}

func freeze(m prometheus.Metric) prometheus.Metric {
	data := &dto.Metric{}
	if err := m.Write(data); err != nil {
		return prometheus.NewInvalidMetric(m.Desc(), err)
	}
	return frozen{m.Desc(), data}
}

func counter(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// unix is a time in seconds. Nanoseconds since 1970 don't fit a float64; what is lost is well
// under a microsecond.
func unix(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
