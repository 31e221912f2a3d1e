//go:build linux && (amd64 || arm64)

package arrival

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// pair is a TCP connection over loopback, its client end wrapped.
func pair(t *testing.T) (client *Conn, server *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := NewDialer(net.Dialer{})
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*Conn), s.(*net.TCPConn)
}

func write(t *testing.T, c net.Conn, text string) (before, after time.Time) {
	t.Helper()
	before = time.Now()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return before, time.Now()
}

func read(t *testing.T, c net.Conn, size int) string {
	t.Helper()
	b := make([]byte, size)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// within allows for what the clocks may differ by when both are read.
func within(at, from, to time.Time) bool {
	return !at.Before(from.Add(-clockStep)) && !at.After(to.Add(clockStep))
}

func TestKernelStampIsOfTheArrival(t *testing.T) {
	c, s := pair(t)
	for range 5 {
		before, after := write(t, s, "data: x\n\n")
		time.Sleep(20 * time.Millisecond) // a reader that is late
		if got := read(t, c, 64); got != "data: x\n\n" {
			t.Fatalf("read %q", got)
		}
		last := c.Last()
		if last.Source != SourceKernel {
			t.Fatalf("no kernel stamp: %+v", last)
		}
		if !within(last.At, before, after) {
			t.Errorf("stamp %v after the write began, which took %v", last.At.Sub(before), after.Sub(before))
		}
		if lag := last.Returned.Sub(last.At); lag < 15*time.Millisecond {
			t.Errorf("the read came %v after the arrival, want 20ms", lag)
		}
		if last.Earliest.After(last.At) || last.Full {
			t.Errorf("%+v", last)
		}
	}
}

// TestLateReadIsKnown has segments wait together: the kernel keeps the last one's stamp only.
func TestLateReadIsKnown(t *testing.T) {
	c, s := pair(t)
	write(t, s, "start")
	read(t, c, 64)
	begun := time.Now()
	first, _ := write(t, s, "data: 1\n\n")
	time.Sleep(5 * time.Millisecond)
	last, sent := write(t, s, "data: 2\n\n")
	time.Sleep(5 * time.Millisecond)
	if got := read(t, c, 64); got != "data: 1\n\ndata: 2\n\n" {
		t.Fatalf("read %q", got)
	}
	stamp := c.Last()
	if !within(stamp.At, last, sent) {
		t.Errorf("stamp %v after the last write", stamp.At.Sub(last))
	}
	if stamp.Earliest.After(first.Add(clockStep)) || stamp.Earliest.Before(begun.Add(-time.Second)) {
		t.Errorf("earliest %v after the first write began", stamp.Earliest.Sub(first))
	}
	if !c.Late(2) {
		t.Error("two segments read together were not late")
	}
	if c.Late(1) {
		t.Error("a read with one event was late")
	}
	write(t, s, "data: 3\n\ndata: 4\n\n")
	read(t, c, 64)
	if c.Late(2) {
		t.Error("two events of one write were late")
	}
	write(t, s, "data: 5\n\n")
	read(t, c, 64)
	write(t, s, "data: 6\n\ndata: 7\n\n")
	read(t, c, 64)
	if c.Late(2) {
		t.Error("two events of one write, after a read that wasn't asked about, were late")
	}
}

// TestWaitingProvesWhenNothingWasThere: where the read found nothing, all of it came after.
func TestWaitingProvesWhenNothingWasThere(t *testing.T) {
	c, s := pair(t)
	write(t, s, "x")
	read(t, c, 8)
	time.Sleep(20 * time.Millisecond)
	from := time.Now()
	go func() {
		time.Sleep(20 * time.Millisecond)
		_, _ = io.WriteString(s, "y")
	}()
	read(t, c, 8)
	if e := c.Last().Earliest; !within(e, from, from.Add(15*time.Millisecond)) {
		t.Errorf("earliest %v after the read began", e.Sub(from))
	}
}

// TestFullReadKeepsItsBound: a buffer that is too small splits what waits together.
func TestFullReadKeepsItsBound(t *testing.T) {
	c, s := pair(t)
	first, _ := write(t, s, "1234")
	time.Sleep(5 * time.Millisecond)
	write(t, s, "5678")
	for _, want := range []string{"12345", "678"} {
		if got := read(t, c, 5); got != want {
			t.Fatalf("read %q, want %q", got, want)
		}
		last := c.Last()
		if last.Full != (want == "12345") {
			t.Errorf("%q: full %v", want, last.Full)
		}
		if last.Earliest.After(first.Add(clockStep)) {
			t.Errorf("%q: earliest %v after the first write began", want, last.Earliest.Sub(first))
		}
		if !c.Late(2) {
			t.Errorf("%q: not late", want)
		}
	}
}

func TestErrorsAreThoseOfAConn(t *testing.T) {
	c, s := pair(t)
	b := make([]byte, 8)
	if err := c.SetReadDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := c.Read(b); !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
	_ = c.SetReadDeadline(time.Time{})
	write(t, s, "x")
	read(t, c, 8)
	_ = s.CloseWrite()
	if n, err := c.Read(b); n != 0 || err != io.EOF {
		t.Errorf("end: %d, %v", n, err)
	}
	if n, err := c.Read(nil); n != 0 {
		t.Errorf("empty buffer: %d, %v", n, err)
	}

	c, s = pair(t)
	_ = s.SetLinger(0)
	s.Close()
	if _, err := c.Read(b); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", err)
	}

	c, _ = pair(t)
	go func() { time.Sleep(5 * time.Millisecond); c.Close() }()
	if _, err := c.Read(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestAllBytesCome compares what is read with what was written, in sizes that split everywhere.
func TestAllBytesCome(t *testing.T) {
	c, s := pair(t)
	var want []byte
	for i := range 2000 {
		want = fmt.Appendf(want, "event %d\n", i)
	}
	go func() {
		for b := want; len(b) > 0; {
			n := min(len(b), 1+len(b)%997)
			_, _ = s.Write(b[:n])
			b = b[n:]
		}
		s.Close()
	}()
	got, err := io.ReadAll(c)
	if err != nil || string(got) != string(want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
}

// TestReadAllocatesNothing: a read is what every chunk of every stream costs.
func TestReadAllocatesNothing(t *testing.T) {
	c, s := pair(t)
	b := make([]byte, 64)
	msg := []byte("data: x\n\ndata: y\n\n")
	if n := testing.AllocsPerRun(100, func() {
		_, _ = s.Write(msg)
		_, _ = c.Read(b)
		c.Late(2)
	}); n > 0 {
		t.Errorf("%v allocations a read", n)
	}
}
