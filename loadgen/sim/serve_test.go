package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick is an engine that is fast enough for tests on real connections.
func quick(f func(*Config)) Config {
	c := Default()
	c.PrefillTime, c.StepBase = 2*ms, ms
	if f != nil {
		f(&c)
	}
	return c
}

// target is a served engine and a client of its own.
type target struct {
	t      *testing.T
	url    string
	client *http.Client
	stop   func()
}

func serve(t *testing.T, cfg Config) *target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := Serve(ctx, cfg, l, slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	transport := &http.Transport{}
	stop := sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		cancel()
		wg.Wait()
	})
	t.Cleanup(stop)
	return &target{t: t, url: "http://" + l.Addr().String(), client: &http.Client{Transport: transport}, stop: stop}
}

// post sends a body and returns the response, its whole body, and the error of reading it.
func (x *target) post(path, body string) (*http.Response, string, error) {
	x.t.Helper()
	resp, err := x.client.Post(x.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

func (x *target) get(path string) (int, string) {
	x.t.Helper()
	resp, err := x.client.Get(x.url + path)
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// stable takes out what differs from run to run.
func stable(body string) string {
	body = regexp.MustCompile(`"created":\d+`).ReplaceAllString(body, `"created":0`)
	body = regexp.MustCompile(`"created_at":"[^"]+"`).ReplaceAllString(body, `"created_at":"0"`)
	return regexp.MustCompile(`_duration":\d+`).ReplaceAllString(body, `_duration":0`)
}

const (
	chatBody = `{"model":"sim","messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"three more words"}]}],"max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}`
	longBody = `{"model":"sim","messages":[{"role":"user","content":"x"}],"max_tokens":100000,"stream":true}`
	compBody = `{"model":"sim","prompt":"four words of prompt","max_tokens":2,"stream":true}`
)

// The bytes on the wire, against files that can be read beside captures of real servers.
func TestWireForms(t *testing.T) {
	for _, tc := range []struct {
		name, path, body string
		cfg              func(*Config)
		status           int
		media            string
	}{
		{"chat-stream", "/v1/chat/completions", chatBody, nil, 200, "text/event-stream; charset=utf-8"},
		{"chat-whole", "/v1/chat/completions", strings.Replace(chatBody, `"stream":true,`, "", 1), nil, 200, "application/json"},
		{"completions-stream", "/v1/completions", compBody, nil, 200, "text/event-stream; charset=utf-8"},
		{"completions-whole", "/v1/completions", strings.Replace(compBody, `,"stream":true`, "", 1), nil, 200, "application/json"},
		{"ollama-chat-stream", "/api/chat", `{"model":"sim:latest","messages":[{"role":"user","content":"two words"}],"options":{"num_predict":2}}`, nil, 200, "application/x-ndjson"},
		{"ollama-generate-stream", "/api/generate", `{"model":"sim","prompt":"two words","options":{"num_predict":-1}}`, func(c *Config) { c.DefaultTokens = 2 }, 200, "application/x-ndjson"},
		{"ollama-generate-whole", "/api/generate", `{"model":"sim","prompt":"two words","stream":false,"options":{"num_predict":2}}`, nil, 200, "application/json"},
		{"error-stream", "/v1/chat/completions", chatBody, func(c *Config) { c.Faults = []Fault{{Kind: FaultError, Tokens: 1}} }, 200, "text/event-stream; charset=utf-8"},
		{"error-first-event", "/v1/chat/completions", chatBody, func(c *Config) { c.ErrorShare, c.ErrorStatus = 1, 200 }, 200, "text/event-stream; charset=utf-8"},
		{"error-status", "/v1/chat/completions", chatBody, func(c *Config) { c.ErrorShare, c.ErrorStatus = 1, 502 }, 502, "application/json"},
		{"ollama-error-stream", "/api/generate", `{"model":"sim","prompt":"x"}`, func(c *Config) { c.Faults = []Fault{{Kind: FaultError, Tokens: 1}} }, 200, "application/x-ndjson"},
		{"no-finish", "/v1/chat/completions", chatBody, func(c *Config) { c.Faults = []Fault{{Kind: FaultNoFinish, Tokens: 1}} }, 200, "text/event-stream; charset=utf-8"},
		{"truncate", "/v1/chat/completions", chatBody, func(c *Config) { c.Faults = []Fault{{Kind: FaultTruncate, Tokens: 1}} }, 200, "text/event-stream; charset=utf-8"},
		{"loading", "/v1/chat/completions", chatBody, func(c *Config) { c.LoadTime = time.Hour }, 503, "application/json"},
		{"ollama-loading", "/api/chat", `{"model":"sim","messages":[{"role":"user","content":"x"}]}`, func(c *Config) { c.LoadTime = time.Hour }, 503, "application/json"},
		{"unknown-model", "/v1/chat/completions", strings.Replace(chatBody, `"sim"`, `"nope"`, 1), nil, 404, "application/json"},
		{"too-long", "/v1/chat/completions", chatBody, func(c *Config) { c.KVTokens = 7 }, 400, "application/json"},
		{"zero-tokens", "/v1/completions", strings.Replace(compBody, `:2,`, `:0,`, 1), nil, 400, "application/json"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := serve(t, quick(tc.cfg))
			resp, body, err := x.post(tc.path, tc.body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tc.status || resp.Header.Get("Content-Type") != tc.media {
				t.Errorf("status %d, %s; want %d, %s", resp.StatusCode, resp.Header.Get("Content-Type"), tc.status, tc.media)
			}
			file := filepath.Join("testdata", tc.name+".txt")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(file, []byte(stable(body)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), stable(body)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every event of every answer is valid JSON.
func TestEventsAreJSON(t *testing.T) {
	x := serve(t, quick(func(c *Config) { c.Stamp = true }))
	for path, body := range map[string]string{
		"/v1/chat/completions": chatBody, "/v1/completions": compBody,
		"/api/chat": `{"model":"sim","messages":[{"role":"user","content":"x"}]}`, "/api/generate": `{"model":"sim","prompt":"x"}`,
	} {
		_, got, err := x.post(path, body)
		if err != nil {
			t.Fatal(err)
		}
		last := int64(0)
		for _, line := range strings.Fields(strings.ReplaceAll(strings.ReplaceAll(got, " ", ""), "data:", "")) {
			if line == "[DONE]" {
				continue
			}
			var event struct {
				Sent int64 `json:"sim_sent_ns"`
			}
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				t.Errorf("%s: %q: %v", path, line, err)
			}
			if event.Sent < last || event.Sent == 0 || event.Sent > monotonic() {
				t.Errorf("%s: stamp %d after %d", path, event.Sent, last)
			}
			last = event.Sent
		}
	}
}

func TestRejections(t *testing.T) {
	for _, tc := range []struct {
		reject, body, path string
		status             int
		inBand             bool
	}{
		{Reject429, chatBody, "/v1/chat/completions", 429, false},
		{Reject503, chatBody, "/v1/chat/completions", 503, false},
		{RejectInBand, chatBody, "/v1/chat/completions", 200, true},
		{RejectInBand, compBody, "/v1/completions", 200, true},
		{RejectInBand, strings.Replace(compBody, `,"stream":true`, "", 1), "/v1/completions", 503, false},
		{RejectInBand, `{"model":"sim","prompt":"x"}`, "/api/generate", 200, true},
	} {
		t.Run(tc.reject+tc.path, func(t *testing.T) {
			x := serve(t, quick(func(c *Config) {
				c.MaxRequests, c.Reject, c.RetryAfter = 1, tc.reject, 1500*ms
				c.StepBase = time.Hour // so that the one request that fits does not end
			}))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := x.hold(ctx, longBody)
			defer first.Body.Close()
			resp, body, err := x.post(tc.path, tc.body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tc.status || resp.Header.Get("Retry-After") != "2" {
				t.Errorf("status %d, Retry-After %q; want %d, 2", resp.StatusCode, resp.Header.Get("Retry-After"), tc.status)
			}
			if !strings.Contains(body, "currently busy") || tc.inBand && strings.HasPrefix(tc.path, "/v1") && !strings.HasSuffix(body, "}}\n\ndata: [DONE]\n\n") {
				t.Errorf("body %q", body)
			}
			if _, page := x.get("/metrics"); !strings.Contains(page, `vllm:admission_rejections_total{model_name="sim",reason="max_num_queued_reqs"} 1`) {
				t.Error("the rejection isn't counted")
			}
			cancel()
		})
	}
}

// hold starts a request and returns when its headers are there.
func (x *target) hold(ctx context.Context, body string) *http.Response {
	x.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	resp, err := x.client.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	return resp
}

func TestHeaders(t *testing.T) {
	for _, tc := range []struct {
		mode, path, body string
		early            bool
	}{
		{HeadersAuto, "/v1/chat/completions", chatBody, true},
		{HeadersAuto, "/api/generate", `{"model":"sim","prompt":"x"}`, false},
		{HeadersAtOnce, "/api/generate", `{"model":"sim","prompt":"x"}`, true},
		{HeadersFirstToken, "/v1/completions", compBody, false},
	} {
		t.Run(tc.mode+tc.path, func(t *testing.T) {
			t.Parallel()
			x := serve(t, quick(func(c *Config) { c.Headers, c.PrefillTime = tc.mode, time.Second }))
			sent := time.Now()
			resp, err := x.client.Post(x.url+tc.path, "application/json", strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			header := time.Since(sent)
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if whole := time.Since(sent); whole < time.Second {
				t.Errorf("the answer took %v, less than its prefill", whole)
			}
			if early := header < time.Second; early != tc.early {
				t.Errorf("headers after %v, early should be %v", header, tc.early)
			}
		})
	}
}

func TestResetMidStream(t *testing.T) {
	x := serve(t, quick(func(c *Config) { c.Faults = []Fault{{Kind: FaultReset, Request: 1, Tokens: 1}} }))
	_, body, err := x.post("/v1/chat/completions", chatBody)
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("error %v, want a reset", err)
	}
	if strings.Count(body, "data: ") != 2 || strings.Contains(body, "finish_reason\":\"") {
		t.Errorf("before the reset: %q, want the role and one token", body)
	}
	if _, body, err := x.post("/v1/chat/completions", chatBody); err != nil || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("the next request: %q, %v", body, err)
	}
}

func TestCrashAndRestart(t *testing.T) {
	x := serve(t, quick(func(c *Config) { c.StepBase = 50 * ms }))
	if _, _, err := x.post("/v1/chat/completions", chatBody); err != nil {
		t.Fatal(err)
	}
	resp := x.hold(t.Context(), longBody)
	defer resp.Body.Close()
	before := time.Now() // the crash comes after this, so nothing below can be too early by accident
	if status := x.fault("crash:down=300ms,load=1s"); status != 0 && status != http.StatusNoContent {
		t.Fatalf("fault: status %d", status)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stream under way ended well")
	}
	if _, _, err := x.post("/v1/chat/completions", chatBody); err == nil && time.Since(before) < 300*ms {
		t.Error("a request was answered while the engine was down")
	}
	// Then it loads, and then it serves, with counters from zero.
	sawLoading := false
	for {
		resp, body, err := x.post("/v1/chat/completions", chatBody)
		if err == nil && resp.StatusCode == http.StatusOK {
			break
		}
		if err == nil {
			sawLoading = sawLoading || resp.StatusCode == 503 && strings.Contains(body, "Loading model")
		}
		if time.Since(before) > 30*time.Second {
			t.Fatal("the engine did not come back")
		}
		time.Sleep(20 * ms)
	}
	if after := time.Since(before); !sawLoading || after < 1300*ms {
		t.Errorf("back after %v, loading seen: %v", after, sawLoading)
	}
	if _, page := x.get("/metrics"); !strings.Contains(page, `vllm:generation_tokens_total{engine="0",model_name="sim"} 3`) {
		t.Error("the counters did not start anew")
	}
}

// fault posts a fault; 0 when the connection was dropped, as a crash does.
func (x *target) fault(text string) int {
	x.t.Helper()
	resp, _, err := x.post("/sim/fault", text)
	if err != nil && resp == nil {
		return 0
	}
	return resp.StatusCode
}

func TestFaultEndpoint(t *testing.T) {
	x := serve(t, quick(nil))
	if status := x.fault("reset:request=100"); status != http.StatusNoContent {
		t.Errorf("status %d", status)
	}
	if _, body := x.get("/sim/fault"); strings.TrimSpace(body) != `{"faults":["reset:request=100"]}` {
		t.Errorf("list: %s", body)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, x.url+"/sim/fault", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := x.client.Do(req); err != nil || resp.StatusCode != http.StatusNoContent {
		t.Errorf("clearing: %v, %v", resp, err)
	}
	if _, body := x.get("/sim/fault"); strings.TrimSpace(body) != `{"faults":[]}` {
		t.Errorf("list: %s", body)
	}
	resp, body, err := x.post("/sim/fault", "explode")
	if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "unknown kind") {
		t.Errorf("a bad fault: %v, %s, %v", resp, body, err)
	}
}

func TestClientThatGoesAwayFreesItsSlot(t *testing.T) {
	x := serve(t, quick(func(c *Config) { c.Slots, c.StepBase = 1, time.Hour }))
	ctx, cancel := context.WithCancel(t.Context())
	resp := x.hold(ctx, longBody)
	cancel()
	resp.Body.Close()
	running := regexp.MustCompile(`vllm:num_requests_running\{[^}]*\} (\d+)`)
	for start := time.Now(); ; time.Sleep(5 * ms) {
		_, page := x.get("/metrics")
		if m := running.FindStringSubmatch(page); m != nil && m[1] == "0" {
			return
		}
		if time.Since(start) > 30*time.Second {
			t.Fatal("the slot is still taken")
		}
	}
}

func TestAboutPages(t *testing.T) {
	x := serve(t, quick(nil))
	for path, want := range map[string]string{
		"/v1/models":   `"id":"sim"`,
		"/api/tags":    `"name":"sim"`,
		"/api/version": engineVersion,
		"/version":     engineVersion,
		"/health":      "",
		"/metrics":     "process_cpu_seconds_total",
	} {
		if status, body := x.get(path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: status %d, body %.200s", path, status, body)
		}
	}
	y := serve(t, quick(func(c *Config) { c.LoadTime = time.Hour }))
	for _, path := range []string{"/health", "/v1/models", "/api/tags"} {
		if status, body := y.get(path); status != http.StatusServiceUnavailable || !strings.Contains(body, "Loading model") {
			t.Errorf("%s while loading: status %d, body %.200s", path, status, body)
		}
	}
}

// vLLM's page, name by name and edge by edge: what is in the capture, ours has too.
func TestMetricsPage(t *testing.T) {
	x := serve(t, quick(func(c *Config) { c.Model = "tiny" }))
	if _, _, err := x.post("/v1/chat/completions", strings.Replace(chatBody, `"sim"`, `"tiny"`, 1)); err != nil {
		t.Fatal(err)
	}
	_, page := x.get("/metrics")
	capture, err := os.ReadFile(filepath.Join("testdata", "vllm-0.32-metrics.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want, have := shape(t, string(capture)), shape(t, page)
	for series, value := range want {
		if _, ok := have[series]; !ok {
			t.Errorf("missing: %s (%v in the capture)", series, value)
		}
	}
	if len(want) < 150 {
		t.Errorf("only %d series in the capture", len(want))
	}
	for series, value := range map[string]float64{
		`vllm:prompt_tokens_total COUNTER engine=0 model_name=tiny`:                          5,
		`vllm:generation_tokens_total COUNTER engine=0 model_name=tiny`:                      3,
		`vllm:request_success_total COUNTER engine=0 finished_reason=length model_name=tiny`: 1,
		`vllm:time_to_first_token_seconds HISTOGRAM engine=0 model_name=tiny`:                0.002,
		`vllm:time_to_first_token_seconds HISTOGRAM engine=0 model_name=tiny le=0.001`:       0,
		`vllm:time_to_first_token_seconds HISTOGRAM engine=0 model_name=tiny le=0.005`:       1,
		`vllm:inter_token_latency_seconds HISTOGRAM engine=0 model_name=tiny`:                0.002,
		`vllm:inter_token_latency_seconds HISTOGRAM engine=0 model_name=tiny le=0.01`:        2,
		`vllm:request_time_per_output_token_seconds HISTOGRAM engine=0 model_name=tiny`:      0.001,
		`vllm:request_prefill_time_seconds HISTOGRAM engine=0 model_name=tiny`:               0.002,
		`vllm:request_decode_time_seconds HISTOGRAM engine=0 model_name=tiny`:                0.002,
		`vllm:e2e_request_latency_seconds HISTOGRAM engine=0 model_name=tiny`:                0.004,
		`vllm:request_queue_time_seconds HISTOGRAM engine=0 model_name=tiny`:                 0,
		`vllm:request_queue_time_seconds HISTOGRAM engine=0 model_name=tiny le=0.3`:          1,
		`vllm:num_requests_running GAUGE engine=0 model_name=tiny`:                           0,
	} {
		if got, ok := have[series]; !ok || math.Abs(got-value) > 1e-9 {
			t.Errorf("%s = %v (there: %v), want %v", series, got, ok, value)
		}
	}
}

// shape is a page's series, "name TYPE label=value … [le=edge]", with their values; the sum for a
// whole histogram.
func shape(t *testing.T, page string) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			id := name + " " + f.GetType().String()
			labels := m.GetLabel()
			slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
			for _, l := range labels {
				id += " " + l.GetName() + "=" + l.GetValue()
			}
			series[id] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
			for _, b := range m.GetHistogram().GetBucket() {
				series[fmt.Sprintf("%s le=%g", id, b.GetUpperBound())] = float64(b.GetCumulativeCount())
			}
		}
	}
	return series
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	x := serve(t, quick(func(c *Config) { c.StepBase = 100 * ms }))
	resp := x.hold(t.Context(), chatBody)
	defer resp.Body.Close()
	done := make(chan error, 1)
	go func() {
		body, err := io.ReadAll(resp.Body)
		if err == nil && !strings.HasSuffix(string(body), "data: [DONE]\n\n") {
			err = fmt.Errorf("body %q", body)
		}
		done <- err
	}()
	x.stop()
	if err := <-done; err != nil {
		t.Errorf("the request under way: %v", err)
	}
}

func TestServeRefusesABadConfig(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), Config{}, l, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--slots") {
		t.Errorf("error %v, want one that names --slots", err)
	}
}
