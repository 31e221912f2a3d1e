package wire

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	vectorsDoc    = "../../docs/wire.md"
	updateVectors = "FIRSTBREACH_UPDATE"
	vectorsHead   = `# What servers send, and what is recorded

One row for each vector of the corpus, written by the tests of ` + "`loadgen/wire`" + ` from what the client recorded: each file is
replayed event by event, in reads 10 ms apart unless they say otherwise, from 10 ms after the request. It is replayed cut
in two at every place that matters, byte by byte, and through a real socket as well. Where no file can show it, the row names the tests
that do. Times are in milliseconds after the request; – is undefined, never zero.

## When headers come, and the wait in the queue
The time of the response headers means something else with each engine, so it is kept (` + "`header_s`" + `), and used only as below. The wait in
the queue is told apart from the service only where the engine's own timings allow it, and left out elsewhere:

| engine | headers come | queue wait (` + "`queue_wait_s`" + `, ` + "`loadgen_queue_wait_seconds`" + `) |
|---|---|---|
| vLLM | at once, whatever the queue | ` + "`metrics.queue_time_ms`" + ` of the usage chunk, with ` + "`--enable-per-request-metrics`" + `; source ` + "`vllm_metrics`" + ` |
| llama.cpp | when a slot starts (builds since June 2026) | the header time where it fits ` + "`timings`" + `, else what prompt_ms and predicted_ms leave of the whole; source ` + "`llamacpp_timings`" + ` |
| Ollama, /api | with the first token | total − load − prompt_eval − eval; not where the model was loaded for the request, or the parts exceed the total; source ` + "`ollama_timings`" + ` |
| Ollama, /v1 | with the first token | – |
| SGLang, TGI, Triton, LocalAI, hosted APIs | differs | – |

## The vectors
Rewrite this page with ` + "`" + updateVectors + "=1 go test -run TestVectorTable ./loadgen/wire`" + `.

| # | vector | case | outcome | first event | TTFT | first content | end | TPOT | chunks | tokens (from) | notes |
|---|---|---|---|---|---|---|---|---|---|---|---|
`
)

// TestVectorTable keeps the table in the documentation what the client really does.
func TestVectorTable(t *testing.T) {
	raw, err := os.ReadFile("testdata/vectors.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := corpus(t)
	page := vectorsHead
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if len(lines) != 85 {
		t.Fatalf("%d vectors, want 85", len(lines))
	}
	for i, line := range lines {
		part := strings.SplitN(line, "|", 3)
		if part[0] != strconv.Itoa(i+1) {
			t.Fatalf("line %d is vector %s", i+1, part[0])
		}
		if part[2] != "" {
			page += fmt.Sprintf("| %s | %s | %s | | | | | | | | | |\n", part[0], part[1], part[2])
		}
		rows := 0
		for _, c := range cases {
			if c.Vector == i+1 {
				page += vectorRow(t, part[0], part[1], c)
				rows++
			}
		}
		if rows == 0 && part[2] == "" {
			t.Errorf("vector %d has neither a case nor a test", i+1)
		}
	}
	if os.Getenv(updateVectors) != "" {
		if err := os.WriteFile(vectorsDoc, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if old, err := os.ReadFile(vectorsDoc); err != nil || string(old) != page {
		t.Errorf("%s is stale (%v): run this test with %s=1", vectorsDoc, err, updateVectors)
	}
}

// vectorRow replays one case and writes what was recorded.
func vectorRow(t *testing.T, number, title string, c corpusCase) (row string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := newTestClient(t, c.API, Options{})
		r := play(t, client, chunked(c.ContentType, c.parts(t, client.dialect.framing())))
		ms := func(d *time.Duration) string {
			if d == nil {
				return "–"
			}
			return strconv.FormatFloat(float64(*d)/1e6, 'f', -1, 64)
		}
		tokens := "–"
		if r.OutputTokens != nil {
			tokens = fmt.Sprintf("%d (%s)", *r.OutputTokens, r.TokenSource)
		}
		notes := slices.Clone(r.Warnings)
		if r.QueueWait != nil {
			notes = append(notes, "queue wait "+ms(r.QueueWait)+" from "+r.QueueWaitSource)
		}
		row = fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %d | %s | %s |\n", number, title, c.File, r.Outcome, ms(r.FirstEvent), ms(r.TTFT),
			ms(r.FirstText), ms(r.E2E), ms(r.TPOT), r.Chunks, tokens, strings.Join(notes, ", "))
	})
	return row
}

// TestBursts is a proxy that passes 16 chunks on at a time: the gaps say nothing of the server.
func TestBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parts []segment
		for i := range 4 {
			parts = append(parts, segment{time.Duration(i+1) * time.Second, []byte(strings.Repeat(textSSE, 16))})
		}
		parts = append(parts, segment{5 * time.Second, []byte(finSSE + doneSSE)})
		for _, tt := range []struct {
			parts []segment
			want  string
		}{{parts, "buffered"}, {append([]segment{}, split(parts, 3)...), "bursty"}} {
			r := play(t, newTestClient(t, "openai-chat", Options{}), chunked("text/event-stream", tt.parts))
			if r.Outcome != OK || r.Chunks != 64 || !slices.Contains(r.Warnings, tt.want) {
				t.Errorf("%s, %d chunks, warnings %q; want %s", r.Outcome, r.Chunks, r.Warnings, tt.want)
			}
		}
	})
}

// split cuts each part but the last into pieces of n events, 10 ms apart.
func split(parts []segment, n int) []segment {
	var out []segment
	for _, p := range parts[:len(parts)-1] {
		for i, piece := range pieces(p.data, n*len(textSSE)) {
			out = append(out, segment{p.at + time.Duration(i)*10*time.Millisecond, piece.data})
		}
	}
	return append(out, parts[len(parts)-1])
}
