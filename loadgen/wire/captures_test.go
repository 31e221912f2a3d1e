package wire

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// readCapture reads what a real server sent: one read of the recorder a line, with its time since
// the request in milliseconds. Some recordings kept only the end of the body; they get a head.
func readCapture(t *testing.T, name, contentType string) recording {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata/captures", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rec recording
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			MS   float64
			Data string
			EOF  bool
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		at := msec(line.MS)
		if line.EOF {
			rec.end = at
			continue
		}
		if len(rec.segments) == 0 && !strings.HasPrefix(line.Data, "HTTP/") {
			line.Data = "HTTP/1.1 200 OK\r\nContent-Type: " + contentType + "\r\nTransfer-Encoding: chunked\r\n\r\n" + line.Data
		}
		rec.segments = append(rec.segments, segment{at, []byte(line.Data)})
	}
	if rec.end == 0 {
		t.Fatalf("%s: no end", name)
	}
	return rec
}

func msec(v float64) time.Duration {
	return (time.Duration(v*1e6+0.5) * time.Nanosecond).Round(100 * time.Microsecond)
}

// TestCaptures replays what real llama.cpp, vLLM 0.32 and Ollama sent, at the times at which they
// sent it. Times are in milliseconds; 0 means undefined.
func TestCaptures(t *testing.T) {
	tests := []struct {
		name, api                       string
		outcome                         Outcome
		status                          int
		header, event, ttft, e2e, queue float64
		chunks, prompt, cached, tokens  int
		tpot                            time.Duration
		error, warnings                 string
	}{
		// One slot: the third request waits for the two before it, and the headers come when its slot starts.
		{name: "llama-1slot-req1", outcome: OK, header: 11, event: 22.3, ttft: 22.3, e2e: 1232.6, queue: 11, chunks: 120, prompt: 31, cached: 30, tokens: 120, tpot: 10170588},
		{name: "llama-1slot-req3", outcome: OK, header: 2001.7, event: 2008.9, ttft: 2008.9, e2e: 2933.2, queue: 2001.7, chunks: 120, prompt: 31, cached: 30, tokens: 120, tpot: 7766386},
		// Role chunks with progress from 55 ms on, pings between them, first text at 6251 ms.
		{name: "llama-return-progress", outcome: OK, header: 55.2, event: 55.2, ttft: 6251, e2e: 6350.5, queue: 55.2, chunks: 2, prompt: 3382, tokens: 2, tpot: 99500 * time.Microsecond},
		{name: "llama-slow-prefill-pings", outcome: OK, header: 2.4, event: 6469.3, ttft: 6469.3, e2e: 6672.8, queue: 2.4, chunks: 3, prompt: 3380, tokens: 3, tpot: 101750 * time.Microsecond},
		// Headers at once even for the request that then waits 3.9 s: no queue wait is claimed.
		{name: "vllm-0.32-chat", outcome: OK, header: 4.2, event: 50.3, ttft: 50.4, e2e: 194, chunks: 8, prompt: 5, tokens: 8, tpot: 20514285},
		{name: "vllm-0.32-chat-queued", outcome: OK, header: 2, event: 3928.8, ttft: 3928.9, e2e: 4915.6, chunks: 8, prompt: 5, tokens: 8, tpot: 140957142},
		// Two of four tokens have no text: four tokens, two chunks, TPOT by the tokens.
		{name: "vllm-0.32-completions-continuous-usage", api: "openai-completions", outcome: OK, header: 3.2, event: 37.1, ttft: 37.1, e2e: 90.8, chunks: 2, prompt: 4, tokens: 4, tpot: 17900 * time.Microsecond},
		{name: "vllm-0.32-engine-killed-midstream", outcome: ServerError, header: 3.8, event: 44.6, ttft: 45, chunks: 68, tokens: 68, error: "EngineCore"},
		{name: "vllm-0.32-admission-rejected", outcome: Rejected, status: 503, header: 1.5, error: "HTTP 503: The engine is currently busy"},
		{name: "vllm-0.32-model-not-found", outcome: ClientError, status: 404, header: 8.3, error: "HTTP 404: The model `nope` does not exist"},
		{name: "vllm-0.32-too-many-tokens", outcome: ClientError, status: 400, header: 2.4, error: "HTTP 400: max_tokens=100000"},
		{name: "vllm-0.32-two-choices", outcome: OK, header: 1.5, event: 38.2, ttft: 38.2, e2e: 109, chunks: 8, tokens: 8},
		// The runner was killed: said in band on the native API, hidden on /v1.
		{name: "ollama-crash-api-generate", api: "ollama-generate", outcome: ServerError, header: 1367, event: 1367, ttft: 1367, chunks: 1, tokens: 1, error: "unexpected EOF"},
		{name: "ollama-crash-api-chat", api: "ollama-chat", outcome: ServerError, header: 1418.9, event: 1418.9, error: "unexpected EOF"},
		{name: "ollama-crash-v1-chat-completions", outcome: Truncated, header: 1388.9, event: 1388.9, error: "without a finish reason"},
		{name: "ollama-crash-v1-completions", api: "openai-completions", outcome: Truncated, header: 1421.8, event: 1421.8, error: "without a finish reason"},
		{name: "ollama-short-api-generate", api: "ollama-generate", outcome: OK, header: 32.7, event: 32.7, e2e: 32.7, queue: 3.0083, prompt: 7, tokens: 3, warnings: "empty"},
		{name: "ollama-short-api-chat", api: "ollama-chat", outcome: OK, header: 287.6, event: 287.6, e2e: 287.6, prompt: 7, tokens: 3, warnings: "empty model_loaded"},
		{name: "ollama-short-v1-chat-completions", outcome: OK, header: 292.2, event: 292.2, e2e: 292.2, warnings: "empty"},
		{name: "ollama-short-v1-completions", api: "openai-completions", outcome: OK, header: 310, event: 310, ttft: 310, e2e: 317.8, chunks: 1, tokens: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, contentType := tt.api, "text/event-stream"
				if api == "" {
					api = "openai-chat"
				}
				if strings.HasPrefix(api, "ollama") {
					contentType = "application/x-ndjson"
				}
				r := play(t, newTestClient(t, api, Options{}), readCapture(t, tt.name, contentType))
				status := tt.status
				if status == 0 {
					status = 200
				}
				if r.Outcome != tt.outcome || r.HTTPStatus != status || !strings.Contains(r.Error, tt.error) || strings.Join(r.Warnings, " ") != tt.warnings {
					t.Errorf("outcome %s, status %d, error %q, warnings %v", r.Outcome, r.HTTPStatus, r.Error, r.Warnings)
				}
				for _, v := range []struct {
					name string
					got  *time.Duration
					want float64
				}{{"header", r.Header, tt.header}, {"first event", r.FirstEvent, tt.event}, {"TTFT", r.TTFT, tt.ttft}, {"E2E", r.E2E, tt.e2e}} {
					if (v.got == nil) != (v.want == 0) || v.got != nil && *v.got != msec(v.want) {
						t.Errorf("%s %v, want %v ms", v.name, v.got, v.want)
					}
				}
				if (r.QueueWait == nil) != (tt.queue == 0) || r.QueueWait != nil && max(*r.QueueWait-msec(tt.queue), msec(tt.queue)-*r.QueueWait) > 100*time.Microsecond {
					t.Errorf("queue wait %v, want %v ms", r.QueueWait, tt.queue)
				}
				if (r.TPOT == nil) != (tt.tpot == 0) || r.TPOT != nil && *r.TPOT != tt.tpot {
					t.Errorf("TPOT %v, want %v", r.TPOT, tt.tpot)
				}
				if r.Chunks != tt.chunks || num(r.PromptTokens) != tt.prompt || num(r.CachedPromptTokens) != tt.cached || num(r.OutputTokens) != tt.tokens {
					t.Errorf("%d chunks, %d prompt tokens (%d cached), %d tokens", r.Chunks, num(r.PromptTokens), num(r.CachedPromptTokens), num(r.OutputTokens))
				}
			})
		})
	}
}

