package wire

// ollamaOptions are sent in full with every request, because Ollama reloads the model when an
// option of its runner (num_ctx above all) differs from the request before.
type ollamaOptions struct {
	NumPredict  int     `json:"num_predict,omitempty"`
	NumCtx      int     `json:"num_ctx,omitempty"`
	Temperature float64 `json:"temperature"`
	Seed        int64   `json:"seed"`
}

func ollamaRequestOptions(r Request) ollamaOptions {
	return ollamaOptions{NumPredict: r.OutputTokens, NumCtx: r.ContextLength, Temperature: r.Temperature, Seed: r.Seed}
}

// parseOllama reads one line of either native dialect into e. It reports whether data is JSON.
// Fields that are zero are left out by Ollama, so an absent count is unknown.
func parseOllama(data []byte, e *event) bool {
	e.reset()
	s := scanner{b: data}
	if s.peek() != '{' {
		return false
	}
	c := choice{}
	g := engine{kind: engineOllama}
	known := false
	for more := s.object(); more; more = s.next('}') {
		switch string(s.key()) {
		case "message":
			known = true
			parseDelta(&s, &c)
		case "response":
			known = true
			if s.text() {
				c.text, c.content = true, true
			}
		case "thinking":
			c.text = s.text() || c.text
		case "done":
			known = true
			e.done = s.boolean()
		case "done_reason":
			if reason, ok := s.str(); ok {
				c.setFinish(reason)
			}
		case "error":
			e.isError = saysError(&s) || e.isError
		case "prompt_eval_count":
			g.promptTokens, _ = s.count()
		case "eval_count":
			g.outputTokens, _ = s.count()
		case "total_duration":
			g.total = s.nanoseconds()
		case "load_duration":
			g.load = s.nanoseconds()
		case "prompt_eval_duration":
			g.prompt = s.nanoseconds()
		case "eval_duration":
			g.generate = s.nanoseconds()
		default:
			s.skip()
		}
	}
	if !e.done {
		c.finish = finishNone
	} else if c.finish == finishNone {
		c.finish = finishDone // versions before 0.1.38 give no done_reason
	}
	if known {
		e.choices = append(e.choices, c)
	}
	e.ignored = !known && !e.isError
	if e.done && (g.total > 0 || g.outputTokens > 0) {
		e.engine, e.hasEngine = g, true
	}
	return s.end()
}

func (s *scanner) nanoseconds() float64 {
	v, _ := s.number()
	return v / 1e9
}
