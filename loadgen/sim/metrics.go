package sim

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics is what the engine counts, under the names, labels and bucket edges of vLLM 0.32. A crash
// starts a new set at zero, as a restarted process does.
type metrics struct {
	registry *prometheus.Registry

	running, waiting, kvUsage      prometheus.Gauge
	preemptions                    prometheus.Counter
	promptTokens, generationTokens prometheus.Counter
	rejected                       prometheus.Counter
	success                        *prometheus.CounterVec

	queueTime, ttft, itl, tpot, e2e, prefillTime, decodeTime prometheus.Histogram
}

// The bucket edges of vLLM, in seconds.
func ttftBuckets() []float64 {
	return []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
}

func tokenBuckets() []float64 {
	return []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
}

func requestBuckets() []float64 {
	return []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
}

func newMetrics(model string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	labels := prometheus.Labels{"model_name": model, "engine": "0"}
	gauge := func(name, help string) prometheus.Gauge {
		return register(m, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}))
	}
	counter := func(name, help string) prometheus.Counter {
		return register(m, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}))
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return register(m, prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets, ConstLabels: labels}))
	}

	m.running = gauge("vllm:num_requests_running", "Number of requests holding a slot.")
	m.waiting = gauge("vllm:num_requests_waiting", "Number of requests waiting for a slot.")
	m.kvUsage = gauge("vllm:kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1.")
	m.preemptions = counter("vllm:num_preemptions_total", "Requests that lost their slot because the KV cache was full.")
	m.promptTokens = counter("vllm:prompt_tokens_total", "Prompt tokens of requests whose prefill ended.")
	m.generationTokens = counter("vllm:generation_tokens_total", "Tokens generated.")
	m.queueTime = histogram("vllm:request_queue_time_seconds", "Arrival to slot.", requestBuckets())
	m.ttft = histogram("vllm:time_to_first_token_seconds", "Arrival to first token.", ttftBuckets())
	m.itl = histogram("vllm:inter_token_latency_seconds", "Between two tokens of a request.", tokenBuckets())
	m.tpot = histogram("vllm:request_time_per_output_token_seconds", "Mean time per token after the first, by request.", tokenBuckets())
	m.e2e = histogram("vllm:e2e_request_latency_seconds", "Arrival to last token.", requestBuckets())
	m.prefillTime = histogram("vllm:request_prefill_time_seconds", "Slot to first token.", requestBuckets())
	m.decodeTime = histogram("vllm:request_decode_time_seconds", "First to last token.", requestBuckets())

	m.success = register(m, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vllm:request_success_total", Help: "Requests that ended, by reason.", ConstLabels: labels,
	}, []string{"finished_reason"}))
	for _, reason := range []string{"stop", "length", "abort", "error", "repetition"} {
		m.success.WithLabelValues(reason)
	}
	rejections := register(m, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vllm:admission_rejections_total", Help: "Requests turned away because the engine was full.",
		ConstLabels: prometheus.Labels{"model_name": model},
	}, []string{"reason"}))
	rejections.WithLabelValues("max_num_queued_tokens")
	m.rejected = rejections.WithLabelValues("max_num_queued_reqs")
	return m
}

func register[C prometheus.Collector](m *metrics, c C) C {
	m.registry.MustRegister(c)
	return c
}

// token counts the token that s has just been given.
func (m *metrics) token(s *sequence, now time.Duration) {
	m.generationTokens.Inc()
	if s.generated > 1 {
		m.itl.Observe((now - s.last).Seconds())
		return
	}
	m.promptTokens.Add(float64(s.prompt))
	m.ttft.Observe((now - s.arrived).Seconds())
	m.prefillTime.Observe((now - s.admitted).Seconds())
}

// ended counts the end of s. As in vLLM, a request whose client went away is counted nowhere.
func (m *metrics) ended(s *sequence, f Failure) {
	if f != FailNone {
		reason := "error"
		if f != FailError && f != FailStatus {
			reason = "abort"
		}
		m.success.WithLabelValues(reason).Inc()
		return
	}
	m.success.WithLabelValues(finishReason(s.natural)).Inc()
	decode := (s.last - s.first).Seconds()
	m.e2e.Observe((s.last - s.arrived).Seconds())
	m.decodeTime.Observe(decode)
	if s.generated > 1 {
		m.tpot.Observe(decode / float64(s.generated-1))
	}
}

// finishReason is what an answer that ended well ended with.
func finishReason(natural bool) string {
	if natural {
		return "stop"
	}
	return "length"
}

// gather returns the registry with its gauges at the core's present state.
func (c *core) gather() *prometheus.Registry {
	c.m.running.Set(float64(len(c.active)))
	c.m.waiting.Set(float64(len(c.waiting)))
	if c.cfg.KVTokens > 0 {
		c.m.kvUsage.Set(float64(c.kvUsed) / float64(c.cfg.KVTokens))
	}
	return c.m.registry
}
