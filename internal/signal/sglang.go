package signal

// sglang is SGLang's own page. Names: python/sglang/srt/observability/metrics_collector.py.
// The label set differs between scheduler and tokenizer and between versions: aggregate, never
// match all of it.
func sglang() *Engine {
	scheduler := []string{"model_name", "engine_type", "tp_rank", "pp_rank"}
	tokenizer := []string{"model_name"}
	apis := []string{"/v1/chat/completions", "/v1/completions", "/generate"}

	http := counter("sglang:http_responses_total", UnitRequests, "endpoint", "status_code", "method").read(ReadRateRatio)
	http.Match = map[string][]string{"endpoint": apis, "status_code": {"200"}}
	http.MayBeAbsent = true
	http = http.of(Term{Name: "sglang:http_responses_total", Match: map[string][]string{"endpoint": apis}}).optional().
		note("by HTTP status: a stream that began with 200 and broke counts as good")

	c := map[string][]Metric{
		SignalTTFT:     {histogram("sglang:time_to_first_token_seconds", sglangTTFTBuckets(), tokenizer...).note("edges can be set by flags")},
		SignalDuration: {histogram("sglang:e2e_request_latency_seconds", append(sglangTTFTBuckets(), 600, 1200, 1800, 2400), tokenizer...).note("edges can be set by flags")},
		SignalITL: {histogram("sglang:inter_token_latency_seconds", sglangTokenBuckets(), tokenizer...).
			note("one sample a token, the gap of a chunk divided by its tokens")},
		SignalRequestsRunning: {gauge("sglang:num_running_reqs", UnitRequests, Sum, scheduler...).
			note("select one tp_rank where more than one reports")},
		SignalRequestsWaiting: {gauge("sglang:num_queue_reqs", UnitRequests, Sum, scheduler...)},
		SignalQueueTime:       {histogram("sglang:queue_time_seconds", sglangQueueBuckets(), scheduler...).note("edges of 2026; older releases began with 0, 0.1, 0.2")},
		SignalKVCacheUsage:    {gauge("sglang:token_usage", UnitRatio, Max, scheduler...).note("the fullest pool of a hybrid model")},
		SignalPreemptions:     {counter("sglang:num_retracted_requests_total", "preemptions", scheduler...).note("SGLang calls it a retraction")},
		SignalPromptTokens:    {counter("sglang:prompt_tokens_total", "tokens", tokenizer...)},
		SignalOutputTokens:    {counter("sglang:generation_tokens_total", "tokens", tokenizer...)},
		SignalRequestsFinished: {counter("sglang:num_requests_total", UnitRequests, tokenizer...).
			note("without a reason: finished, not good")},
		SignalRejections: {counter("sglang:num_aborted_requests_total", UnitRequests, tokenizer...).
			note("aborts of every kind, refusals among them")},
		SignalSuccessRatio: {http},
	}
	for s, ms := range c {
		c[s] = aliased(ms, "sglang:", "the same, where an exporter escaped the colon", "sglang_")
	}
	return &Engine{
		Name: SGLang, Title: "SGLang", Layer: LayerService, candidates: c,
		Enable: "start SGLang with --enable-metrics",
		missing: map[string]string{
			SignalTPOT:         "SGLang removed its time per output token; " + SignalITL + " is per token, not per request",
			SignalICL:          "SGLang counts tokens, not the chunks that a client sees: see " + SignalITL,
			SignalTimeoutRatio: "a timeout is the client's: SGLang sees an abort",
		},
	}
}

func sglangTTFTBuckets() []float64 {
	return []float64{0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400}
}

func sglangTokenBuckets() []float64 {
	return []float64{0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8}
}

func sglangQueueBuckets() []float64 {
	return []float64{0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100,
		200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1600, 1800, 2000, 2500, 3000}
}
