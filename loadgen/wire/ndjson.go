package wire

import (
	"bytes"
	"time"
)

// ndjsonDecoder decodes one JSON value a line from the reads that brought them, split anywhere.
// A line belongs to the read that completed it. Blank lines are skipped; two values on one line
// are left to the parser, which refuses them.
type ndjsonDecoder struct {
	emit func(line []byte, at time.Time)

	line    []byte
	started bool
}

// feed decodes the bytes of one read. The error is final.
func (d *ndjsonDecoder) feed(b []byte, at time.Time) error {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			if len(d.line)+len(b) > maxEvent {
				return errTooLarge
			}
			d.line = append(d.line, b...)
			return nil
		}
		line := b[:end]
		if len(d.line) > 0 {
			if len(d.line)+end > maxEvent {
				return errTooLarge
			}
			d.line = append(d.line, line...)
			line = d.line
		}
		d.take(line, at)
		d.line = d.line[:0]
		b = b[end+1:]
	}
	return nil
}

// flush ends the stream: a last line counts without its line end too.
func (d *ndjsonDecoder) flush(at time.Time) {
	if len(d.line) > 0 {
		d.take(d.line, at)
		d.line = d.line[:0]
	}
}

func (d *ndjsonDecoder) take(line []byte, at time.Time) {
	if !d.started {
		d.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if line = bytes.TrimSpace(line); len(line) > 0 {
		d.emit(line, at)
	}
}
