package signal

// triton is the core of Triton Inference Server (docs/user_guide/metrics.md). Its times are
// counters of microseconds. A model served by its vLLM backend has vLLM's names as well.
func triton() *Engine {
	const us = 1e-6
	labels := []string{"model", "version"}
	success := Term{Name: "nv_inference_request_success"}
	failure := Term{Name: "nv_inference_request_failure", MayBeAbsent: true}
	perRequest := func(name string) Metric {
		return counter(name, "us", labels...).scale(us).read(ReadRateRatio).of(success).
			note("mean over successful requests; an ensemble counts its parts as well")
	}
	ttft := histogram("nv_inference_first_response_histogram_ms", []float64{100, 500, 2000, 5000}, labels...).scale(1e-3).optional().
		note("for decoupled models, with --metrics-config histogram_latencies=true; edges can be set per model")
	ttft.Unit = "ms"
	return &Engine{
		Name: Triton, Title: "Triton", Layer: LayerService,
		candidates: map[string][]Metric{
			SignalTTFT:             {ttft},
			SignalDuration:         {perRequest("nv_inference_request_duration_us")},
			SignalQueueTime:        {perRequest("nv_inference_queue_duration_us")},
			SignalRequestsWaiting:  {gauge("nv_inference_pending_request_count", UnitRequests, Sum, labels...)},
			SignalRequestsFinished: {counter(success.Name, UnitRequests, labels...)},
			SignalRejections:       {counter(failure.Name, UnitRequests, "model", "version", "reason").match("reason", "REJECTED").maybeAbsent()},
			SignalSuccessRatio: {counter(success.Name, UnitRequests, labels...).read(ReadRateRatio).of(success, failure).
				note("an ensemble counts a failure twice")},
		},
		missing: map[string]string{
			SignalTPOT:            "Triton's core knows no tokens; its vLLM backend has vLLM's names: use engine vllm",
			SignalICL:             "Triton's core knows no tokens",
			SignalITL:             "Triton's core knows no tokens; its vLLM backend has vLLM's names: use engine vllm",
			SignalRequestsRunning: "Triton counts executions, not the requests in them",
			SignalKVCacheUsage:    "Triton's core knows no KV cache; its backends have metrics of their own",
			SignalPreemptions:     "Triton's core does not preempt",
			SignalPromptTokens:    "Triton's core knows no tokens",
			SignalOutputTokens:    "Triton's core knows no tokens",
			SignalTimeoutRatio:    "Triton counts no timeouts of clients",
		},
	}
}
