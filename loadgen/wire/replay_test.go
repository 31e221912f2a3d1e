package wire

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/loadgen/arrival"
)

// segment is bytes that a server writes at once, at a time after it has read the request.
type segment struct {
	at   time.Duration
	data []byte
}

// recording is everything a server sends for one request.
type recording struct {
	segments []segment
	end      time.Duration // when it closes the connection
}

// newTestClient returns a client for api with these options filled in.
func newTestClient(t testing.TB, api string, o Options) *Client {
	t.Helper()
	o.API = api
	if o.BaseURL == "" {
		o.BaseURL = "http://server.test"
	}
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// play has one request of c answered by a server at the other end of a pipe. It has to run in a
// synctest bubble, where the times of the recording are exact and cost nothing.
func play(t *testing.T, c *Client, rec recording) Result {
	t.Helper()
	return playContext(t, t.Context(), c, rec)
}

func playContext(t *testing.T, ctx context.Context, c *Client, rec recording) Result {
	t.Helper()
	var servers sync.WaitGroup
	c.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		servers.Go(func() { answer(server, rec) })
		return arrival.Wrap(client), nil
	}
	r := c.Do(ctx, c.Dialect().Body(Request{Model: "m", Prompt: "p", OutputTokens: 8}))
	servers.Wait()
	c.CloseIdle()
	return r
}

func answer(conn net.Conn, rec recording) {
	defer conn.Close()
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, req.Body)
	start := time.Now()
	for _, s := range rec.segments {
		time.Sleep(s.at - time.Since(start))
		if _, err := conn.Write(s.data); err != nil {
			return
		}
	}
	time.Sleep(rec.end - time.Since(start))
}

// chunked frames reads of a body as one HTTP answer: the headers at once, then each part as one
// chunk at its time, and the last chunk together with the last part.
func chunked(contentType string, parts []segment) recording {
	rec := recording{segments: []segment{{0, []byte("HTTP/1.1 200 OK\r\nContent-Type: " + contentType + "\r\nTransfer-Encoding: chunked\r\n\r\n")}}}
	for _, p := range parts {
		data := fmt.Appendf(nil, "%x\r\n%s\r\n", len(p.data), p.data)
		rec.segments = append(rec.segments, segment{p.at, data})
		rec.end = p.at
	}
	rec.segments = append(rec.segments, segment{rec.end, []byte("0\r\n\r\n")})
	return rec
}

// events cuts a body where an event of SSE or a line of NDJSON ends, 10 ms apart, from 10 ms on.
func events(body []byte, f framing) []segment {
	var parts []segment
	ends := []string{"\n\n", "\r\n\r\n", "\r\r"}
	if f == framedNDJSON {
		ends = []string{"\n"}
	}
	for len(body) > 0 {
		cut := len(body)
		for _, e := range ends {
			if i := bytes.Index(body, []byte(e)); i >= 0 {
				cut = min(cut, i+len(e))
			}
		}
		parts = append(parts, segment{time.Duration(len(parts)+1) * 10 * time.Millisecond, body[:cut]})
		body = body[cut:]
	}
	return parts
}

// decode runs parts of a body of status 200 through the decoding alone, without a connection.
func decode(c *Client, contentType string, parts []segment) Result {
	start := time.Now()
	x := &exchange{c: c, aborted: func() bool { return false }, start: start, sent: start, header: start, status: http.StatusOK, phase: prefilling, cancel: func() {}}
	x.body.init(c.dialect)
	x.body.contentType = contentType
	x.timer = time.NewTimer(time.Hour)
	defer x.timer.Stop()
	x.mu.Lock()
	for _, p := range parts {
		x.take(bytes.Clone(p.data), arrival.Stamp{At: start.Add(p.at), Source: arrival.SourceRead})
	}
	x.finish(io.EOF)
	x.mu.Unlock()
	return x.result()
}

func TestReplayIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(t, "openai-chat", Options{})
		r := play(t, c, chunked("text/event-stream", events([]byte(
			`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`+"\n\n"+
				`data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n"+
				`data: {"choices":[{"index":0,"delta":{"content":"b"}}]}`+"\n\n"+
				`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+
				`data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`+"\n\n"+
				"data: [DONE]\n\n"), framedSSE)))
		if r.Outcome != OK || *r.FirstEvent != 10*time.Millisecond || *r.TTFT != 20*time.Millisecond || *r.E2E != 40*time.Millisecond ||
			*r.TPOT != 10*time.Millisecond || *r.OutputTokens != 2 || r.Chunks != 2 || r.End != 60*time.Millisecond || len(r.Warnings) != 0 {
			t.Errorf("%+v", r)
		}
	})
}
