package wire

import (
	"bytes"
	"time"

	"firstbreach/loadgen/arrival"
)

// take decodes the bytes of the answer that one read of the connection brought, and moves the phase
// on.
//
// When the reader was late, several segments waited together and the kernel kept the last one's
// stamp: it holds for the last event of the read, and the ones before came at some time from
// s.Earliest on. They are decoded with both ends of that interval.
//
// Not so at the end of a stream: servers send the finish event, usage and [DONE] right behind the last
// text, often in segments of their own, and a client that is in time reads them together. There the stamp
// stands for the text too, unless the client is seen to lag. x.mu is held.
func (x *exchange) take(b []byte, s arrival.Stamp) {
	t := &x.body.tally
	events, chunks := t.events, t.chunks
	x.taken = s.At
	late := 0
	switch last := lastEvent(b); {
	case s.Earliest.IsZero() || x.conn == nil:
		x.body.take(b, s.At)
	case s.Source != arrival.SourceKernel:
		x.decode(b, s.At, s.Earliest)
		late = t.chunks - chunks
	case s.Full && x.conn.Late(max(2, eventsIn(b))):
		x.decode(b, s.At, s.Earliest)
		late = t.chunks - chunks
	case !s.Full && last > 0 && x.conn.Late(eventsIn(b)):
		x.decode(b[:last], s.At, s.Earliest)
		before := t.chunks
		x.body.take(b[last:], s.At)
		if t.chunks > before {
			late = before - chunks
		} else {
			// What followed the last text was usage or the end of the stream: no text was read later than
			// the next one came.
			late = max(0, before-chunks-1)
			if before-chunks <= 1 && s.Returned.Sub(s.At) < lagging {
				t.exact(s.At)
			}
		}
	default:
		x.body.take(b, s.At)
	}
	t.note(t.chunks-chunks, late, s)
	x.c.reads.add(t.chunks-chunks, late, s)
	if t.events != events {
		x.active = s.At
	}
	x.advance()
}

// decode has bytes taken that came at some time between the two given.
func (x *exchange) decode(b []byte, latest, earliest time.Time) {
	x.body.tally.earliest = earliest
	x.body.take(b, latest)
	x.body.tally.earliest = time.Time{}
}

// advance moves the phase on by what the answer has come to. x.mu is held.
func (x *exchange) advance() {
	t := &x.body.tally
	switch {
	case t.settled():
		x.enter(draining)
	case x.phase < streaming && (!t.firstText.IsZero() || !t.finished.IsZero()):
		x.enter(streaming)
	}
}

// lastEvent is where the last event or line of a read begins; 0 when there is only one, or a part of one.
func lastEvent(b []byte) int {
	b = trimLineEnds(b)
	// One event a read is the rule, and looking from the front is much quicker.
	if bytes.IndexByte(b, '\n') >= 0 {
		return bytes.LastIndexByte(b, '\n') + 1
	}
	if bytes.IndexByte(b, '\r') >= 0 {
		return bytes.LastIndexByte(b, '\r') + 1
	}
	return 0
}

// eventsIn is how many runs of lines, with blank ones between them, a read has: its events, whole and
// in part; in NDJSON, where no line is blank, its lines.
func eventsIn(b []byte) int {
	b = trimLineEnds(b)
	n := 1
	if blank := bytes.Count(b, []byte("\n\n")) + bytes.Count(b, []byte("\n\r\n")) + bytes.Count(b, []byte("\r\r")); blank > 0 {
		return n + blank
	}
	return n + max(bytes.Count(b, []byte("\n")), bytes.Count(b, []byte("\r")))
}

func trimLineEnds(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}
