package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Ledger writes one line per finished request. Each line is one write to the file, so that what
// was finished is there whatever kills the process. Its methods are called from one goroutine.
type Ledger struct {
	file *os.File
	next int64
	buf  bytes.Buffer
}

// CreateLedger makes a new ledger; an existing one is an error.
func CreateLedger(path string) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create the ledger: %w", err)
	}
	return &Ledger{file: f, next: 1}, nil
}

// Append writes a request's line. A failure (a full disk, as a rule) must end the run: requests
// that aren't in the ledger weren't measured.
func (l *Ledger) Append(step StepID, q Request) error {
	l.buf.Reset()
	enc := json.NewEncoder(&l.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(q.Entry(l.next, step)); err != nil {
		return fmt.Errorf("ledger line %d: %w", l.next, err)
	}
	if _, err := l.file.Write(l.buf.Bytes()); err != nil {
		return fmt.Errorf("write the ledger (free some disk space, or choose another --out): %w", err)
	}
	l.next++
	return nil
}

// Sync makes the ledger survive a crash of the machine as well; called at step edges.
func (l *Ledger) Sync() error {
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("sync the ledger: %w", err)
	}
	return nil
}

// Close closes the file.
func (l *Ledger) Close() error { return l.file.Close() }

// ReadLedger reads a ledger. A torn last line, as a killed process or a full disk leaves it, is
// left out; any other broken line is an error that names it.
func ReadLedger(path string) ([]Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	defer f.Close()
	var entries []Entry
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return entries, nil // whatever is left has no newline: torn
		}
		if err != nil {
			return entries, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return entries, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		entries = append(entries, e)
	}
}
