package wire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"firstbreach/loadgen/arrival"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	head     = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	roleSSE  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	textSSE  = `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	finSSE   = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	doneSSE  = "data: [DONE]\n\n"
	lastPart = "0\r\n\r\n"
)

// chunk frames text as one HTTP chunk.
func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// script is a recording with the k-th text at k × 10 ms; the connection is closed at end, or with
// the last text where end is 0.
func script(end time.Duration, texts ...string) recording {
	rec := recording{}
	for i, text := range texts {
		at := time.Duration(i) * 10 * time.Millisecond
		rec.segments = append(rec.segments, segment{at, []byte(text)})
		rec.end = at
	}
	rec.end = max(rec.end, end)
	return rec
}

// TestStampsDoNotWaitForTheChunk sends HTTP chunks in pieces that cut events: each event has the
// stamp of the piece that completed it, though net/http returns only at the end of the chunk.
func TestStampsDoNotWaitForTheChunk(t *testing.T) {
	whole := textSSE + textSSE + finSSE + doneSSE
	framed := chunk(whole)
	cut := len(framed) - len(doneSSE+"\r\n") - 10
	synctest.Test(t, func(t *testing.T) {
		r := play(t, newTestClient(t, "openai-chat", Options{}), script(0, head,
			framed[:4+len(textSSE)], framed[4+len(textSSE):4+2*len(textSSE)+20], framed[4+2*len(textSSE)+20:cut], framed[cut:]+lastPart))
		if r.Outcome != OK || *r.TTFT != 10*time.Millisecond || len(r.Gaps) != 1 || r.Gaps[0] != 10*time.Millisecond || *r.E2E != 40*time.Millisecond {
			t.Errorf("TTFT %v, gaps %v, E2E %v: %+v", r.TTFT, r.Gaps, r.E2E, r)
		}
	})
}

// TestTransports covers how HTTP itself ends or frames an answer.
func TestTransports(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	stream := roleSSE + textSSE + finSSE + doneSSE
	var bytewise strings.Builder
	for _, b := range []byte(stream) {
		bytewise.WriteString(chunk(string(b)))
	}
	tests := []struct {
		name     string
		rec      recording
		outcome  Outcome
		ttft     time.Duration
		error    string
		warnings string
	}{
		{"100 and 103 before 200", script(0, "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", head, chunk(stream)+lastPart), OK, ms(30), "", ""},
		{"one byte a chunk", script(0, head, bytewise.String()+lastPart), OK, ms(10), "", ""},
		{"chunk extensions and trailers", script(0, head, fmt.Sprintf("%x;a=b\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n", len(stream), stream)), OK, ms(10), "", ""},
		{"an event in two chunks", script(0, head, chunk(roleSSE+textSSE[:20]), chunk(textSSE[20:]), chunk(finSSE+doneSSE)+lastPart), OK, ms(20), "", ""},
		{"content length", script(0, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n", len(stream)), roleSSE, textSSE, finSSE+doneSSE), OK, ms(20), "", ""},
		{"HTTP/1.0 until close", script(0, "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", roleSSE, textSSE, finSSE+doneSSE), OK, ms(20), "", ""},
		{"HTTP/1.0 closed in mid-answer", script(0, "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", roleSSE, textSSE), Truncated, ms(20), "without a finish reason", ""},
		{"closed before the last chunk", script(0, head, chunk(roleSSE), chunk(textSSE)), Transport, ms(20), "unexpected EOF", ""},
		{"closed before the last chunk, after [DONE]", script(0, head, chunk(stream)), Transport, ms(10), "unexpected EOF", ""},
		{"body shorter than its length", script(0, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n", len(stream)+10), stream), Transport, ms(10), "unexpected EOF", ""},
		{"closed before any header", script(ms(10)), Transport, 0, "EOF", ""},
		{"not HTTP", script(0, stream), Protocol, 0, "malformed", ""},
		{"broken chunk length", script(0, head, chunk(roleSSE), "zz\r\n"), Protocol, 0, "invalid byte in chunk length", ""},
		{"no content", script(0, "HTTP/1.1 204 No Content\r\n\r\n"), Protocol, 0, "HTTP 204", ""},
		{"empty body", script(0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Protocol, 0, "empty body", ""},
		{"no content type", script(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk(stream)+lastPart), OK, ms(10), "", "content_type"},
		{"gzip, unasked", script(0, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", chunk(zip(stream))+lastPart), OK, ms(10), "", "gzip"},
		{"not gzip", script(0, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", chunk(stream)+lastPart), Protocol, 0, "gzip", "gzip"},
		{"last chunk 50 ms later", script(0, head, chunk(stream), "", "", "", "", lastPart), OK, ms(10), "", ""},
		{"last chunk never", script(time.Minute, head, chunk(stream)), OK, ms(10), "", "drain_cut"},
		{"endless data after [DONE]", script(time.Minute, head, chunk(stream)+chunk(strings.Repeat(": padding\n\n", 100_000))), OK, ms(10), "", "drain_cut"},
		{"error, then nothing more", script(time.Minute, head, chunk(roleSSE+`data: {"error":{"message":"boom","code":500}}`+"\n\n")), ServerError, 0, "boom", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := play(t, newTestClient(t, "openai-chat", Options{}), tt.rec)
				if r.Outcome != tt.outcome || !strings.Contains(r.Error, tt.error) || strings.Join(r.Warnings, " ") != tt.warnings {
					t.Errorf("%s, error %q, warnings %q; want %s, %q, %q", r.Outcome, r.Error, r.Warnings, tt.outcome, tt.error, tt.warnings)
				}
				if (r.TTFT == nil) != (tt.ttft == 0) || r.TTFT != nil && *r.TTFT != tt.ttft {
					t.Errorf("TTFT %v, want %v", r.TTFT, tt.ttft)
				}
				if r.Outcome != OK && (r.E2E != nil || r.TPOT != nil || r.FailedAt == nil) {
					t.Errorf("a failed request has E2E %v, TPOT %v, failed at %v", r.E2E, r.TPOT, r.FailedAt)
				}
				if r.End > 2*time.Second {
					t.Errorf("took %v", r.End)
				}
			})
		})
	}
}

func zip(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	z.Close()
	return b.String()
}

func TestTimeouts(t *testing.T) {
	limits := Timeouts{Connect: time.Second, FirstToken: 3 * time.Second, Idle: 2 * time.Second, Total: 20 * time.Second}
	var drip []string
	for range 3000 {
		drip = append(drip, chunk(textSSE))
	}
	var comments []string
	for range 400 {
		comments = append(comments, chunk(": ping\n\n"))
	}
	tests := []struct {
		name string
		rec  recording
		kind TimeoutKind
		end  time.Duration
	}{
		{"no headers", script(time.Minute), TimeoutHeader, 3 * time.Second},
		{"headers, then silence", script(time.Minute, head), TimeoutFirstToken, 3 * time.Second},
		{"role chunk, then pings", script(time.Minute, append([]string{head, chunk(roleSSE)}, comments...)...), TimeoutFirstToken, 3 * time.Second},
		{"one token, then silence", script(time.Minute, head, chunk(textSSE)), TimeoutIdle, 2*time.Second + 10*time.Millisecond},
		{"one token, then pings", script(time.Minute, append([]string{head, chunk(textSSE)}, comments...)...), TimeoutIdle, 2*time.Second + 10*time.Millisecond},
		{"finish reason, then silence", script(time.Minute, head, chunk(roleSSE), chunk(finSSE)), TimeoutIdle, 2*time.Second + 20*time.Millisecond},
		{"a token in part, then silence", script(time.Minute, head, chunk(textSSE), "ff\r\n"+textSSE[:20]), TimeoutIdle, 2*time.Second + 10*time.Millisecond},
		{"tokens for ever", script(time.Minute, append([]string{head}, drip...)...), TimeoutTotal, 20 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := play(t, newTestClient(t, "openai-chat", Options{Timeouts: limits}), tt.rec)
				if r.Outcome != Timeout || r.TimeoutKind != tt.kind || r.End != tt.end || r.Error != string(tt.kind)+" deadline passed" {
					t.Errorf("%s %s after %v (%s), want timeout %s after %v", r.Outcome, r.TimeoutKind, r.End, r.Error, tt.kind, tt.end)
				}
			})
		})
	}
	t.Run("connect", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newTestClient(t, "openai-chat", Options{Timeouts: limits})
			c.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
				time.Sleep(time.Minute) // the transport dials on without the request
				return nil, context.DeadlineExceeded
			}
			r := c.Do(t.Context(), []byte("{}"))
			time.Sleep(time.Minute)
			if r.Outcome != Timeout || r.TimeoutKind != TimeoutConnect || r.End != time.Second || r.Dial != time.Second {
				t.Errorf("%s %s after %v, dial %v", r.Outcome, r.TimeoutKind, r.End, r.Dial)
			}
		})
	})
	t.Run("handshake", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newTestClient(t, "openai-chat", Options{BaseURL: "https://server.test", Timeouts: limits})
			client, server := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, server) }() // takes the hello and says nothing
			c.transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return arrival.Wrap(client), nil }
			r := c.Do(t.Context(), []byte("{}"))
			if r.Outcome != Timeout || r.TimeoutKind != TimeoutConnect || r.End != time.Second {
				t.Errorf("%s %s after %v", r.Outcome, r.TimeoutKind, r.End)
			}
		})
	})
	t.Run("steady tokens pass every deadline but total", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var parts []segment
			for i := range 10 {
				parts = append(parts, segment{time.Duration(i+1) * 1900 * time.Millisecond, []byte(textSSE)})
			}
			parts = append(parts, segment{19100 * time.Millisecond, []byte(finSSE + doneSSE)})
			if r := play(t, newTestClient(t, "openai-chat", Options{Timeouts: limits}), chunked("text/event-stream", parts)); r.Outcome != OK {
				t.Errorf("%s: %s", r.Outcome, r.Error)
			}
		})
	})
}

func TestAborted(t *testing.T) {
	for name, texts := range map[string][]string{"before headers": nil, "before text": {head}, "in mid-stream": {head, chunk(textSSE)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				r := playContext(t, ctx, newTestClient(t, "openai-chat", Options{Timeouts: Timeouts{Total: time.Minute}}), script(time.Minute, texts...))
				if r.Outcome != Aborted || r.End != time.Second || r.E2E != nil {
					t.Errorf("%s after %v: %s", r.Outcome, r.End, r.Error)
				}
			})
		})
	}
	t.Run("after the answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if r := playContext(t, ctx, newTestClient(t, "openai-chat", Options{}), script(time.Minute, head, chunk(textSSE+finSSE+doneSSE))); r.Outcome != OK {
				t.Errorf("%s: %s", r.Outcome, r.Error)
			}
		})
	})
}

func TestLargeEvents(t *testing.T) {
	big := func(n int) []byte {
		return []byte(`data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", n) + `"}}]}` + "\n\n" + finSSE + doneSSE)
	}
	c := newTestClient(t, "openai-chat", Options{})
	for _, n := range []int{65_537, 8 << 20} {
		r := decode(c, "text/event-stream", pieces(big(n), 16<<10))
		if r.Outcome != OK || r.Chunks != 1 {
			t.Errorf("%d bytes: %s, %d chunks: %s", n, r.Outcome, r.Chunks, r.Error)
		}
	}
	if r := decode(c, "text/event-stream", pieces(big(17<<20), 16<<10)); r.Outcome != Protocol || !strings.Contains(r.Error, "16 MiB") {
		t.Errorf("17 MiB: %s: %s", r.Outcome, r.Error)
	}
	line := []byte(strings.Repeat(" ", 17<<20))
	if r := decode(newTestClient(t, "ollama-chat", Options{}), "application/x-ndjson", pieces(append([]byte(`{"a":1`), line...), 16<<10)); r.Outcome != Protocol {
		t.Errorf("17 MiB line: %s: %s", r.Outcome, r.Error)
	}
}

// pieces cuts a body into reads of n bytes.
func pieces(body []byte, n int) []segment {
	var parts []segment
	for len(body) > 0 {
		k := min(n, len(body))
		parts = append(parts, segment{time.Duration(len(parts) + 1), body[:k]})
		body = body[k:]
	}
	return parts
}

func TestStatuses(t *testing.T) {
	const date = "Date: Mon, 30 Nov 2026 21:50:49 GMT\r\n"
	sec := func(v float64) *time.Duration { d := time.Duration(v * float64(time.Second)); return &d }
	tests := []struct {
		status  string
		headers string
		body    string
		outcome Outcome
		kind    TimeoutKind
		retry   *time.Duration
		error   string
	}{
		{"429 Too Many Requests", "Retry-After: 7\r\n", `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`, Rejected, "", sec(7), "HTTP 429: slow down"},
		{"429 Too Many Requests", "Retry-After: 0.5\r\n", "", Rejected, "", sec(0.5), "HTTP 429"},
		{"429 Too Many Requests", date + "Retry-After: Mon, 30 Nov 2026 21:51:09 GMT\r\n", "", Rejected, "", sec(20), ""},
		{"429 Too Many Requests", date + "Retry-After: Mon, 30 Nov 2026 21:40:00 GMT\r\n", "", Rejected, "", sec(0), ""},
		{"429 Too Many Requests", "Retry-After: soon\r\n", "", Rejected, "", nil, ""},
		{"429 Too Many Requests", "Retry-After: -3\r\n", "", Rejected, "", nil, ""},
		{"429 Too Many Requests", "Retry-After: NaN\r\n", "", Rejected, "", nil, ""},
		{"429 Too Many Requests", "Retry-After: 1\r\nRetry-After-Ms: 250\r\n", "", Rejected, "", sec(0.25), ""},
		{"429 Too Many Requests", "Retry-After: 1\r\nRetry-After-Ms: x\r\n", "", Rejected, "", sec(1), ""},
		{"503 Service Unavailable", "Content-Type: text/html\r\n", "<html>\n<head><title>503 Service\tTemporarily Unavailable</title></head></html>", Rejected, "", nil, "HTTP 503: <html> <head><title>503 Service Temporarily"},
		{"503 Service Unavailable", "", `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, Loading, "", nil, "Loading model"},
		{"503 Service Unavailable", "Retry-After: 2\r\n", `{"error":{"message":"m","type":"model_loading"},"loading":{}}`, Loading, "", sec(2), ""},
		{"503 Service Unavailable", "", `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, Rejected, "", nil, "server busy"},
		{"529 Overloaded", "", "", Rejected, "", nil, "HTTP 529"},
		{"500 Internal Server Error", "", `{"error":{"message":"invalid JSON"}}`, ServerError, "", nil, "invalid JSON"},
		{"500 Internal Server Error", "", `{"error":"Model is overloaded","error_type":"overloaded"}`, Rejected, "", nil, ""},
		{"502 Bad Gateway", "", "", ServerError, "", nil, "HTTP 502"},
		{"504 Gateway Timeout", "", "", ServerError, "", nil, ""},
		{"408 Request Timeout", "", "", Timeout, TimeoutHeader, nil, "HTTP 408"},
		{"499 Client Closed", "", "", ClientError, "", nil, ""},
		{"401 Unauthorized", "", `{"error":{"message":"Incorrect API key provided: sk-verysecret"}}`, ClientError, "", nil, "key provided: ***"},
		{"404 Not Found", "", `{"detail":"Not Found"}`, ClientError, "", nil, "HTTP 404: Not Found"},
		{"400 Bad Request", "", `{"error":{"message":"unknown field stream_options"}}`, ClientError, "", nil, "stream_options"},
		{"413 Payload Too Large", "", "", ClientError, "", nil, ""},
		{"422 Unprocessable Entity", "", `{"detail":[{"msg":"bad"}]}`, ClientError, "", nil, "bad"},
		{"301 Moved", "Location: http://elsewhere.test/?k=sk-verysecret\r\n", "", ClientError, "", nil, "redirect"},
		{"307 Temporary Redirect", "Location: /v2\r\n", "", ClientError, "", nil, "redirect"},
	}
	for _, tt := range tests {
		t.Run(tt.status, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newTestClient(t, "openai-chat", Options{APIKey: "sk-verysecret"})
				answer := fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s", tt.status, tt.headers, len(tt.body), tt.body)
				r := play(t, c, script(0, "", answer))
				if r.Outcome != tt.outcome || r.TimeoutKind != tt.kind || !strings.Contains(r.Error, tt.error) {
					t.Errorf("%s %s, error %q", r.Outcome, r.TimeoutKind, r.Error)
				}
				if (r.RetryAfter == nil) != (tt.retry == nil) || r.RetryAfter != nil && *r.RetryAfter != *tt.retry {
					t.Errorf("retry after %v, want %v", r.RetryAfter, tt.retry)
				}
				if r.FailedAt == nil || *r.FailedAt != 10*time.Millisecond || strings.Contains(r.Error, "verysecret") || strings.ContainsAny(r.Error, "\r\n") {
					t.Errorf("failed at %v: %q", r.FailedAt, r.Error)
				}
			})
		})
	}
}

func TestErrorTextIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := strings.Repeat("long\n", 100_000)
		r := play(t, newTestClient(t, "openai-chat", Options{}), script(0, fmt.Sprintf("HTTP/1.1 500 Oops\r\nContent-Length: %d\r\n\r\n%s", len(body), body)))
		if r.Outcome != ServerError || len(r.Error) > 300 {
			t.Errorf("%s, %d bytes of error", r.Outcome, len(r.Error))
		}
	})
}

func TestConnectionFailures(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	l.Close()
	c := newTestClient(t, "openai-chat", Options{BaseURL: address})
	before := time.Now()
	r := c.Do(t.Context(), []byte("{}"))
	if r.Outcome != Transport || r.HTTPStatus != 0 || !strings.Contains(r.Error, "refused") || r.SentAt.Before(before) {
		t.Errorf("refused: %+v", r)
	}

	// A reset in mid-stream, by closing with unread data and no linger.
	l, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, head+chunk(textSSE))
		time.Sleep(20 * time.Millisecond)
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}()
	c = newTestClient(t, "openai-chat", Options{BaseURL: "http://" + l.Addr().String()})
	if r := c.Do(t.Context(), []byte("{}")); r.Outcome != Transport || !strings.Contains(r.Error, "reset") || r.TTFT == nil {
		t.Errorf("reset: %+v", r)
	}
}

// TestConnectionIsReused sends two requests; the second finds the first one's connection, and
// after the server has closed it, a third one takes a new connection without being an error.
func TestConnectionIsReused(t *testing.T) {
	var requests atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Header.Get("Authorization") != "Bearer key" || r.Header.Get("Accept-Encoding") != "identity" || r.URL.Path != "/v1/chat/completions" {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, roleSSE+textSSE+finSSE+doneSSE)
	}))
	defer srv.Close()
	c := newTestClient(t, "openai-chat", Options{BaseURL: srv.URL + "/v1/", APIKey: "key"})
	defer c.CloseIdle()
	for i, reused := range []bool{false, true, false} {
		if i == 2 {
			srv.CloseClientConnections()
			time.Sleep(50 * time.Millisecond) // until the client has seen it
		}
		r := c.Do(t.Context(), []byte("{}"))
		if r.Outcome != OK || r.Reused != reused || (r.Dial == 0) != reused || *r.Header <= 0 || *r.TTFT < *r.Header {
			t.Errorf("request %d: %s %s, reused %v, dial %v, header %v", i, r.Outcome, r.Error, r.Reused, r.Dial, r.Header)
		}
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("the server saw %d requests, want 3", n)
	}
}

// TestServerClosesAfterEveryStream has the server close each connection at the end of its first
// stream without having said so, just as the next request is written to it. llama.cpp's server does
// that, with a Keep-Alive header in its answer.
func TestServerClosesAfterEveryStream(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				req, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = io.WriteString(conn, head+chunk(textSSE+finSSE+doneSSE)+lastPart)
				_, _ = in.ReadByte() // the next request is on its way
			}()
		}
	}()
	c := newTestClient(t, "openai-chat", Options{BaseURL: "http://" + l.Addr().String()})
	defer c.CloseIdle()
	reconnected := 0
	for i := range 5 {
		r := c.Do(t.Context(), []byte("{}"))
		if r.Outcome != OK || r.TTFT == nil || r.Reused {
			t.Errorf("request %d: %s %s, reused %v", i, r.Outcome, r.Error, r.Reused)
		}
		for _, w := range r.Warnings {
			if w == "reconnected" {
				reconnected++
			}
		}
	}
	if reconnected != 1 {
		t.Errorf("%d requests were sent again, want 1: after the first no connection is used twice", reconnected)
	}
}

// TestFailingServerIsNoStaleConnection has the server close every connection after it has read a
// request: on a new connection that is a failure of the server.
func TestFailingServerIsNoStaleConnection(t *testing.T) {
	var requests atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, textSSE+finSSE+doneSSE)
	}))
	defer srv.Close()
	c := newTestClient(t, "openai-chat", Options{BaseURL: srv.URL})
	defer c.CloseIdle()
	if r := c.Do(t.Context(), []byte("{}")); r.Outcome != OK {
		t.Fatal(r.Error)
	}
	for _, seen := range []int32{3, 4} { // the first of the two was tried on the old connection, too
		if r := c.Do(t.Context(), []byte("{}")); r.Outcome != Transport || r.Reused {
			t.Errorf("%s, reused %v", r.Outcome, r.Reused)
		}
		if n := requests.Load(); n != seen {
			t.Errorf("the server saw %d requests, want %d", n, seen)
		}
	}
}

func TestOverTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("protocol %s", r.Proto)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range []string{roleSSE, textSSE, textSSE, finSSE + doneSSE} {
			_, _ = io.WriteString(w, part)
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	config := srv.Client().Transport.(*http.Transport).TLSClientConfig
	c := newTestClient(t, "openai-chat", Options{BaseURL: srv.URL, TLS: config})
	defer c.CloseIdle()
	r := c.Do(t.Context(), []byte("{}"))
	if r.Outcome != OK || len(r.Gaps) != 1 || r.Gaps[0] < 2*time.Millisecond || *r.TTFT <= *r.FirstEvent || r.Dial <= 0 {
		t.Errorf("%+v", r)
	}
	bad := newTestClient(t, "openai-chat", Options{BaseURL: srv.URL, TLS: &tls.Config{ServerName: "other.test"}})
	if r := bad.Do(t.Context(), []byte("{}")); r.Outcome != Transport || !strings.Contains(r.Error, "certificate") {
		t.Errorf("untrusted: %s %s", r.Outcome, r.Error)
	}
}

func TestThroughAProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "http://server.test/v1/chat/completions" {
			t.Errorf("the proxy was asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, roleSSE+textSSE+finSSE+doneSSE)
	}))
	defer proxy.Close()
	c := newTestClient(t, "openai-chat", Options{})
	defer c.CloseIdle()
	u, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.transport.Proxy = http.ProxyURL(u)
	if r := c.Do(t.Context(), []byte("{}")); r.Outcome != OK || r.TTFT == nil {
		t.Errorf("%s: %s", r.Outcome, r.Error)
	}
}
