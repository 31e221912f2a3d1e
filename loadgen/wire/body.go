package wire

import (
	"bytes"
	"time"
)

// body decodes the body of an answer of status 200, in whatever shape it comes.
type body struct {
	dialect     Dialect
	tap         Tap // nil but for measurements of the client
	contentType string

	mode  bodyMode
	head  []byte // bytes by which the mode could not be told yet
	whole []byte // of modeJSON
	bytes int64
	tail  int64 // bytes after the end of the answer
	ended bool
	last  bool // the stream has ended and its unfinished rest is being looked at
	alone bool // the answer was not streamed

	sse    sseDecoder
	ndjson ndjsonDecoder
	event  event
	tally  tally
}

type bodyMode int

const (
	modeUnknown bodyMode = iota
	modeSSE
	modeNDJSON
	modeJSON    // one object: the server did not stream
	modeRefused // nothing that can be an answer
)

func (b *body) init(d Dialect) {
	b.dialect = d
	b.sse.emit = b.onEvent
	b.ndjson.emit = b.onLine
}

// take decodes the bytes of one read.
func (b *body) take(p []byte, at time.Time) {
	b.bytes += int64(len(p))
	if b.tally.settled() {
		b.tail += int64(len(p))
	}
	if b.mode == modeUnknown {
		if len(b.head) > 0 {
			b.head = append(b.head, p...)
			p = b.head
		}
		if b.mode = b.sniff(p); b.mode == modeUnknown {
			b.head = append(b.head[:0], p...)
			return
		}
		b.checkMode(at)
	}
	var err error
	switch b.mode {
	case modeSSE:
		err = b.sse.feed(p, at)
	case modeNDJSON:
		err = b.ndjson.feed(p, at)
	case modeJSON:
		if b.whole = append(b.whole, p...); len(b.whole) > maxEvent {
			err = errTooLarge
		}
	}
	if err != nil {
		b.mode = modeRefused
		b.tally.fail(Protocol, err.Error(), at)
	}
}

// sniff tells the shape of a body by its first byte, which is surer than its content type.
func (b *body) sniff(p []byte) bodyMode {
	const mark = "\xef\xbb\xbf"
	if len(p) < len(mark) && bytes.HasPrefix([]byte(mark), p) {
		return modeUnknown
	}
	rest := bytes.TrimLeft(bytes.TrimPrefix(p, []byte(mark)), " \t\r\n")
	if len(rest) == 0 && len(p) < maxErrorBody {
		return modeUnknown
	}
	object := len(rest) > 0 && rest[0] == '{'
	switch {
	case b.contentType == "text/html", len(rest) > 0 && rest[0] == '<':
		return modeRefused
	case b.dialect.framing() == framedNDJSON && object:
		return modeNDJSON
	case b.dialect.framing() == framedNDJSON:
		return modeRefused
	case object:
		return modeJSON
	}
	return modeSSE
}

// checkMode notes a shape that doesn't fit.
func (b *body) checkMode(at time.Time) {
	switch {
	case b.mode == modeRefused && b.dialect.framing() == framedNDJSON && b.contentType != "text/html":
		b.tally.fail(Protocol, "the body is not NDJSON: does this URL speak the API "+b.dialect.Name()+"?", at)
	case b.mode == modeRefused:
		b.tally.fail(Protocol, "the body is HTML, not a stream: does this URL speak the API "+b.dialect.Name()+"?", at)
	case b.mode == modeSSE && b.contentType != "text/event-stream":
		b.tally.warn("content_type")
	}
}

// end is called after a clean EOF; at is the stamp of the last bytes.
func (b *body) end(at time.Time) {
	b.last = true
	t := &b.tally
	switch b.mode {
	case modeUnknown:
		t.fail(Protocol, "status 200 with an empty body", at)
	case modeSSE:
		if err := b.sse.flush(at); err != nil {
			t.fail(Protocol, err.Error(), at)
		}
		if t.events == 0 && !t.done && b.contentType != "text/event-stream" {
			t.fail(Protocol, "the body is not a stream of events", at)
		}
	case modeNDJSON:
		b.ndjson.flush(at)
		b.alone = b.contentType == "application/json" && t.events == 1 && t.done
	case modeJSON:
		b.last = false // a whole body is not an unfinished rest
		b.alone = true
		b.onObject(b.whole, false, at)
		if t.failure == nil && len(t.choices) == 0 {
			t.fail(Protocol, "the body is JSON without an answer", at)
		}
	}
	if b.alone {
		t.unstream()
	}
}

// onEvent takes one server-sent event.
func (b *body) onEvent(e sseEvent, at time.Time) {
	data := bytes.TrimSpace(e.data)
	switch {
	case len(data) == 0, data[0] == ':':
		// Keep-alives that proxies put into data lines.
	case string(data) == "[DONE]":
		b.tally.done = true
	default:
		b.onObject(data, e.field || e.name == "error", at)
	}
}

// onLine takes one line of NDJSON.
func (b *body) onLine(line []byte, at time.Time) { b.onObject(line, false, at) }

// onObject takes one object of the stream; isError is true where the framing says that it is one.
func (b *body) onObject(data []byte, isError bool, at time.Time) {
	t := &b.tally
	if t.settled() {
		t.late++
		return
	}
	valid := b.dialect.parse(data, &b.event)
	if !valid && !isError {
		if !b.last { // an unfinished rest is a truncated stream, not a broken one
			t.fail(Protocol, "not JSON: "+string(data[:min(len(data), maxErrorText)]), at)
		}
		return
	}
	if isError || b.event.isError {
		if t.firstEvent.IsZero() {
			t.firstEvent = at
		}
		e := readError(data)
		t.fail(e.inBand(), e.message, at)
		return
	}
	chunks := t.chunks
	t.add(&b.event, at)
	if b.tap != nil && t.chunks > chunks {
		b.tap(data, at, t.min(at))
	}
}

// warnOK adds the warnings of an answer that is complete.
func (b *body) warnOK() {
	t := &b.tally
	switch {
	case b.alone:
		t.warn("nonstream")
	case b.dialect.framing() == framedSSE && !t.done:
		t.warn("no_done")
	}
	if t.chunks == 0 && !b.alone {
		t.warn("empty")
	}
	if t.late > 0 {
		t.warn("data_after_done")
	}
	if t.outputTokens > 0 && t.outputTokens < t.chunks {
		t.warn("usage_below_chunks")
	}
}
