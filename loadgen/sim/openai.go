package sim

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// openAI writes /v1/chat/completions and /v1/completions as vLLM does, but for the finish reason,
// which has a chunk of its own here, as OpenAI sends it.
type openAI struct{ chat bool }

func (d openAI) media() string { return "text/event-stream; charset=utf-8" }
func (d openAI) early() bool   { return true }

func (d openAI) read(body []byte) (call, error) {
	var r struct {
		Model               string          `json:"model"`
		Messages            []message       `json:"messages"`
		Prompt              json.RawMessage `json:"prompt"`
		MaxTokens           *int            `json:"max_tokens"`
		MaxCompletionTokens *int            `json:"max_completion_tokens"`
		N                   *int            `json:"n"`
		Stream              bool            `json:"stream"`
		StreamOptions       struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return call{}, fmt.Errorf("the body is not a valid request: %w", err)
	}
	if r.N != nil && *r.N != 1 {
		return call{}, fmt.Errorf("n=%d: the simulated engine gives one answer per request", *r.N)
	}
	c := call{model: r.Model, stream: r.Stream, usage: r.StreamOptions.IncludeUsage, prompt: wordsOf(r.Messages)}
	switch {
	case d.chat && len(r.Messages) == 0:
		return call{}, fmt.Errorf("messages is missing or empty")
	case !d.chat:
		var prompt string
		if err := json.Unmarshal(r.Prompt, &prompt); err != nil {
			return call{}, fmt.Errorf("prompt must be one string")
		}
		c.prompt = countWords(prompt)
	}
	limit := r.MaxTokens
	if r.MaxCompletionTokens != nil {
		limit = r.MaxCompletionTokens
	}
	if limit != nil {
		if *limit < 1 {
			return call{}, fmt.Errorf("max_tokens must be at least 1, got %d", *limit)
		}
		c.limit, c.limited = *limit, true
	}
	return c, nil
}

// open begins an event of the answer's stream.
func (d openAI) open(buf []byte, a *answer) []byte {
	if d.chat {
		buf = append(buf, `data: {"id":"chatcmpl-`...)
	} else {
		buf = append(buf, `data: {"id":"cmpl-`...)
	}
	buf = strconv.AppendInt(buf, int64(a.number), 10)
	if d.chat {
		buf = append(buf, `","object":"chat.completion.chunk","created":`...)
	} else {
		buf = append(buf, `","object":"text_completion","created":`...)
	}
	buf = strconv.AppendInt(buf, a.created.Unix(), 10)
	buf = append(buf, `,"model":`...)
	buf = append(buf, a.model...)
	return append(buf, `,"choices":[`...)
}

func closeEvent(buf []byte, a *answer) []byte {
	return append(appendStamp(buf, a), "}\n\n"...)
}

func (d openAI) token(buf []byte, a *answer, index int) []byte {
	if !d.chat {
		buf = append(d.open(buf, a), `{"index":0,"text":"`...)
		buf = appendText(buf, a.number, index)
		return closeEvent(append(buf, `","logprobs":null,"finish_reason":null}]`...), a)
	}
	if index == 0 {
		buf = append(d.open(buf, a), `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
		buf = closeEvent(buf, a)
	}
	buf = append(d.open(buf, a), `{"index":0,"delta":{"content":"`...)
	buf = appendText(buf, a.number, index)
	return closeEvent(append(buf, `"},"logprobs":null,"finish_reason":null}]`...), a)
}

func (d openAI) finish(buf []byte, a *answer, p Progress) []byte {
	buf = d.open(buf, a)
	if d.chat {
		buf = append(buf, `{"index":0,"delta":{},"logprobs":null,"finish_reason":"`...)
	} else {
		buf = append(buf, `{"index":0,"text":"","logprobs":null,"finish_reason":"`...)
	}
	buf = append(buf, finishReason(a.natural)...)
	buf = closeEvent(append(buf, `"}]`...), a)
	if a.usage {
		buf = append(d.open(buf, a), `],`...)
		buf = closeEvent(appendUsage(buf, a.prompt, p.Tokens), a)
	}
	return d.unfinished(buf, a)
}

func appendUsage(buf []byte, prompt, output int) []byte {
	return fmt.Appendf(buf, `"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}`, prompt, prompt+output, output)
}

func (d openAI) unfinished(buf []byte, _ *answer) []byte { return append(buf, "data: [DONE]\n\n"...) }

func (d openAI) failed(buf []byte, t trouble) []byte {
	buf = append(append(buf, "data: "...), d.refusal(t)...)
	return d.unfinished(append(buf, "\n\n"...), nil)
}

func (d openAI) whole(a *answer, p Progress) []byte {
	kind, id, object := `"text":"`, "cmpl-", "text_completion"
	if d.chat {
		kind, id, object = `"message":{"role":"assistant","content":"`, "chatcmpl-", "chat.completion"
	}
	buf := fmt.Appendf(nil, `{"id":"%s%d","object":"%s","created":%d,"model":%s,"choices":[{"index":0,%s`,
		id, a.number, object, a.created.Unix(), a.model, kind)
	for i := range p.Tokens {
		buf = appendText(buf, a.number, i)
	}
	buf = append(buf, '"')
	if d.chat {
		buf = append(buf, '}')
	}
	buf = fmt.Appendf(buf, `,"logprobs":null,"finish_reason":"%s"}],`, finishReason(a.natural))
	return append(appendUsage(buf, a.prompt, p.Tokens), '}')
}

func (d openAI) refusal(t trouble) []byte {
	param := "null"
	if t.param != "" {
		param = quote(t.param)
	}
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%s,"param":%s,"code":%d}}`, quote(t.message), quote(t.kind), param, t.status)
}

// quote returns s as a JSON string.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}
