package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"firstbreach/loadgen/arrival"
)

// attempts bounds how often a request is tried on idle connections that turn out to be closed.
const attempts = 3

// staleWithin bounds how long after the write a reused connection may break without an answer and
// still count as one that the server had closed before the request came. A server that takes the
// request and fails later is a failure of the server.
const staleWithin = time.Second

// exchange is one request and its answer. The fields below mu are shared with the timer and with
// the transport's reading goroutine.
type exchange struct {
	c       *Client
	aborted func() bool // the caller's context is done
	cancel  context.CancelFunc
	start   time.Time
	err     error // of the transport, the body included; nil after a clean EOF

	status     int
	retryAfter *time.Duration
	dialFrom   time.Time

	mu        sync.Mutex
	closed    bool
	timer     *time.Timer
	phase     phase
	expired   TimeoutKind
	cut       bool // the body was not read to its end, because the answer had ended before
	conn      *arrival.Conn
	connWrote time.Time // conn's latest write before this request's
	reused    bool
	layered   bool // something lies between the transport and conn, such as TLS
	held      []byte
	dial      time.Duration
	sent      time.Time // set once the headers are there; before, see sentAt
	header    time.Time
	taken     time.Time // stamp of the latest bytes of the body
	active    time.Time // the latest event, of any kind
	settledAt time.Time

	body body
}

// newExchange starts the clock of a request and returns the context that ends with it.
func newExchange(parent context.Context, c *Client) (context.Context, *exchange) {
	ctx, cancel := context.WithCancel(parent)
	x := &exchange{c: c, aborted: func() bool { return parent.Err() != nil }, cancel: cancel, start: time.Now()}
	x.body.init(c.dialect)
	x.mu.Lock()
	x.arm()
	x.mu.Unlock()
	return ctx, x
}

// close stops the timer and lets go of the connection.
func (x *exchange) close() {
	x.mu.Lock()
	x.closed = true
	if x.timer != nil {
		x.timer.Stop()
	}
	x.mu.Unlock()
	x.cancel()
}

// sentAt is the moment at which the request's last byte was handed to the connection, or the
// start where nothing was written. It is frozen when the headers come: after the answer's end the
// connection may serve another request. x.mu is held.
func (x *exchange) sentAt() time.Time {
	if !x.sent.IsZero() {
		return x.sent
	}
	if x.conn != nil {
		if at, _ := x.conn.Wrote(); at != x.connWrote {
			return at
		}
	}
	return x.start
}

// wrote reports whether anything of the request was handed to the connection. x.mu is held.
func (x *exchange) wrote() bool { return x.sentAt() != x.start }

// roundTrip sends the request and waits for the response headers.
//
// Some servers close a connection at the end of every stream, whatever they say about keeping it
// alive: a request written to it at that moment finds it closed. That is no answer of the server to
// the request, so it is sent again on a new connection, once that is seen no connection is used twice
// any more, and the result carries the warning "reconnected".
func (x *exchange) roundTrip(ctx context.Context, payload []byte) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := x.c.transport.RoundTrip(x.request(ctx, payload))
		x.mu.Lock()
		if err == nil {
			x.status = resp.StatusCode
			x.sent = x.sentAt()
			x.header = x.last().At
			x.active, x.taken = x.header, x.header
			x.enter(prefilling)
			x.mu.Unlock()
			return resp, nil
		}
		again := ctx.Err() == nil && try < attempts && x.stale(err)
		if again {
			x.conn, x.reused, x.phase = nil, false, connecting
			x.arm()
		}
		x.mu.Unlock()
		if !again {
			return nil, err
		}
		x.c.fresh.Store(true)
		x.body.tally.warn("reconnected")
	}
}

// stale reports whether a reused connection had been closed by the server before this request. x.mu
// is held.
func (x *exchange) stale(err error) bool {
	if !x.reused {
		return false
	}
	if !x.wrote() {
		return true
	}
	return closedByPeer(err) && time.Since(x.sentAt()) < staleWithin
}

// closedByPeer reports whether the other side closed the connection before it sent anything.
func closedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "server closed idle connection") // net/http does not export this one
}

