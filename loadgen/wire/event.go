package wire

// event is what one decoded object of a stream says, the same for every dialect. It is reused
// from one object to the next.
type event struct {
	choices []choice

	// usage as the server counts it; 0 means that it was not said. Servers write zeros for
	// "unknown" on chunks before the last, so a zero is never taken for a count.
	promptTokens, cachedTokens, outputTokens int

	// engine has the engine's own counts and timings, seen when hasEngine.
	engine    engine
	hasEngine bool

	done    bool // native terminal marker: done:true
	isError bool // the object reports an error
	ignored bool // an object that has neither choices nor anything else known here
}

// choice is what an event says of one choice.
type choice struct {
	index   int
	text    bool // generated text on any channel
	content bool // text on the content channel
	finish  finish
	reason  string // of finishOther
}

// engine is what an engine says of itself beside the dialect's usage. Times are in seconds.
type engine struct {
	kind         engineKind
	promptTokens int
	cachedTokens int
	outputTokens int
	total        float64
	load         float64
	prompt       float64
	generate     float64
	queue        float64
	hasQueue     bool
}

type engineKind int

const (
	engineNone     engineKind = iota
	engineOllama              // total, load, prompt_eval and eval durations
	engineLlamaCPP            // the timings object
	engineVLLM                // the metrics object, which says the queue time itself
)

// reset empties e for the next object and keeps its storage.
func (e *event) reset() { *e = event{choices: e.choices[:0]} }

// finish is why a choice ended.
type finish int

const (
	finishNone    finish = iota
	finishDone           // stop, length, tool_calls, function_call
	finishFilter         // content_filter: complete, but cut by policy
	finishFailed         // abort, error
	finishLoading        // done_reason load or unload: the model was loaded, nothing was generated
	finishOther          // a reason of no known meaning
)

// finishOf maps a reason. TGI's own words come through older versions of its OpenAI route.
func finishOf(reason []byte) finish {
	switch string(reason) {
	case "":
		return finishNone
	case "stop", "length", "tool_calls", "function_call", "eos_token", "stop_sequence":
		return finishDone
	case "content_filter":
		return finishFilter
	case "abort", "error":
		return finishFailed
	case "load", "unload":
		return finishLoading
	}
	return finishOther
}

// setFinish notes a finish reason, keeping the word only where it has to be named later.
func (c *choice) setFinish(reason []byte) {
	c.finish = finishOf(reason)
	if c.finish == finishOther || c.finish == finishFailed {
		c.reason = string(reason[:min(len(reason), 64)])
	}
}