func num(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// TestOllamaQueueWait has the durations that a real Ollama reported for five requests sent at
// once to one slot, and the time to first byte that the recorder saw.
func TestOllamaQueueWait(t *testing.T) {
	const ms = 1e-3
	tests := []struct {
		total, load, prompt, generate float64 // seconds
		e2e, want                     float64
	}{
		{0.913277607, 0.011720726, 0.00756, 0.421735, 0.914938, 472.26 * ms},
		{1.371859817, 0.007183002, 0.007538, 0.44246, 1.373309, 914.68 * ms},
		{2.199925243, 0.005239151, 0.008326, 0.373479, 2.204259, 1812.88 * ms},
		{1.815178034, 0.003338363, 0.01027, 0.431555, 1.818575, 1370.01 * ms},
		{0.480195304, 0.009903208, 0.008635, 0.454466, 0.481968, 7.19 * ms},
	}
	for _, tt := range tests {
		tally := tally{engine: engine{kind: engineOllama, total: tt.total, load: tt.load, prompt: tt.prompt, generate: tt.generate}}
		got, ok := tally.ollamaQueueWait(tt.e2e)
		if !ok || max(got-tt.want, tt.want-got) > 0.01*ms {
			t.Errorf("queue wait %v %v, want %v", got, ok, tt.want)
		}
	}
}
