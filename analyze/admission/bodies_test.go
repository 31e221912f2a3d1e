package admission

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A large body, with or without a length said before, and a streamed answer to it pass byte for byte;
// each piece of the answer arrives before the next one is written.
func TestBodiesPassWhole(t *testing.T) {
	sent := make([]byte, 8<<20)
	for i := range sent {
		sent[i] = byte(i * 31 >> 3)
	}
	const pieces = 16
	size := len(sent) / pieces
	for _, length := range []int64{int64(len(sent)), -1} {
		arrived := make(chan struct{})
		target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got, err := io.ReadAll(r.Body)
			if err != nil || sha256.Sum256(got) != sha256.Sum256(sent) {
				t.Errorf("the target got %d of %d bytes, or others (%v)", len(got), len(sent), err)
			}
			w.Header().Set("X-Target", "yes")
			w.WriteHeader(http.StatusAccepted)
			for i := range pieces {
				if _, err := w.Write(got[i*size : (i+1)*size]); err != nil {
					t.Error(err)
				}
				w.(http.Flusher).Flush()
				select {
				case <-arrived:
				case <-time.After(30 * time.Second):
					t.Error("a piece was held back until the next one")
					return
				}
			}
		}))
		defer target.Close()
		front := frontOf(t, target.URL)
		req, err := http.NewRequest(http.MethodPost, front, io.NopCloser(bytes.NewReader(sent)))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted || resp.Header.Get("X-Target") != "yes" {
			t.Errorf("status %d, header %q", resp.StatusCode, resp.Header.Get("X-Target"))
		}
		got := make([]byte, len(sent))
		for i := range pieces {
			if _, err := io.ReadFull(resp.Body, got[i*size:(i+1)*size]); err != nil {
				t.Fatalf("length %d, piece %d: %v", length, i, err)
			}
			arrived <- struct{}{}
		}
		if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 || !bytes.Equal(got, sent) {
			t.Errorf("length %d: other bytes came back, or %d more (%v)", length, len(rest), err)
		}
	}
}

// An answer that the target breaks off is broken off for the client too, never passed off as whole.
func TestBrokenAnswerIsBroken(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer target.Close()
	resp, err := http.Get(frontOf(t, target.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q read as a whole answer (%v)", got, err)
	}
}

func frontOf(t *testing.T, target string) string {
	t.Helper()
	p, err := New(target, Limits{MaxConcurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return front.URL
}
