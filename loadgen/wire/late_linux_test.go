//go:build linux && (amd64 || arm64)

package wire

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// writeParts writes each part in a segment of its own.
func writeParts(w http.ResponseWriter, parts []string, gap time.Duration) {
	for i, p := range parts {
		if i > 0 {
			time.Sleep(gap)
		}
		_, _ = w.Write([]byte(p))
		w.(http.Flusher).Flush()
	}
}

func content(word string) string {
	return `data: {"choices":[{"index":0,"delta":{"content":"` + word + `"}}]}` + "\n\n"
}

const stopAndDone = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + "data: [DONE]\n\n"

// dictated is a handler that writes each part when it is told to, and notes when that was.
type dictated struct {
	parts chan string
	wrote chan [2]time.Time // before and after
}

func newDictated() dictated { return dictated{make(chan string), make(chan [2]time.Time)} }

func (d dictated) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	for p := range d.parts {
		from := time.Now()
		writeParts(w, []string{p}, 0)
		d.wrote <- [2]time.Time{from, time.Now()}
	}
}

// write has a part written, in a segment of its own.
func (d dictated) write(part string) [2]time.Time {
	d.parts <- part
	return <-d.wrote
}

// TestLateReadIsAnInterval has the client read only once two chunks of an answer are there: the second
// one's stamp is exact, the first is known as an interval. What follows is written when the client has
// read what was before it, so nothing here depends on how busy the machine is.
func TestLateReadIsAnInterval(t *testing.T) {
	const gap = 20 * time.Millisecond
	for name, start := range map[string]func(http.Handler) *httptest.Server{"plain": httptest.NewServer, "tls": httptest.NewTLSServer} {
		t.Run(name, func(t *testing.T) {
			server := newDictated()
			srv := start(server)
			defer srv.Close()
			o := Options{BaseURL: srv.URL}
			if cert := srv.Certificate(); cert != nil {
				pool := x509.NewCertPool()
				pool.AddCert(cert)
				o.TLS = &tls.Config{RootCAs: pool}
			}
			c := newTestClient(t, "openai-chat", o)
			defer c.CloseIdle()
			ctx, x := newExchange(t.Context(), c)
			defer x.close()
			resp, err := x.roundTrip(ctx, []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(gap)
			first := server.write(content("a"))
			time.Sleep(gap)
			second := server.write(content("b"))
			read := make(chan struct{})
			go func() {
				defer close(read)
				x.readAnswer(resp) // a and b wait together
			}()
			for i, part := range []string{content("c"), content("d"), stopAndDone} {
				await(t, "what was written is read", func() bool { return c.Reads().Chunks >= int64(2+i) })
				server.write(part)
			}
			await(t, "the end of the stream is read", func() bool { // before the end of the body comes
				x.mu.Lock()
				defer x.mu.Unlock()
				return x.phase == draining
			})
			close(server.parts)
			<-read
			resp.Body.Close()
			r := x.result()
			if r.Outcome != OK || r.Chunks != 4 {
				t.Fatalf("%+v", r)
			}
			if r.StampSource != "kernel" || r.ReadStamped != 0 || r.LateChunks != 1 {
				t.Errorf("source %s, %d read stamps, %d late; want kernel, 0, 1", r.StampSource, r.ReadStamped, r.LateChunks)
			}
			came, later := first[1].Sub(r.SentAt), second[0].Sub(r.SentAt) // a at the latest, b at the earliest
			if *r.TTFTMin > came || *r.TTFT < later || *r.TTFT > second[1].Sub(r.SentAt) {
				t.Errorf("TTFT from %v to %v; a was there at %v, b from %v on", *r.TTFTMin, *r.TTFT, came, later)
			}
			if *r.E2E != *r.E2EMin {
				t.Errorf("E2E from %v to %v: the last read was not late", *r.E2EMin, *r.E2E)
			}
			if r.GapsMin == nil || r.GapsMin[0] != 0 || r.Gaps[0] < gap || r.Gaps[2] != r.GapsMin[2] {
				t.Errorf("gaps %v, at least %v", r.Gaps, r.GapsMin)
			}
			if n := c.Reads(); n.Chunks != 4 || n.Late != 1 || n.Unstamped != 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// await waits until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// TestServerThatBatchesIsNotLate: several events of one write came together.
func TestServerThatBatchesIsNotLate(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		writeParts(w, []string{content("a") + content("b"), content("c") + content("d"), stopAndDone}, 30*time.Millisecond)
	}))
	defer srv.Close()
	c := newTestClient(t, "openai-chat", Options{BaseURL: srv.URL})
	defer c.CloseIdle()
	for range 3 { // over one connection
		r := c.Do(t.Context(), []byte("{}"))
		if r.Outcome != OK || r.LateChunks != 0 || *r.TTFT != *r.TTFTMin || r.GapsMin != nil || r.Gaps[0] != 0 || r.Gaps[2] != 0 {
			t.Errorf("%d late, TTFT from %v to %v, gaps %v, at least %v", r.LateChunks, *r.TTFTMin, *r.TTFT, r.Gaps, r.GapsMin)
		}
	}
}

// TestEndOfStreamIsExact: what follows the last text comes right behind it in segments of its own. A
// client that reads them all together isn't late.
func TestEndOfStreamIsExact(t *testing.T) {
	const gap = 20 * time.Millisecond
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		writeParts(w, []string{content("a"), content("b"), content("c")}, gap)
		writeParts(w, []string{`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n",
			`data: {"choices":[],"usage":{"completion_tokens":3}}` + "\n\n", "data: [DONE]\n\n"}, 0)
	}))
	defer srv.Close()
	c := newTestClient(t, "openai-chat", Options{BaseURL: srv.URL})
	defer c.CloseIdle()
	const n = 20
	exact := 0
	for range n {
		r := c.Do(t.Context(), []byte("{}"))
		if r.Outcome != OK || r.Chunks != 3 || *r.E2EMin > *r.E2E || *r.TPOTMin > *r.TPOT {
			t.Fatalf("%+v", r)
		}
		if *r.E2E == *r.E2EMin && *r.TPOT == *r.TPOTMin && r.LateChunks == 0 {
			exact++
		}
	}
	if exact < n/2 { // on a busy machine the client may lag
		t.Errorf("%d of %d ends of streams are known exactly", exact, n)
	}
}
