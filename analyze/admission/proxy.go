package admission

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// Limits are what the proxy applies.
type Limits struct {
	MaxConcurrency int           // requests at the target at once
	QueueCap       int           // requests that wait for a place
	QueueTimeout   time.Duration // for which one waits at most; 0: not at all
	RetryAfter     time.Duration // what a refused client is told, with up to as much again as jitter
}

// Proxy is an http.Handler in front of one target.
type Proxy struct {
	limits  Limits
	places  chan struct{}
	waiting atomic.Int64
	next    *httputil.ReverseProxy
}

// New makes a proxy before the target at a base URL.
func New(target string, l Limits) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("the target of the admission proxy: %w", err)
	}
	if l.MaxConcurrency < 1 {
		return nil, fmt.Errorf("admission limits need a maximum concurrency of 1 or more, not %d", l.MaxConcurrency)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = l.MaxConcurrency
	transport.DisableCompression = true
	return &Proxy{limits: l, places: make(chan struct{}, l.MaxConcurrency), next: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(u); r.Out.Host = u.Host },
		FlushInterval: -1, // each piece of a stream at once
		Transport:     transport,
		ErrorLog:      log.New(discard{}, "", 0), // the client sees what failed, and counts it
	}}, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// maxBody bounds a request's body, in bytes.
const maxBody = 64 << 20

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The whole body first: an answer that begins while the body is still being passed on makes
	// net/http close it, which breaks the stream off.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the request body can't be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if !p.admit(r.Context()) {
		p.refuse(w)
		return
	}
	defer func() { <-p.places }()
	p.next.ServeHTTP(w, r)
}

// admit takes a place, waiting for one where there is room to.
func (p *Proxy) admit(ctx context.Context) bool {
	select {
	case p.places <- struct{}{}:
		return true
	default:
	}
	if p.limits.QueueTimeout <= 0 || p.waiting.Add(1) > int64(p.limits.QueueCap) {
		if p.limits.QueueTimeout > 0 {
			p.waiting.Add(-1)
		}
		return false
	}
	defer p.waiting.Add(-1)
	timer := time.NewTimer(p.limits.QueueTimeout)
	defer timer.Stop()
	select {
	case p.places <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// refuse answers at once. The jitter keeps those refused together from coming back together.
func (p *Proxy) refuse(w http.ResponseWriter) {
	after := max(1, int(p.limits.RetryAfter.Seconds()))
	w.Header().Set("Retry-After", strconv.Itoa(after+rand.IntN(after+1)))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintln(w, `{"error":{"message":"the service is full; try again later","type":"overloaded","code":503}}`)
}
