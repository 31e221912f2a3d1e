package admission

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Two places and one to wait: of six requests at once three are let through, never more than two at
// a time, and three are refused at once with a Retry-After.
func TestLimits(t *testing.T) {
	release, arrived := make(chan struct{}), make(chan struct{}, 6)
	var now atomic.Int64
	var tooMany atomic.Bool
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if now.Add(1) > 2 {
			tooMany.Store(true)
		}
		arrived <- struct{}{}
		<-release
		now.Add(-1)
	}))
	defer target.Close()
	p, err := New(target.URL, Limits{MaxConcurrency: 2, QueueCap: 1, QueueTimeout: time.Minute, RetryAfter: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	defer front.Close()
	statuses := make(chan int, 6)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			resp, err := http.Get(front.URL)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); resp.StatusCode == 503 && (err != nil || after < 3 || after > 6) {
				t.Errorf("Retry-After %q", resp.Header.Get("Retry-After"))
			}
			statuses <- resp.StatusCode
		})
	}
	for range 3 { // the refused ones don't wait for anybody
		if s := <-statuses; s != http.StatusServiceUnavailable {
			t.Errorf("status %d before anything was released", s)
		}
	}
	for range 2 { // two are at the target together, however long they take to get there
		<-arrived
	}
	close(release)
	all.Wait()
	for range 3 {
		if s := <-statuses; s != http.StatusOK {
			t.Errorf("status %d", s)
		}
	}
	if tooMany.Load() {
		t.Error("more than two at once")
	}
}

// Who waits longer than the limit is refused; without a time to wait there is no queue.
func TestQueueTimeout(t *testing.T) {
	for _, wait := range []time.Duration{0, 20 * time.Millisecond} {
		p, err := New("http://127.0.0.1:1", Limits{MaxConcurrency: 1, QueueCap: 5, QueueTimeout: wait})
		if err != nil {
			t.Fatal(err)
		}
		p.places <- struct{}{}
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
		if rec.Code != http.StatusServiceUnavailable || p.waiting.Load() != 0 {
			t.Errorf("wait %s: status %d, %d still waiting", wait, rec.Code, p.waiting.Load())
		}
	}
	if _, err := New("http://127.0.0.1:1", Limits{}); err == nil {
		t.Error("no concurrency at all was accepted")
	}
}
