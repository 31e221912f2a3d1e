package signal

// llamacpp is llama.cpp's server. Names: tools/server/server-task.cpp. It has no histogram and no
// model label; its two *_tokens_seconds gauges are averages since the last scrape by anybody, so
// only its counters are read.
func llamacpp() *Engine {
	noHistogram := "llama.cpp has no histogram: read it from a probe"
	return &Engine{
		Name: LlamaCPP, Title: "llama.cpp", Layer: LayerService,
		Enable: "start llama-server with --metrics",
		candidates: map[string][]Metric{
			SignalTPOT: {counter("llamacpp:tokens_predicted_seconds_total", UnitSeconds).read(ReadRateRatio).
				of(Term{Name: "llamacpp:tokens_predicted_total"}).
				note("mean over tokens, not over requests; there is no distribution to judge a percentile by")},
			SignalRequestsRunning: {gauge("llamacpp:requests_processing", UnitRequests, Sum)},
			SignalRequestsWaiting: {gauge("llamacpp:requests_deferred", UnitRequests, Sum)},
			SignalKVCacheUsage: {gauge("llamacpp:kv_cache_usage_ratio", UnitRatio, Max).until("b5428").
				note("removed in May 2025")},
			SignalPromptTokens: {counter("llamacpp:prompt_tokens_total", "tokens").note("cached tokens aren't in it")},
			SignalOutputTokens: {counter("llamacpp:tokens_predicted_total", "tokens")},
		},
		missing: map[string]string{
			SignalTTFT:             noHistogram,
			SignalDuration:         noHistogram,
			SignalICL:              noHistogram,
			SignalITL:              "llama.cpp has only the mean time per token: see " + SignalTPOT,
			SignalQueueTime:        "llama.cpp counts the requests that wait, not how long",
			SignalPreemptions:      "llama.cpp does not preempt",
			SignalRequestsFinished: "llama.cpp counts no requests",
			SignalRejections:       "llama.cpp counts no requests",
			SignalSuccessRatio:     "llama.cpp counts no requests",
			SignalTimeoutRatio:     "llama.cpp counts no requests",
		},
	}
}
