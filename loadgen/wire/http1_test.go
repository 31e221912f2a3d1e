package wire

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHTTP1Only offers HTTP/2: streams of one connection would share its window and its stamps.
func TestHTTP1Only(t *testing.T) {
	seen := make(chan int, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.ProtoMajor
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, textSSE+finSSE+doneSSE)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	c := newTestClient(t, "openai-chat", Options{BaseURL: srv.URL, TLS: &tls.Config{RootCAs: pool}})
	defer c.CloseIdle()
	if r := c.Do(t.Context(), []byte("{}")); r.Outcome != OK || <-seen != 1 {
		t.Errorf("%s: %s", r.Outcome, r.Error)
	}
}
