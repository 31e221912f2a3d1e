package signal

// vllm is the V1 engine. Names and labels: vllm/v1/metrics/loggers.py and the page of 0.32 in
// testdata; python counters are declared without _total and exported with it.
func vllm() *Engine {
	const handler = "handler"
	apis := []string{"/v1/chat/completions", "/v1/completions", "/v1/responses"}
	labels := []string{"model_name", "engine"}
	seconds := func(name string, buckets []float64) Metric { return histogram(name, buckets, labels...) }

	http := counter("http_requests_total", UnitRequests, handler, "method", "status").read(ReadRateRatio)
	http.Match = map[string][]string{handler: apis, "status": {"2xx"}}
	http = http.of(Term{Name: "http_requests_total", Match: map[string][]string{handler: apis}}).optional().
		note("by HTTP status: a stream that began with 200 and broke counts as good; before mid-2026 some 4xx were recorded as 5xx")
	http.MayBeAbsent = true // no series before the first such answer

	c := map[string][]Metric{
		SignalTTFT: {seconds("vllm:time_to_first_token_seconds", vllmTTFTBuckets()).
			note("begins at tokenization, so it has no network and no gateway in it; aborted requests aren't in it")},
		SignalDuration: {seconds("vllm:e2e_request_latency_seconds", vllmRequestBuckets()).
			note("aborted requests aren't in it")},
		SignalTPOT: {
			seconds("vllm:request_time_per_output_token_seconds", vllmTokenBuckets()).since("0.11").
				note("per request: not the same as inter-token latency under speculative decoding"),
		},
		SignalITL: {
			seconds("vllm:inter_token_latency_seconds", vllmTokenBuckets()).since("0.11").
				note("one sample an output step"),
			seconds("vllm:time_per_output_token_seconds", vllmTokenBuckets()).until("0.12").
				note("the old name of inter-token latency, hidden from 0.12 and then removed; Triton's vLLM backend still has it"),
		},
		SignalRequestsRunning: {gauge("vllm:num_requests_running", UnitRequests, Sum, labels...)},
		SignalRequestsWaiting: {gauge("vllm:num_requests_waiting", UnitRequests, Sum, labels...).
			note("vllm:num_requests_waiting_by_reason splits it by cause")},
		SignalQueueTime: {seconds("vllm:request_queue_time_seconds", vllmRequestBuckets()).
			note("the lowest edge is 300 ms: read the mean, quantiles below it are made up")},
		SignalKVCacheUsage: {
			gauge("vllm:kv_cache_usage_perc", UnitRatio, Max, labels...).since("0.9").note("0–1 in spite of its name"),
			gauge("vllm:gpu_cache_usage_perc", UnitRatio, Max, labels...).until("0.12").note("0–1 in spite of its name"),
		},
		SignalPreemptions:  {counter("vllm:num_preemptions_total", "preemptions", labels...)},
		SignalPromptTokens: {counter("vllm:prompt_tokens_total", "tokens", labels...).note("moves for aborted requests too; cached tokens are in it")},
		SignalOutputTokens: {counter("vllm:generation_tokens_total", "tokens", labels...)},
		SignalRequestsFinished: {counter("vllm:request_success_total", UnitRequests, "model_name", "engine", "finished_reason").
			note("finished, not good, and no denominator: aborted and refused requests aren't in it")},
		SignalRejections: {counter("vllm:admission_rejections_total", UnitRequests, "model_name", "reason").since("0.32").optional().
			note("counts only with --max-num-queued-reqs or --max-num-queued-tokens")},
		SignalSuccessRatio: {http},
	}
	for s, ms := range c {
		c[s] = aliased(ms, "vllm:", "the same, as Ray and proxies that can't store a colon rename it", "vllm_", "ray_vllm_", "kserve_vllm:")
	}
	return &Engine{Name: VLLM, Title: "vLLM", Layer: LayerService, candidates: c, missing: map[string]string{
		SignalICL:          "vLLM counts output steps, not the chunks that a client sees: see " + SignalITL,
		SignalTimeoutRatio: "a timeout is the client's: vLLM sees an abort and does not count it",
	}}
}

func vllmTTFTBuckets() []float64 {
	return []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
}

func vllmTokenBuckets() []float64 {
	return []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
}

func vllmRequestBuckets() []float64 {
	return []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
}
