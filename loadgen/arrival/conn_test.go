package arrival

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStampsAreTakenAtTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		c := Wrap(client)
		if !c.Last().At.IsZero() {
			t.Fatal("a fresh connection has a stamp")
		}
		start := time.Now()
		go func() {
			time.Sleep(30 * time.Millisecond)
			_, _ = server.Write([]byte("first"))
			time.Sleep(70 * time.Millisecond)
			_, _ = server.Write([]byte("second"))
			server.Close()
		}()
		buf := make([]byte, 64)
		for _, want := range []time.Duration{30 * time.Millisecond, 100 * time.Millisecond} {
			if _, err := c.Read(buf); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond) // what is done after the read must not move the stamp
			s := c.Last()
			if got := s.At.Sub(start); got != want || s.Source != SourceRead {
				t.Errorf("stamp %v from %q, want %v from read", got, s.Source, want)
			}
		}
		before := c.Last()
		if _, err := c.Read(buf); err != io.EOF {
			t.Fatalf("error %v, want EOF", err)
		}
		if c.Last() != before {
			t.Error("a read that returned nothing moved the stamp")
		}
	})
}

func TestWroteIsTheEntryOfTheLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		c := Wrap(client)
		start := time.Now()
		go func() {
			buf := make([]byte, 64)
			for {
				time.Sleep(40 * time.Millisecond) // a peer that is slow to take the bytes
				if _, err := server.Read(buf); err != nil {
					return
				}
			}
		}()
		_, _ = c.Write([]byte("head")) // returns at 40 ms
		_, _ = c.Write([]byte("body")) // is entered at 40 ms, returns at 80 ms
		at, n := c.Wrote()
		if got := at.Sub(start); got != 40*time.Millisecond || n != 8 {
			t.Errorf("wrote %d bytes, last entered at %v; want 8 at 40ms", n, got)
		}
		server.Close()
		time.Sleep(time.Second)
	})
}

func TestOnWaitRunsBeforeTheRead(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	go func() { _, _ = server.Write([]byte("ab")); server.Close() }()
	c := Wrap(client)
	var waits []Stamp
	c.OnWait(func(Stamp) { t.Error("a hook that was replaced ran") })()
	replaced := c.OnWait(func(Stamp) { t.Error("a hook that was replaced ran") })
	stop := c.OnWait(func(s Stamp) { waits = append(waits, s) })
	replaced()
	buf := make([]byte, 1)
	_, _ = c.Read(buf)
	first := c.Last()
	_, _ = c.Read(buf)
	stop()
	_, _ = c.Read(buf)
	if len(waits) != 2 || !waits[0].At.IsZero() || waits[1] != first {
		t.Errorf("waits %v, want one with no stamp and one with %v", waits, first)
	}
}

func TestFromLooksThroughLayers(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	c := Wrap(a)
	if Wrap(c) != c {
		t.Error("wrapped twice")
	}
	if From(c) != c || From(tls.Client(c, &tls.Config{ServerName: "x"})) != c {
		t.Error("not found")
	}
	if From(b) != nil || From(nil) != nil {
		t.Error("found one where there is none")
	}
}

func TestDialerServesATransport(t *testing.T) {
	for name, start := range map[string]func(http.Handler) *httptest.Server{"plain": httptest.NewServer, "tls": httptest.NewTLSServer} {
		t.Run(name, func(t *testing.T) {
			srv := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "hello")
			}))
			defer srv.Close()
			tr := srv.Client().Transport.(*http.Transport).Clone()
			tr.DialContext = (&Dialer{}).DialContext
			defer tr.CloseIdleConnections()
			var conn *Conn
			req, err := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader("ping"))
			if err != nil {
				t.Fatal(err)
			}
			trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { conn = From(i.Conn) }}
			resp, err := tr.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if conn == nil {
				t.Fatal("no Conn below the transport's connection")
			}
			at, n := conn.Wrote()
			if n == 0 || conn.Last().At.Before(at) {
				t.Errorf("wrote %d bytes at %v, last read %v", n, at, conn.Last().At)
			}
		})
	}
}
