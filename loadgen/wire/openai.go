package wire

import "encoding/json"

// openAIBody is the request body of both OpenAI dialects.
type openAIBody struct {
	Model         string        `json:"model"`
	Messages      []Message     `json:"messages,omitempty"`
	Prompt        string        `json:"prompt,omitempty"`
	MaxTokens     int           `json:"max_tokens,omitempty"`
	IgnoreEOS     bool          `json:"ignore_eos,omitempty"` // vLLM, SGLang, llama.cpp, TensorRT-LLM
	MinTokens     int           `json:"min_tokens,omitempty"` // vLLM: other stops than the end of text
	Temperature   float64       `json:"temperature"`
	Seed          int64         `json:"seed"`
	Priority      *int          `json:"priority,omitempty"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
}

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

func openAIRequest(r Request) openAIBody {
	least := 0
	if r.IgnoreEOS {
		least = r.OutputTokens
	}
	return openAIBody{
		IgnoreEOS:     r.IgnoreEOS,
		MinTokens:     least,
		Model:         r.Model,
		MaxTokens:     r.OutputTokens,
		Temperature:   r.Temperature,
		Seed:          r.Seed,
		Priority:      r.Priority,
		Stream:        true,
		StreamOptions: streamOptions{IncludeUsage: true},
	}
}

// conversation is what was said before, and the prompt.
func conversation(r Request) []Message {
	return append(r.Messages[:len(r.Messages):len(r.Messages)], Message{Role: "user", Content: r.Prompt})
}

// marshal encodes a request body of plain strings and numbers, which cannot fail.
func marshal(body any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic("wire: a request body that JSON cannot hold: " + err.Error())
	}
	return b
}

// parseOpenAI reads one chunk of a stream, or one whole completion, of either OpenAI dialect into
// e. It reports whether data is JSON.
func parseOpenAI(data []byte, e *event) bool {
	e.reset()
	s := scanner{b: data}
	if s.peek() != '{' {
		return false
	}
	var hasChoices, hasUsage, detail, message, code, errorObject bool
	for more := s.object(); more; more = s.next('}') {
		switch string(s.key()) {
		case "choices":
			hasChoices = true
			for more := s.array(); more; more = s.next(']') {
				e.choices = append(e.choices, parseChoice(&s))
			}
		case "usage":
			hasUsage = true
			parseUsage(&s, e)
		case "timings":
			parseTimings(&s, e)
		case "metrics":
			parseVLLMMetrics(&s, e)
		case "error":
			e.isError = saysError(&s) || e.isError
		case "object":
			v, ok := s.str()
			errorObject = ok && string(v) == "error"
		case "detail":
			detail = !s.null()
			if detail {
				s.skip()
			}
		case "message":
			message = s.text()
		case "code":
			code = !s.null()
			if code {
				s.skip()
			}
		default:
			s.skip()
		}
	}
	if !hasChoices && !hasUsage {
		e.isError = e.isError || errorObject || detail || message && code
		e.ignored = !e.isError
	}
	return s.end()
}

// saysError consumes the value of an "error" member and reports whether it is one: null, false
// and "" are how some servers say that all is well.
func saysError(s *scanner) bool {
	switch s.peek() {
	case 'n', 'f':
		s.skip()
		return false
	case '"':
		return s.text()
	}
	s.skip()
	return true
}

func parseChoice(s *scanner) choice {
	var c choice
	for more := s.object(); more; more = s.next('}') {
		switch string(s.key()) {
		case "index":
			c.index, _ = s.count()
		case "finish_reason":
			if reason, ok := s.str(); ok {
				c.setFinish(reason)
			}
		case "text":
			if s.text() {
				c.text, c.content = true, true
			}
		case "delta", "message":
			parseDelta(s, &c)
		default:
			s.skip()
		}
	}
	return c
}

// parseDelta reads every channel on which a server sends generated text. The same text on two of
// them (reasoning and reasoning_content) is one text, because only its presence is noted.
func parseDelta(s *scanner, c *choice) {
	for more := s.object(); more; more = s.next('}') {
		switch string(s.key()) {
		case "content":
			if s.text() {
				c.text, c.content = true, true
			}
		case "reasoning_content", "reasoning", "thinking", "refusal":
			c.text = s.text() || c.text
		case "tool_calls":
			for more := s.array(); more; more = s.next(']') {
				c.text = parseToolCall(s) || c.text
			}
		case "function_call":
			c.text = parseFunction(s) || c.text
		default:
			s.skip()
		}
	}
}

// parseToolCall reports whether a fragment of a tool call has generated text.
func parseToolCall(s *scanner) bool {
	found := false
	for more := s.object(); more; more = s.next('}') {
		switch string(s.key()) {
		case "function":
			found = parseFunction(s) || found
		default:
			s.skip()
		}
	}
	return found
}

func parseFunction(s *scanner) bool {
	found := false
	for more := s.object(); more; more = s.next('}') {
		switch string(s.key()) {
		case "name", "arguments":
			if s.peek() == '{' { // Ollama sends the arguments as an object
				s.skip()
				found = true
				continue
			}
			found = s.text() || found
		default:
			s.skip()
		}
	}
	return found
}

func parseUsage(s *scanner, e *event) {
	for more := s.object(); more; more = s.next('}') {
		switch string(s.key()) {
		case "prompt_tokens":
			e.promptTokens, _ = s.count()
		case "completion_tokens":
			e.outputTokens, _ = s.count()
		case "prompt_tokens_details":
			for more := s.object(); more; more = s.next('}') {
				switch string(s.key()) {
				case "cached_tokens":
					e.cachedTokens, _ = s.count()
				default:
					s.skip()
				}
			}
		default:
			s.skip()
		}
	}
}

// parseTimings reads llama.cpp's timings object: service time only, without the queue.
func parseTimings(s *scanner, e *event) {
	g := engine{kind: engineLlamaCPP}
	uncached := 0
	for more := s.object(); more; more = s.next('}') {
		switch string(s.key()) {
		case "cache_n":
			g.cachedTokens, _ = s.count()
		case "prompt_n":
			uncached, _ = s.count()
		case "prompt_ms":
			g.prompt = s.milliseconds()
		case "predicted_n":
			g.outputTokens, _ = s.count()
		case "predicted_ms":
			g.generate = s.milliseconds()
		default:
			s.skip()
		}
	}
	g.promptTokens = g.cachedTokens + uncached
	if g.prompt > 0 || g.generate > 0 {
		e.engine, e.hasEngine = g, true
	}
}

// parseVLLMMetrics reads the metrics object that vLLM sends with --enable-per-request-metrics.
func parseVLLMMetrics(s *scanner, e *event) {
	for more := s.object(); more; more = s.next('}') {
		switch string(s.key()) {
		case "queue_time_ms":
			if v, ok := s.number(); ok && v >= 0 {
				e.engine = engine{kind: engineVLLM, queue: v / 1e3, hasQueue: true}
				e.hasEngine = true
			}
		default:
			s.skip()
		}
	}
}

func (s *scanner) milliseconds() float64 {
	v, _ := s.number()
	return v / 1e3
}
