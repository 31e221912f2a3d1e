//go:build unix

package sim

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// How many answers the benchmark keeps going at once, and how fast each is.
const (
	benchStreams = 200
	benchStep    = 20 * ms // 50 tokens per second
)

// BenchmarkStreamedEvent gives the CPU time per event of the engine beside that of a bare handler that
// sleeps for a step and writes the same bytes. Both run at the same pace with the same reader, whose
// cost is in both.
func BenchmarkStreamedEvent(b *testing.B) {
	b.Run("engine", func(b *testing.B) {
		cfg := Default()
		cfg.Slots, cfg.PrefillTime, cfg.StepBase = benchStreams, 10*ms, benchStep
		streamEvents(b, func(l net.Listener) { _ = Serve(b.Context(), cfg, l, slog.New(slog.DiscardHandler)) })
	})
	b.Run("bare", func(b *testing.B) {
		srv := &http.Server{Handler: http.HandlerFunc(bareStream)}
		b.Cleanup(func() { srv.Close() })
		streamEvents(b, func(l net.Listener) { _ = srv.Serve(l) })
	})
}

// bareStream writes the bytes of an answer, event by event, on a schedule of its own.
func bareStream(w http.ResponseWriter, r *http.Request) {
	tokens := 0
	if _, err := fmt.Sscan(r.URL.Query().Get("tokens"), &tokens); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	a := &answer{number: 1, model: `"sim"`, created: time.Now()}
	d := openAI{chat: true}
	event := d.token(nil, a, 1)
	start := time.Now()
	for i := range tokens {
		time.Sleep(time.Until(start.Add(time.Duration(i+1) * benchStep)))
		if send(w, out, event) != nil {
			return
		}
	}
}

// streamEvents reads b.N events from a server, over benchStreams connections.
func streamEvents(b *testing.B, serve func(net.Listener)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var readers sync.WaitGroup
	go serve(l) // ends with the listener or the benchmark's context
	defer l.Close()
	tokens := max(2, b.N/benchStreams)
	transport := &http.Transport{MaxIdleConnsPerHost: benchStreams}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	url := fmt.Sprintf("http://%s/v1/chat/completions?tokens=%d", l.Addr(), tokens)
	body := fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":"x"}],"max_tokens":%d,"stream":true}`, tokens)
	var failed atomic.Int64
	before := cpu(b)
	for range benchStreams {
		readers.Go(func() {
			if read(client, url, body) != nil {
				failed.Add(1)
			}
		})
	}
	readers.Wait()
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(tokens*benchStreams), "cpu-ns/event")
	b.ReportMetric(0, "ns/op") // paced: it says nothing
	if failed.Load() > 0 {
		b.Fatalf("%d streams failed", failed.Load())
	}
}

func read(client *http.Client, url, body string) error {
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// cpu is the CPU time of this process so far.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
