package signal

// probe is what the load generator measures from outside, at any endpoint. Its classic bucket
// edges are set by the thresholds of the SLO file, so the catalogue names none.
func probe() *Engine {
	const outcome = LabelOutcome
	counted := Term{Name: LoadgenRequests, Except: map[string][]string{outcome: {"aborted"}}}
	seconds := func(name string) Metric {
		return histogram(name, nil).note("ok requests only; an edge at every threshold of the SLO file")
	}
	requests := counter(LoadgenRequests, UnitRequests, outcome)
	seen := "a client does not see it: read it from the engine"
	return &Engine{
		Name: Probe, Title: "the probe", Layer: LayerUser,
		candidates: map[string][]Metric{
			SignalTTFT:             {seconds(LoadgenTTFT)},
			SignalDuration:         {seconds(LoadgenDuration)},
			SignalTPOT:             {seconds(LoadgenTPOT)},
			SignalICL:              {seconds(LoadgenICL)},
			SignalSuccessRatio:     {requests.match(outcome, "ok").read(ReadRateRatio).of(counted)},
			SignalTimeoutRatio:     {requests.match(outcome, "timeout").read(ReadRateRemainder).of(counted)},
			SignalRequestsRunning:  {gauge(LoadgenInFlight, UnitRequests, Sum).note("in flight from the client: running and waiting in the engine together")},
			SignalQueueTime:        {histogram(LoadgenQueueWait, nil, LabelSource).optional().note("only where the engine's answers tell it")},
			SignalPromptTokens:     {counter(LoadgenPromptTokens, "tokens")},
			SignalOutputTokens:     {counter(LoadgenOutputTokens, "tokens")},
			SignalRequestsFinished: {requests},
			SignalRejections:       {requests.match(outcome, "rejected")},
		},
		missing: map[string]string{
			SignalRequestsWaiting: seen,
			SignalKVCacheUsage:    seen,
			SignalPreemptions:     seen,
			SignalITL:             "a chunk may hold several tokens: see " + SignalICL,
		},
	}
}