// request builds the HTTP request. Its body can't be rewound, so that the transport never sends
// it again by itself.
func (x *exchange) request(ctx context.Context, payload []byte) *http.Request {
	trace := &httptrace.ClientTrace{
		GetConn: func(string) { x.dialFrom = time.Now() },
		GotConn: x.gotConn,
	}
	r := &http.Request{
		Method:        http.MethodPost,
		URL:           x.c.url,
		Host:          x.c.url.Host,
		Header:        x.c.header.Clone(),
		Body:          io.NopCloser(bytes.NewReader(payload)),
		ContentLength: int64(len(payload)),
		Close:         x.c.fresh.Load(),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
	}
	return r.WithContext(httptrace.WithClientTrace(ctx, trace))
}

// gotConn notes the connection before the request is written to it.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.conn = arrival.From(info.Conn)
	x.layered = x.conn != nil && net.Conn(x.conn) != info.Conn
	x.connWrote = time.Time{}
	if x.conn != nil {
		x.connWrote, _ = x.conn.Wrote()
	}
	x.reused = info.Reused
	x.dial = 0
	if !info.Reused && !info.WasIdle {
		x.dial = time.Since(x.dialFrom)
	}
	x.enter(waiting)
}

// last is the stamp of the latest bytes of the connection.
func (x *exchange) last() arrival.Stamp {
	if x.conn != nil {
		return x.conn.Last()
	}
	return arrival.Stamp{At: time.Now(), Source: arrival.SourceRead}
}

// unwritten fills the part of a read buffer that holds nothing, and all of it between two uses. It
// never occurs in UTF-8.
const unwritten = 0xff

// readAnswer reads a body of status 200 to its end.
func (x *exchange) readAnswer(resp *http.Response) {
	var body io.Reader = resp.Body
	x.body.contentType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	zipped := strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip")
	if zipped {
		x.body.tally.warn("gzip") // unasked for; the stamps are those of the decompressed reads
		z, err := gzip.NewReader(body)
		if err != nil {
			x.err = err
			return
		}
		body = z
	}
	buffer := x.c.buffers.Get().(*[]byte)
	defer func() {
		fill(*buffer)
		x.c.buffers.Put(buffer)
	}()
	if zipped {
		x.layered = false
	}
	x.pump(body, *buffer, !zipped && x.conn != nil)
}

// pump reads body to its end and has each byte taken with the stamp of the read of the
// connection that brought it.
//
// The HTTP layer copies the bytes of a chunk into buf and may then go back to the connection for
// the rest of the chunk before it returns. What it has copied by then arrived with the stamp
// before, and would get a later one if it had to wait for the return; so, when the connection is
// about to be read, what is in buf already is taken. The mark `unwritten` tells how much that is.
// A byte of that value in the stream itself (no text) only makes the hand-over shorter.
//
// A layer such as TLS hands out one read of the connection in several pieces. They are held until
// the connection is read again, because only all of them together tell whether the read was late.
func (x *exchange) pump(body io.Reader, buf []byte, early bool) {
	given := 0 // bytes of buf that were taken before Read returned
	if early {
		stop := x.conn.OnWait(func(before arrival.Stamp) {
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.closed || x.body.ended {
				return
			}
			n := bytes.IndexByte(buf[given:], unwritten)
			if n < 0 {
				n = len(buf) - given
			}
			x.arrive(buf[given:given+n], before)
			x.release(before)
			given += n
		})
		defer stop()
	}
	for {
		n, err := body.Read(buf)
		x.mu.Lock()
		if n > given {
			if s := x.last(); early {
				x.arrive(buf[given:n], s)
			} else {
				s.Earliest = time.Time{} // nothing is known of when what was decompressed came
				x.arrive(buf[given:n], s)
			}
		}
		fill(buf[:max(n, given)])
		given = 0
		if err != nil || x.body.tail > drainBytes {
			x.release(x.last())
			x.finish(err)
			x.mu.Unlock()
			return
		}
		x.mu.Unlock()
	}
}

// arrive takes bytes of the body, or holds them. x.mu is held.
func (x *exchange) arrive(b []byte, s arrival.Stamp) {
	switch {
	case len(b) == 0:
	case x.layered && !s.Earliest.IsZero():
		x.held = append(x.held, b...)
	default:
		x.take(b, s)
	}
}

// release takes what was held; s is the stamp of the read that brought it. x.mu is held.
func (x *exchange) release(s arrival.Stamp) {
	if len(x.held) > 0 {
		x.take(x.held, s)
		x.held = x.held[:0]
	}
}

// fill overwrites b with the mark.
func fill(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, blank):]
	}
}

