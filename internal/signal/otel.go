package signal

// otel is the OpenTelemetry semantic conventions for generative AI, v1.40 (all in development), as
// a collector writes them to Prometheus: dots become underscores and the unit a suffix.
func otel() *Engine {
	const errorType = "error_type" // not set on a request that went well
	labels := []string{"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", errorType}
	const count = "gen_ai_server_request_duration_seconds_count"
	failed := counter(count, UnitRequests, labels...).read(ReadRateRemainder).of(Term{Name: count}).
		note("an answer with an error_type is a failure")
	failed.Except = map[string][]string{errorType: {""}}
	failed.MayBeAbsent = true
	tokens := func(kind string) Metric {
		return counter("gen_ai_client_token_usage_sum", "tokens", append(labels, "gen_ai_token_type")...).
			match("gen_ai_token_type", kind).note("the sum of the client's histogram, counted as a request ends")
	}
	notSpecified := "the conventions have no such metric"
	return &Engine{
		Name: OTel, Title: "OpenTelemetry GenAI", Layer: LayerService,
		Enable: "the application must be instrumented and its collector must export to Prometheus",
		candidates: map[string][]Metric{
			SignalTTFT: {histogram("gen_ai_server_time_to_first_token_seconds",
				[]float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}, labels...).match(errorType, "")},
			SignalDuration: {
				histogram("gen_ai_server_request_duration_seconds", otelDurationBuckets(), labels...).match(errorType, ""),
				histogram("gen_ai_client_operation_duration_seconds", otelDurationBuckets(), labels...).match(errorType, "").
					note("the instrumented client's view"),
			},
			SignalTPOT: {histogram("gen_ai_server_time_per_output_token_seconds",
				[]float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5}, labels...).match(errorType, "")},
			SignalPromptTokens:     {tokens("input")},
			SignalOutputTokens:     {tokens("output")},
			SignalRequestsFinished: {counter(count, UnitRequests, labels...)},
			SignalSuccessRatio:     {failed},
		},
		missing: map[string]string{
			SignalICL:             notSpecified,
			SignalITL:             notSpecified,
			SignalTimeoutRatio:    "error_type is free text: no value of it means a timeout everywhere",
			SignalRequestsRunning: notSpecified,
			SignalRequestsWaiting: notSpecified,
			SignalQueueTime:       notSpecified,
			SignalKVCacheUsage:    notSpecified,
			SignalPreemptions:     notSpecified,
			SignalRejections:      "error_type is free text: no value of it means a refusal everywhere",
		},
	}
}

// otelDurationBuckets are 0.01 × 2^k seconds, k = 0 … 13.
func otelDurationBuckets() []float64 {
	return []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
}
