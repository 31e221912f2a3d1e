package sim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// ollama writes /api/chat and /api/generate.
type ollama struct{ chat bool }

func (d ollama) media() string { return "application/x-ndjson" }
func (d ollama) early() bool   { return false }

func (d ollama) read(body []byte) (call, error) {
	var r struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
		Prompt   string    `json:"prompt"`
		System   string    `json:"system"`
		Stream   *bool     `json:"stream"`
		Options  struct {
			NumPredict *int `json:"num_predict"`
		} `json:"options"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return call{}, fmt.Errorf("the body is not a valid request: %w", err)
	}
	c := call{model: r.Model, stream: r.Stream == nil || *r.Stream}
	if d.chat {
		if len(r.Messages) == 0 {
			return call{}, fmt.Errorf("messages is missing or empty")
		}
		c.prompt = wordsOf(r.Messages)
	} else {
		c.prompt = countWords(r.System) + countWords(r.Prompt)
	}
	if n := r.Options.NumPredict; n != nil && *n > 0 { // -1 and -2 mean no limit
		c.limit, c.limited = *n, true
	}
	return c, nil
}

// open begins a line.
func (d ollama) open(buf []byte, a *answer) []byte {
	buf = append(buf, `{"model":`...)
	buf = append(buf, a.model...)
	buf = append(buf, `,"created_at":"`...)
	buf = time.Now().UTC().AppendFormat(buf, time.RFC3339Nano)
	if d.chat {
		return append(buf, `","message":{"role":"assistant","content":"`...)
	}
	return append(buf, `","response":"`...)
}

// shut closes the text that open left open.
func (d ollama) shut(buf []byte) []byte {
	buf = append(buf, '"')
	if d.chat {
		buf = append(buf, '}')
	}
	return buf
}

func (d ollama) token(buf []byte, a *answer, index int) []byte {
	buf = d.shut(appendText(d.open(buf, a), a.number, index))
	return append(appendStamp(append(buf, `,"done":false`...), a), "}\n"...)
}

func (d ollama) finish(buf []byte, a *answer, p Progress) []byte {
	return append(d.end(d.shut(d.open(buf, a)), a, p), '\n')
}

// end appends the members of the last line after the text. Durations are in nanoseconds.
func (d ollama) end(buf []byte, a *answer, p Progress) []byte {
	buf = append(buf, `,"done":true,"done_reason":"`...)
	buf = append(buf, finishReason(a.natural)...)
	buf = append(buf, '"')
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"total_duration", p.Timings.Total.Nanoseconds()},
		{"prompt_eval_count", int64(a.prompt)},
		{"prompt_eval_duration", p.Timings.Prefill.Nanoseconds()},
		{"eval_count", int64(p.Tokens)},
		{"eval_duration", p.Timings.Decode.Nanoseconds()},
	} {
		if f.value == 0 { // Ollama leaves zeros out
			continue
		}
		buf = append(append(append(buf, `,"`...), f.name...), `":`...)
		buf = strconv.AppendInt(buf, f.value, 10)
	}
	return append(appendStamp(buf, a), '}')
}

// unfinished is a clean end: this API has no other terminal marker than the last line.
func (d ollama) unfinished(buf []byte, _ *answer) []byte { return buf }

func (d ollama) failed(buf []byte, t trouble) []byte {
	return append(append(buf, d.refusal(t)...), '\n')
}

func (d ollama) whole(a *answer, p Progress) []byte {
	buf := d.open(nil, a)
	for i := range p.Tokens {
		buf = appendText(buf, a.number, i)
	}
	return d.end(d.shut(buf), a, p)
}

func (d ollama) refusal(t trouble) []byte {
	return fmt.Appendf(nil, `{"error":%s}`, quote(t.message))
}
