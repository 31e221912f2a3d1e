package wire

import (
	"bytes"
	"errors"
	"time"
)

// maxEvent bounds one event of a stream, whatever the server sends.
const maxEvent = 16 << 20

var errTooLarge = errors.New("an event or line of more than 16 MiB")

// sseEvent is one dispatched event. data is valid until the decoder is fed again.
type sseEvent struct {
	name string // of the event field; "" when it had none
	data []byte
	// field is true for data that came in the field "error:", which is not in the standard but
	// was sent by llama.cpp builds of 2025.
	field bool
}

// sseDecoder decodes server-sent events (WHATWG HTML §9.2.6) from the reads that brought them,
// split anywhere. An event belongs to the read that completed it, so emit is called with that
// read's stamp: it is when a user could have seen the text.
type sseDecoder struct {
	emit func(sseEvent, time.Time)

	line     []byte // the beginning of a line whose end has not come yet
	data     []byte // of the event so far; where it is one line of the read being fed, that line itself
	own      []byte // storage of data that outlives a read
	hasData  bool
	name     string
	field    bool
	started  bool // past the place where a byte order mark may be
	skipLF   bool // the line before ended with CR at the end of a read
	comments int
}

// feed decodes the bytes of one read. The error is final.
func (d *sseDecoder) feed(b []byte, at time.Time) error {
	for len(b) > 0 {
		if d.skipLF {
			d.skipLF = false
			if b[0] == '\n' {
				b = b[1:]
				continue
			}
		}
		end, rest := lineEnd(b)
		if end < 0 {
			if len(d.line)+len(d.data)+len(b) > maxEvent {
				return errTooLarge
			}
			d.line = append(d.line, b...)
			break
		}
		d.skipLF = b[end] == '\r' && rest == end+1
		line := b[:end]
		if len(d.line) > 0 {
			d.line = append(d.line, line...)
			line = d.line
		}
		if err := d.take(line, at); err != nil {
			return err
		}
		if len(d.line) > 0 {
			d.keep()
			d.line = d.line[:0]
		}
		b = b[rest:]
	}
	d.keep()
	return nil
}

// keep copies data out of what is about to be overwritten.
func (d *sseDecoder) keep() {
	if d.hasData && len(d.own) == 0 {
		d.own = append(d.own, d.data...)
		d.data = d.own
	}
}

// flush ends the stream: a last line without its line end and an event without its blank line
// are dispatched all the same, because servers forget both after [DONE].
func (d *sseDecoder) flush(at time.Time) error {
	if len(d.line) > 0 {
		if err := d.take(d.line, at); err != nil {
			return err
		}
		d.line = d.line[:0]
	}
	d.dispatch(at)
	return nil
}

// lineEnd returns where the first line of b ends and where the next one begins; end is -1 when
// no line ends in b. A CR that is the last byte ends the line at once: whether an LF follows is
// known only by the next read, and nothing may wait for that.
func lineEnd(b []byte) (end, rest int) {
	lf := bytes.IndexByte(b, '\n')
	head := b
	if lf >= 0 {
		head = b[:lf]
	}
	cr := bytes.IndexByte(head, '\r')
	switch {
	case cr < 0 && lf < 0:
		return -1, 0
	case cr < 0:
		return lf, lf + 1
	case cr+1 == lf:
		return cr, lf + 1
	default:
		return cr, cr + 1
	}
}

// take interprets one line, its end stripped.
func (d *sseDecoder) take(line []byte, at time.Time) error {
	if !d.started {
		d.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if len(line) == 0 {
		d.dispatch(at)
		return nil
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	if len(field) == 0 {
		d.comments++
		return nil
	}
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "data":
		return d.add(value)
	case "error":
		d.field = true
		return d.add(value)
	case "event":
		d.name = string(value[:min(len(value), 64)])
	}
	return nil
}

func (d *sseDecoder) add(value []byte) error {
	if len(d.data)+len(value) > maxEvent {
		return errTooLarge
	}
	if !d.hasData {
		d.data, d.hasData = value, true
		return nil
	}
	d.keep()
	d.own = append(append(d.own, '\n'), value...)
	d.data = d.own
	return nil
}

func (d *sseDecoder) dispatch(at time.Time) {
	if d.hasData {
		d.emit(sseEvent{name: d.name, data: d.data, field: d.field}, at)
	}
	d.data, d.own, d.hasData, d.name, d.field = nil, d.own[:0], false, "", false
}
