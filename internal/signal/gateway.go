package signal

// gateway is the endpoint picker of the Gateway API inference extension and of llm-d. It has had
// three prefixes: llm_d_epp_ (llm-d router, docs/metrics.md), llm_d_router_epp_ before that, and
// inference_objective_ (extension v1.4, pkg/epp/metrics/metrics.go).
func gateway() *Engine {
	labels := []string{"model_name", "target_model_name"}
	first := "inference_objective_"
	llmd := []string{"llm_d_epp_", "llm_d_router_epp_"}

	// names gives one candidate for each prefix, the newest first.
	names := func(m Metric, llmdName, firstName string) []Metric {
		var ms []Metric
		for _, p := range llmd {
			ms = append(ms, withPrefix(m, p, llmdName))
		}
		return append(ms, withPrefix(m, first, firstName))
	}
	seconds := histogram("", gatewayDurationBuckets(), labels...)
	tokenTime := histogram("", nil, labels...).note("its edges differ between versions: read them from the page")
	tokens := counter("", "tokens", labels...).note("the sum of a histogram, counted as a request ends")
	requests := counter("", UnitRequests, labels...)
	errors := counter("", UnitRequests, "model_name", "target_model_name", "error_code").maybeAbsent()
	perEndpoint := gauge("llm_d_epp_per_endpoint_queue_size", UnitRequests, Sum, "name", "model_server_endpoint")
	perPod := gauge("inference_pool_per_pod_queue_size", UnitRequests, Sum, "name", "model_server_pod")
	kv := func(name string) Metric {
		return gauge(name, UnitRatio, Max, "name").note("the mean over the pool: one full replica does not show")
	}
	success := errors.read(ReadRateRemainder).of(Term{Name: "request_total"}).
		note("errors by code are all counted as failures, the client's own mistakes included")

	return &Engine{
		Name: Gateway, Title: "the inference gateway", Layer: LayerUser,
		candidates: map[string][]Metric{
			SignalTTFT:             names(seconds, "request_ttft_seconds", "request_ttft_seconds"),
			SignalDuration:         names(seconds, "request_duration_seconds", "request_duration_seconds"),
			SignalTPOT:             names(tokenTime, "request_streaming_tpot_seconds", "request_tpot_seconds"),
			SignalITL:              names(tokenTime, "request_streaming_itl_seconds", "request_itl_seconds")[:1],
			SignalRequestsRunning:  names(gauge("", UnitRequests, Sum, "model_name"), "request_running", "running_requests"),
			SignalRequestsWaiting:  {perEndpoint, perPod},
			SignalKVCacheUsage:     {kv("llm_d_epp_average_kv_cache_utilization"), kv("inference_pool_average_kv_cache_utilization")},
			SignalPromptTokens:     names(tokens, "request_input_tokens_sum", "input_tokens_sum"),
			SignalOutputTokens:     names(tokens, "request_output_tokens_sum", "output_tokens_sum"),
			SignalRequestsFinished: names(requests.note("requests received"), "request_total", "request_total"),
			SignalRejections:       names(errors.match("error_code", "InferencePoolResourceExhausted", "ResourceExhausted"), "request_error_total", "request_error_total"),
			SignalSuccessRatio:     names(success, "request_error_total", "request_error_total"),
		},
		missing: map[string]string{
			SignalICL:          "the gateway counts tokens, not chunks",
			SignalQueueTime:    "only with flow control: the wait of an engine is in the engine's own metrics",
			SignalPreemptions:  "the gateway does not see it",
			SignalTimeoutRatio: "none of the endpoint picker's error codes is a timeout: read it from a probe",
		},
	}
}

// withPrefix names a candidate and its terms.
func withPrefix(m Metric, prefix, name string) Metric {
	m = m.named(prefix + name)
	terms := m.Of
	m.Of = nil
	for _, t := range terms {
		t.Name = prefix + t.Name
		m.Of = append(m.Of, t)
	}
	return m
}

func gatewayDurationBuckets() []float64 {
	return []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
		120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
}
