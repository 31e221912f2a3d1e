package wire

import "time"

const (
	// timingSlack is how much the parts of Ollama's durations may exceed their total.
	timingSlack = 1.05
	// coldLoad is a load_duration, in seconds, that means the model was loaded for this request. A
	// warm one was measured at 1 to 12 ms, the load of a tiny model at 255 ms.
	coldLoad = 0.1
)

// fillQueueWait splits the wait in the server's queue from its service time where the engine's
// own timings allow it. It is left nil rather than guessed.
func (t *tally) fillQueueWait(r *Result) {
	if !t.hasEngine || r.Outcome != OK || r.E2E == nil {
		return
	}
	var wait float64
	ok := false
	switch t.engine.kind {
	case engineOllama:
		wait, ok = t.ollamaQueueWait(r.E2E.Seconds())
		r.QueueWaitSource = "ollama_timings"
	case engineLlamaCPP:
		wait, ok = t.llamaQueueWait(r)
		r.QueueWaitSource = "llamacpp_timings"
	case engineVLLM:
		wait, ok = t.engine.queue, t.engine.hasQueue && t.engine.queue <= r.E2E.Seconds()
		r.QueueWaitSource = "vllm_metrics"
	}
	if !ok {
		r.QueueWaitSource = ""
		return
	}
	d := time.Duration(wait * float64(time.Second))
	r.QueueWait = &d
}

// ollamaQueueWait is total − load − prompt_eval − eval. When the model was loaded for the request,
// the wait is inside load_duration and cannot be told from it.
func (t *tally) ollamaQueueWait(e2e float64) (float64, bool) {
	g := t.engine
	if g.load >= coldLoad {
		t.warn("model_loaded")
		return 0, false
	}
	if g.total <= 0 && g.generate <= 0 {
		return 0, false
	}
	service := g.load + g.prompt + g.generate
	if g.total <= 0 || g.generate <= 0 || min(g.load, g.prompt) < 0 || service > g.total*timingSlack {
		t.warn("timings_inconsistent")
		return 0, false
	}
	if g.total > e2e*timingSlack+0.005 {
		t.warn("server_clock")
		return 0, false
	}
	return max(g.total-service, 0), true
}

// llamaQueueWait is the time of the response headers, which llama.cpp sends when a slot starts
// (builds since June 2026), where the service times confirm it; else what they leave of the
// whole request.
func (t *tally) llamaQueueWait(r *Result) (float64, bool) {
	g := t.engine
	rest := r.E2E.Seconds() - g.prompt - g.generate
	if g.generate <= 0 || g.prompt < 0 || rest < -0.05*r.E2E.Seconds()-0.005 {
		t.warn("timings_inconsistent")
		return 0, false
	}
	rest = max(rest, 0)
	if r.Header != nil {
		header := r.Header.Seconds()
		if d := header - rest; max(d, -d) <= max(0.02, 0.05*r.E2E.Seconds()) {
			return header, true
		}
	}
	return rest, true
}
