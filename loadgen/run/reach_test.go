package run_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/run"
)

// TestReach sends the one request before a run to servers of every kind. What no amount of load could
// change is refused with what to do about it; what load may be to blame for is left to be measured.
func TestReach(t *testing.T) {
	stream := func(lines ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, l := range lines {
				fmt.Fprintf(w, "data: %s\n\n", l)
			}
		}
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, code) }
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		says  string // "" when the run may begin
	}{
		"answers":         {stream(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"), ""},
		"error in stream": {stream(`{"error":{"message":"engine died"}}`, "[DONE]"), ""},
		"cut off":         {stream(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`), ""},
		"server error":    {status(500, "boom"), ""},
		"refused":         {status(429, `{"error":{"message":"too many"}}`), ""},
		"no such path":    {status(404, "404 page not found"), "--api"},
		"no POST":         {status(501, "Unsupported method"), "--api"},
		"wants a key":     {status(401, `{"error":{"message":"no key"}}`), "--api-key-env"},
		"bad request":     {status(400, `{"error":{"message":"max_tokens is too large"}}`), "max_tokens is too large"},
		"a web page":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") }, "--api"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent.Add(1)
				c.serve(w, r)
			}))
			defer srv.Close()
			checkReach(t, srv.URL, c.says)
			if n := sent.Load(); n != 1 {
				t.Errorf("%d requests were sent, want 1", n)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		srv := httptest.NewServer(nil)
		srv.Close()
		checkReach(t, srv.URL, "check that it runs")
	})
	t.Run("a certificate that nobody signed", func(t *testing.T) {
		srv := httptest.NewTLSServer(status(200, ""))
		defer srv.Close()
		checkReach(t, srv.URL, "SSL_CERT_FILE")
	})
	t.Run("no TLS there", func(t *testing.T) {
		srv := httptest.NewServer(nil)
		defer srv.Close()
		checkReach(t, strings.Replace(srv.URL, "http:", "https:", 1), "check that it runs, and that scheme")
	})
}

// Of a trace the longest request is sent as well: it may be longer than the model's context, which one
// would learn of after the rounds only.
func TestReachSendsTheLongestOfATrace(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trace.jsonl"), []byte(`{"timestamp": 0, "input_length": 40, "output_length": 4}
{"timestamp": 3052, "input_length": 3000, "output_length": 1200}
{"timestamp": 12209, "input_length": 50, "output_length": 5}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	sent := make(chan string, 2)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			MaxTokens int  `json:"max_tokens"`
			MinTokens int  `json:"min_tokens"`
			IgnoreEOS bool `json:"ignore_eos"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		sent <- fmt.Sprint(body)
		if body.MaxTokens > 1000 {
			http.Error(w, `{"error":{"message":"maximum context length is 2048"}}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer srv.Close()
	for keys, want := range map[string]string{
		"": "fails the longest request of the trace (3000 input and 1200 output tokens), so nothing was started: HTTP 400: maximum context length is 2048 (fix: write trace.max_input_tokens",
		", max_output_tokens: 1000, ignore_eos: false": "",
	} {
		p, err := plan.Parse(filepath.Join(dir, "plan.yaml"), fmt.Appendf(nil, `apiVersion: firstbreach/v1
environment: isolated
target: {url: %q, api: openai-chat, model: m}
fixed: {prompts: {synthetic: {input_tokens: 8}}, output_tokens: 3}
ramp: {concurrency: [1, 2]}
trace: {file: trace.jsonl%s}
`, srv.URL, keys))
		if err != nil {
			t.Fatal(err)
		}
		err = run.Reach(t.Context(), p, "r1")
		asked := []string{<-sent, <-sent}
		bodies := []string{"{3 0 false}", "{1200 1200 true}"}
		if want == "" {
			bodies[1] = "{1000 0 false}"
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || !slices.Equal(asked, bodies) {
			t.Errorf("%q: %v, asked for %v", keys, err, asked)
		}
	}
}

func checkReach(t *testing.T, url, says string) {
	t.Helper()
	p, err := plan.Parse("plan.yaml", fmt.Appendf(nil, `apiVersion: firstbreach/v1
environment: isolated
target: {url: %q, api: openai-chat, model: m}
fixed: {prompts: {synthetic: {input_tokens: 8}}, output_tokens: 3}
ramp: {concurrency: [1, 2]}
`, url))
	if err != nil {
		t.Fatal(err)
	}
	err = run.Reach(t.Context(), p, "r1")
	switch {
	case says == "" && err != nil:
		t.Errorf("refused: %v", err)
	case says != "" && err == nil:
		t.Error("not refused")
	case says != "" && (!strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), url)):
		t.Errorf("says %q, without %q or the target's address", err, says)
	}
}
