package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxErrorBody = 4 << 10 // bytes of an error body that are looked at
	maxErrorText = 200     // runes of a server's words that are kept
)

// failure is why a request is not ok.
type failure struct {
	outcome Outcome
	message string
}

// serverError is an error in any of the shapes in which servers send one.
type serverError struct {
	message string
	kind    string // type, error_type
	code    int    // code, status; 0 when none was given
	status  int    // http_status_code, as TGI puts it into its stream
}

// readError finds an error in a body or an event: {"error":{…}}, {"error":"text"},
// {"object":"error","message":…}, {"detail":…}, {"message":…,"code":…}, or plain text.
func readError(raw []byte) serverError {
	var top map[string]any
	if json.Unmarshal(raw, &top) != nil {
		return serverError{message: string(raw[:min(len(raw), maxErrorBody)])}
	}
	var e serverError
	e.fill(top)
	switch inner := top["error"].(type) {
	case map[string]any:
		e.fill(inner)
	case string:
		e.message = inner
	}
	if e.message == "" {
		switch d := top["detail"].(type) {
		case string:
			e.message = d
		case nil:
			e.message = string(raw[:min(len(raw), maxErrorBody)])
		default:
			text, _ := json.Marshal(d)
			e.message = string(text)
		}
	}
	return e
}

func (e *serverError) fill(m map[string]any) {
	if v, ok := m["message"].(string); ok {
		e.message = v
	}
	for _, key := range []string{"type", "error_type"} {
		if v, ok := m[key].(string); ok {
			e.kind = v
		}
	}
	if v := codeOf(m["code"]); v != 0 {
		e.code = v
	}
	if v, ok := m["code"].(string); ok && codeOf(v) == 0 {
		e.kind += " " + v // OpenAI's codes are words: rate_limit_exceeded
	}
	e.status = max(e.status, codeOf(m["http_status_code"]))
	if e.code == 0 {
		e.code = max(codeOf(m["status"]), codeOf(m["status_code"]))
	}
}

// codeOf reads a status that may come as a number or as text.
func codeOf(v any) int {
	switch v := v.(type) {
	case float64:
		if v >= 100 && v < 600 {
			return int(v)
		}
	case string:
		if n, err := strconv.Atoi(v); err == nil && n >= 100 && n < 600 {
			return n
		}
	}
	return 0
}

// said reports whether the type or the message has one of the words.
func (e serverError) said(words ...string) bool {
	text := strings.ToLower(e.kind + "\n" + e.message)
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func (e serverError) saysLoading() bool {
	return e.said("loading model", "model_loading", "model is loading", "model is still loading", "model is currently loading")
}

func (e serverError) saysBusy() bool {
	return e.said("overloaded", "queue is full", "queue full", "server busy", "currently busy", "too many requests",
		"rate limit", "rate_limit", "ratelimit", "admission_rejected", "maximum pending requests")
}

// inBand classifies an error that came in a stream of status 200.
func (e serverError) inBand() Outcome {
	code := e.code
	if code == 0 {
		code = e.status
	}
	switch {
	case e.saysLoading():
		return Loading
	case e.saysBusy(), isRefusal(code):
		return Rejected
	case e.status == http.StatusUnprocessableEntity:
		// TGI puts 422 on every cause; only its words tell them apart.
		if e.said("validation") {
			return ClientError
		}
		return ServerError
	case code >= 400 && code < 500:
		return ClientError
	case code == 0 && e.said("invalid_request", "badrequest", "bad_request", "notfound", "not_found", "authentication", "permission_denied", "exceed_context_size"):
		return ClientError
	}
	return ServerError
}

// isRefusal reports whether a status means "not now, I am full". 529 is not registered, but used.
func isRefusal(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == 529
}

// byStatus classifies an answer whose status is not 200.
func (e serverError) byStatus(status int) Outcome {
	switch {
	case status >= 500 && e.saysLoading():
		return Loading
	case isRefusal(status):
		return Rejected
	case status >= 500 && e.saysBusy():
		return Rejected
	case status >= 500:
		return ServerError
	case status == http.StatusRequestTimeout:
		return Timeout
	case status >= 300:
		return ClientError
	}
	return Protocol
}

// oneLine makes a server's words fit for a ledger: no control characters, no runs of white
// space, not longer than maxErrorText, and without the secrets, which servers like to echo.
func oneLine(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	var out bytes.Buffer
	n, space := 0, false
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError {
			space = out.Len() > 0
			continue
		}
		if n++; n > maxErrorText {
			out.WriteString("…")
			break
		}
		if space {
			out.WriteByte(' ')
			space = false
		}
		out.WriteRune(r)
	}
	return out.String()
}
