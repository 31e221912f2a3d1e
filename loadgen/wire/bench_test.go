package wire

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// benchStream is an answer of n tokens in chunks as vLLM sends them.
func benchStream(n int) []byte {
	var b bytes.Buffer
	b.WriteString(roleSSE)
	for range n {
		b.WriteString(`data: {"id":"chatcmpl-8f4a9efee3c84239","object":"chat.completion.chunk","created":1796075450,"model":"tiny","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":null}]}` + "\n\n")
	}
	b.WriteString(finSSE + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":512}}` + "\n\n" + doneSSE)
	return b.Bytes()
}

// BenchmarkClientPerChunk is what the client costs for one streamed chunk, beside a reader that
// reads the same HTTP answers and looks at nothing. Every chunk comes in a write of its own. The
// ratio of the two is printed as x-bare; both send and read over loopback in this one process, so
// that server and kernel are in both.
func BenchmarkClientPerChunk(b *testing.B) {
	const tokens = 512
	parts := events(benchStream(tokens), framedSSE)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		flusher := w.(http.Flusher)
		for _, p := range parts {
			_, _ = w.Write(p.data)
			flusher.Flush()
		}
	}))
	defer srv.Close()
	c := newTestClient(b, "openai-chat", Options{BaseURL: srv.URL, Timeouts: Timeouts{Connect: time.Minute, FirstToken: time.Minute, Idle: time.Minute, Total: time.Hour}})
	defer c.CloseIdle()
	bare := &http.Transport{DialContext: (&net.Dialer{}).DialContext, DisableCompression: true}
	defer bare.CloseIdleConnections()
	body := c.Dialect().Body(Request{Model: "m", Prompt: strings.Repeat("word ", 256), OutputTokens: tokens})
	buf := make([]byte, readBuffer)

	readBare := func() {
		req, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, c.URL(), bytes.NewReader(body))
		resp, err := bare.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = resp.Body.Read(buf)
		}
		resp.Body.Close()
	}
	readClient := func() {
		if r := c.Do(b.Context(), body); r.Outcome != OK || r.Chunks != tokens {
			b.Fatalf("%s: %s, %d chunks", r.Outcome, r.Error, r.Chunks)
		}
	}
	readBare()
	readClient()

	var bareTime, clientTime time.Duration
	for b.Loop() { // one of each in turn, so that whatever else runs here hits both
		start := time.Now()
		readBare()
		middle := time.Now()
		readClient()
		bareTime += middle.Sub(start)
		clientTime += time.Since(middle)
	}
	chunks := float64(b.N) * float64(len(parts))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(clientTime)/chunks, "ns/chunk")
	b.ReportMetric(float64(bareTime)/chunks, "bare-ns/chunk")
	b.ReportMetric(float64(clientTime)/float64(bareTime), "x-bare")
}

// BenchmarkDecodePerChunk is decoding alone, without HTTP and kernel: one chunk a read.
func BenchmarkDecodePerChunk(b *testing.B) {
	parts := events(benchStream(512), framedSSE)
	c := newTestClient(b, "openai-chat", Options{})
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		start := time.Now()
		x := body{}
		x.init(c.dialect)
		x.contentType = "text/event-stream"
		for i, p := range parts {
			x.take(p.data, start.Add(time.Duration(i)))
		}
		if !x.tally.complete() {
			b.Fatal("not complete")
		}
		n += len(parts)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/chunk")
}

// BenchmarkScanner is the parsing of one chunk.
func BenchmarkScanner(b *testing.B) {
	raw, err := os.ReadFile("testdata/corpus/01-lf.sse")
	if err != nil {
		b.Fatal(err)
	}
	line := bytes.TrimPrefix(bytes.SplitN(raw, []byte("\n"), 4)[2], []byte("data: "))
	var e event
	b.ReportAllocs()
	for b.Loop() {
		if !parseOpenAI(line, &e) || !e.choices[0].text {
			b.Fatal("not parsed")
		}
	}
}
