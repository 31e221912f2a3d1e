package signal

// tgi is Text Generation Inference v3. Names: router/src/server.rs, router/src/infer/mod.rs,
// backends/v3/src. Its counters have no _total and nothing has a model label.
func tgi() *Engine {
	success := Term{Name: "tgi_request_success", MayBeAbsent: true}
	failure := Term{Name: "tgi_request_failure", MayBeAbsent: true}
	seconds := func(name string) Metric {
		return histogram(name, tgiBuckets()).note("edges grow by 1.5: none is a round number")
	}
	return &Engine{
		Name: TGI, Title: "TGI", Layer: LayerService,
		candidates: map[string][]Metric{
			SignalDuration: {seconds("tgi_request_duration")},
			SignalTPOT: {seconds("tgi_request_mean_time_per_token_duration").
				note("mean over all of a request's tokens, the first included; edges grow by 1.5")},
			SignalRequestsRunning: {gauge("tgi_batch_current_size", UnitRequests, Sum)},
			SignalRequestsWaiting: {gauge("tgi_queue_size", UnitRequests, Sum)},
			SignalQueueTime:       {seconds("tgi_request_queue_duration")},
			SignalKVCacheUsage: {gauge("tgi_batch_current_max_tokens", "tokens", Max).read(ReadRatio).
				of(Term{Name: "tgi_batch_max_total_tokens"}).
				note("a stand-in: tokens that the running batch may reach, of those that a batch may hold")},
			SignalPromptTokens:     {counter("tgi_request_input_length_sum", "tokens").note("the sum of a histogram, counted as a request ends")},
			SignalOutputTokens:     {counter("tgi_request_generated_tokens_sum", "tokens").note("the sum of a histogram, counted as a request ends: it jumps")},
			SignalRequestsFinished: {counter(success.Name, UnitRequests, "method").maybeAbsent()},
			SignalRejections:       {counter(failure.Name, UnitRequests, "err").match("err", "overloaded").maybeAbsent()},
			SignalSuccessRatio: {counter(success.Name, UnitRequests, "method").maybeAbsent().read(ReadRateRatio).of(success, failure).
				note("tgi_request_count counts requests as they begin and is no denominator in a short window")},
		},
		missing: map[string]string{
			SignalTTFT:         "TGI has no time to first token; prefill time is not it, because it leaves the queue out",
			SignalICL:          "TGI has only the mean time per token of a request",
			SignalITL:          "TGI has only the mean time per token of a request",
			SignalPreemptions:  "TGI does not preempt",
			SignalTimeoutRatio: "a timeout is the client's: TGI sees a dropped request",
		},
	}
}

// tgiBuckets are 0.0001 × 1.5^k seconds, k = 1 … 35.
func tgiBuckets() []float64 {
	edges := make([]float64, 35)
	v := 0.0001
	for i := range edges {
		v *= 1.5
		edges[i] = v
	}
	return edges
}