// blank is a run of the mark that is copied from.
const blank = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" +
	"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"

// finish ends the body with the error of its last read. x.mu is held.
func (x *exchange) finish(err error) {
	x.body.ended = true
	switch {
	case errors.Is(err, io.EOF):
		x.body.end(x.taken)
	case err == nil:
		x.cut = true // more than drainBytes behind the end of the answer
	default:
		x.err = err
	}
}

// readRefusal reads a sample of the body of an error status and classifies it.
func (x *exchange) readRefusal(resp *http.Response) {
	x.mu.Lock()
	x.enter(draining)
	at := x.header
	x.mu.Unlock()
	sample, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, drainBytes))
	x.retryAfter = retryAfter(resp.Header, time.Now())
	e := readError(sample)
	message := "HTTP " + strconv.Itoa(resp.StatusCode)
	if location := resp.Header.Get("Location"); location != "" && resp.StatusCode < 400 {
		message += " redirect (not followed: give the final URL)"
	} else if text := oneLine(e.message, x.c.secrets); text != "" {
		message += ": " + text
	}
	x.mu.Lock()
	x.body.tally.fail(e.byStatus(resp.StatusCode), message, at)
	x.mu.Unlock()
}

// result puts everything together.
func (x *exchange) result() Result {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := &x.body.tally
	r := Result{
		SentAt:      x.sentAt(),
		Dial:        x.dial,
		Reused:      x.reused,
		HTTPStatus:  x.status,
		RetryAfter:  x.retryAfter,
		Comments:    x.body.sse.comments,
		StampSource: t.source(),
	}
	if !x.header.IsZero() {
		d := x.header.Sub(r.SentAt)
		r.Header = &d
	}
	if x.phase == connecting {
		r.Dial = time.Since(x.start)
	}
	x.conclude(&r)
	t.fill(&r)
	if r.Outcome != OK {
		r.E2E, r.TPOT, r.E2EMin, r.TPOTMin = nil, nil, nil, nil // an answer that did not end has no length; TTFT is kept as a partial value
	}
	r.End = time.Since(r.SentAt)
	return r
}

// conclude decides the outcome. What the server said comes before what happened to the
// connection afterwards. x.mu is held.
func (x *exchange) conclude(r *Result) {
	t := &x.body.tally
	now := time.Now()
	switch {
	case t.failure != nil:
	case x.expired != "":
		t.fail(Timeout, "", now)
	case x.err != nil && x.aborted() && !t.done:
		t.fail(Aborted, "", now)
	case x.err != nil && !x.cut && !(t.done && x.aborted()):
		x.failTransport(now)
	case t.truncated() != "":
		t.fail(Truncated, t.truncated(), now)
	}
	if t.failure == nil {
		r.Outcome = OK
		x.body.warnOK()
		if x.cut {
			t.warn("drain_cut")
		}
		return
	}
	r.Outcome, r.Error = t.failure.outcome, oneLine(t.failure.message, x.c.secrets)
	if r.Error == "" {
		r.Error = "an error without words"
	}
	switch r.Outcome {
	case Timeout:
		r.TimeoutKind = x.expired
		if x.expired == "" {
			r.TimeoutKind = TimeoutHeader // status 408: the server gave up waiting
		} else {
			r.Error = string(x.expired) + " deadline passed"
		}
	case Aborted:
		r.Error = "aborted"
	}
}

// failTransport classifies an error of the connection. x.mu is held.
func (x *exchange) failTransport(at time.Time) {
	t := &x.body.tally
	err := x.err
	var timeout net.Error
	for _, limit := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS} {
		if errors.Is(err, limit) {
			t.warn(WarnClientLimit) // this machine ran out of sockets or ports, not the server
		}
	}
	switch text := err.Error(); {
	case errors.As(err, &timeout) && timeout.Timeout() && !x.wrote():
		x.expired = TimeoutConnect
		t.fail(Timeout, "", at)
	case strings.Contains(text, "malformed"), strings.Contains(text, "invalid byte in chunk"),
		strings.Contains(text, "transfer encoding"), strings.Contains(text, "line too long"),
		strings.Contains(text, "headers exceeded"), strings.HasPrefix(text, "gzip:"), strings.HasPrefix(text, "flate:"):
		t.fail(Protocol, text, at)
	default:
		t.fail(Transport, text, at)
	}
}
