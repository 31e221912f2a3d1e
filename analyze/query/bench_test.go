package query_test

import (
	"bytes"
	"context"
	"io"
	"math"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	"golang.org/x/sync/errgroup"

	"firstbreach/analyze/query"
	"firstbreach/analyze/report"
	"firstbreach/analyze/verdict"
)

// BenchmarkReport states what a report costs, from the first query to the last file, as a ratio to the bare
// minimum: the same HTTP requests, sent in the same way, with the bodies read and thrown away.
func BenchmarkReport(b *testing.B) {
	for _, c := range []struct {
		name          string
		steps, rounds int
	}{{"4x3", 4, 3}, {"50x10", 50, 10}} {
		b.Run(c.name, func(b *testing.B) { benchmarkReport(b, c.steps, c.rounds) })
	}
}

func benchmarkReport(b *testing.B, steps, rounds int) {
	w := newWorld(b)
	spec := ladder(steps, rounds)
	w.write(spec)
	length := float64(6 * steps * rounds)
	w.engineAndMachine("target", length)
	rec := &recorder{next: api.DefaultRoundTripper, batches: map[context.Context]int{}}
	client, err := api.NewClient(api.Config{Address: w.serve(), RoundTripper: rec})
	if err != nil {
		b.Fatal(err)
	}
	o := query.Options{Client: client, SLO: sloFile(b), Manifest: w.manifest(spec)}
	dir := b.TempDir()
	once := func() {
		run, _, err := query.Load(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		if err := report.New(*run, verdict.Judge(*run), report.Meta{}).WriteDir(dir); err != nil {
			b.Fatal(err)
		}
	}
	rec.on = true
	once()
	rec.on = false

	reporting, bare := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	var reportCPU, bareCPU time.Duration
	for i := 0; b.Loop(); i++ {
		// Each goes first every other time, and the best time of each counts: whatever else runs on
		// the machine disturbs one run more than the other, and never makes one faster.
		for _, load := range []bool{i%2 == 0, i%2 == 1} {
			runtime.GC()
			start, cpu := time.Now(), processorTime(b)
			if load {
				once()
				reporting = min(reporting, time.Since(start))
				reportCPU += processorTime(b) - cpu
			} else {
				rec.replay(b)
				bare = min(bare, time.Since(start))
				bareCPU += processorTime(b) - cpu
			}
		}
	}
	b.ReportMetric(reporting.Seconds()/bare.Seconds(), "x-bare-requests")
	// Server and client are one process here, so that its processor time is that of both: steadier
	// than the clock on a machine that does other things as well.
	b.ReportMetric(reportCPU.Seconds()/bareCPU.Seconds(), "x-bare-cpu")
	b.ReportMetric(float64(len(rec.requests)), "requests/op")
	b.ReportMetric(float64(rec.bytes), "body-bytes/op")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(reporting.Seconds(), "s/report")
}

// processorTime is what the process has used so far.
func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// ladder is a run of many short steps, with about the edges that loadgen has.
func ladder(steps, rounds int) runSpec {
	r := runSpec{
		id: "bench", native: true, classic: true, threshold: 1,
		edges: []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 60},
	}
	at := 0.25
	for round := range rounds {
		for step := range steps {
			r.steps = append(r.steps, stepSpec{
				phase: "ramp", round: round + 1, step: step + 1, conc: step + 1, start: at, length: 5,
				ttft: spread(100, step%10), failed: map[string]int{"rejected": step % 3},
			})
			at += 6
		}
	}
	return r
}

// recorder keeps the requests of one Load, by the batch in which they were sent: every batch has a
// context of its own.
type recorder struct {
	next http.RoundTripper

	mu       sync.Mutex
	on       bool
	batches  map[context.Context]int
	requests []recorded
	bytes    int64
}

type recorded struct {
	batch  int
	method string
	url    string
	header http.Header
	body   []byte
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	if r.on {
		var body []byte
		if req.Body != nil {
			body, _ = io.ReadAll(req.Body)
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		if _, ok := r.batches[req.Context()]; !ok {
			r.batches[req.Context()] = len(r.batches)
		}
		r.requests = append(r.requests, recorded{r.batches[req.Context()], req.Method, req.URL.String(), req.Header.Clone(), body})
	}
	r.mu.Unlock()
	return r.next.RoundTrip(req)
}

// replay sends the requests again, batch after batch, as many at a time as Load does.
func (r *recorder) replay(b testing.TB) {
	client := &http.Client{Transport: r.next}
	r.bytes = 0
	for batch := range len(r.batches) {
		var g errgroup.Group
		g.SetLimit(query.DefaultParallel)
		for _, q := range r.requests {
			if q.batch != batch {
				continue
			}
			g.Go(func() error {
				req, err := http.NewRequestWithContext(b.Context(), q.method, q.url, bytes.NewReader(q.body))
				if err != nil {
					return err
				}
				req.Header = q.header.Clone()
				resp, err := client.Do(req)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				n, err := io.Copy(io.Discard, resp.Body)
				r.mu.Lock()
				r.bytes += n
				r.mu.Unlock()
				return err
			})
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}
