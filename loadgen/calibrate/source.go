package calibrate

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"firstbreach/loadgen/arrival"
)

// Source serves streams as an engine with room for everybody would: each request gets its first
// token after Prefill and one more every Gap. Each chunk holds sim_sent_ns, the time just before it
// was written, in nanoseconds of CLOCK_MONOTONIC; the first one also holds sim_request_ns, the time at
// which the request came, as the kernel stamped it.
type Source struct {
	Prefill time.Duration
	Gap     time.Duration
	Tokens  int
	// FirstSent, if not nil, is told of every stream how long after its request the first token was
	// sent. It is called by one goroutine, which sends nothing meanwhile.
	FirstSent func(time.Duration) `json:"-"`
}

const (
	keySent    = `"sim_sent_ns":`
	keyRequest = `"sim_request_ns":`
	sourceHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	sourceRole = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796075446,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	sourceOpen = `data: {"id":"chatcmpl-8f4a9efee3c84239","object":"chat.completion.chunk","created":1796075446,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":null}],`
	sourceDone = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796075446,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n"
)

// Serve serves on the listener until ctx ends, and closes it.
func (s Source) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	clock, pace := newClock(), &pacer{Source: s}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { pace.run(ctx) })
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		all.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			defer stop()
			defer c.Close()
			out, err := newSender(c.(*net.TCPConn))
			if err != nil {
				return
			}
			for conn := arrival.Wrap(c); s.answer(ctx, conn, out, pace, clock); {
			}
		})
	}
}

// answer serves one request; it is false when the connection is over.
func (s Source) answer(ctx context.Context, c *arrival.Conn, out *sender, pace *pacer, clock clock) bool {
	req, err := http.ReadRequest(bufio.NewReader(c)) // nobody pipelines here
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return false
	}
	answer := &stream{out: out, start: time.Now(), came: clock.monotonic(c.Last().At), done: make(chan bool, 1)}
	if _, err := c.Write(chunk([]byte(sourceHead), []byte(sourceRole))); err != nil {
		return false
	}
	pace.add(answer)
	select {
	case <-ctx.Done():
		return false
	case whole := <-answer.done:
		if !whole {
			return false
		}
	}
	usage := `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":` + strconv.Itoa(s.Tokens) + "}}\n\ndata: [DONE]\n\n"
	_, err = c.Write(append(chunk(nil, []byte(sourceDone+usage)), "0\r\n\r\n"...))
	return err == nil
}

// chunk appends data as one chunk of HTTP's chunked coding.
func chunk(out, data []byte) []byte {
	out = strconv.AppendInt(out, int64(len(data)), 16)
	out = append(out, "\r\n"...)
	out = append(out, data...)
	return append(out, "\r\n"...)
}
