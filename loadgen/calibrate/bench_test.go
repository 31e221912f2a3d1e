//go:build linux

package calibrate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The benchmark runs this test binary again, as the source of the streams and as each client, so that
// no two share a process. These tell a child what it is.
const (
	envRole = "FIRSTBREACH_CALIBRATE_ROLE" // source, loadgen, fallback, plain
	envLoad = "FIRSTBREACH_CALIBRATE_LOAD" // the Load as JSON
)

func TestMain(m *testing.M) {
	role := os.Getenv(envRole)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := child(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(role string) error {
	var l Load
	if err := json.Unmarshal([]byte(os.Getenv(envLoad)), &l); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if path := os.Getenv("FIRSTBREACH_CALIBRATE_PROFILE"); path != "" && role != "source" {
		f, err := os.Create(path + "." + role)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var v Level
	var err error
	switch role {
	case "source":
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println("http://" + listener.Addr().String())
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
		return l.Source.Serve(ctx, listener)
	case "loadgen":
		v, err = Measure(ctx, l)
	case "fallback":
		l.ReadStamps = true
		v, err = Measure(ctx, l)
	case "plain":
		v, err = measurePlain(ctx, l)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(v)
}

// measurePlain is a client as people write it: net/http, a buffered reader, a line at a time,
// encoding/json, and the time when the line was there.
func measurePlain(ctx context.Context, l Load) (Level, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.Streams, DialContext: (&net.Dialer{}).DialContext}}
	m := &plain{clock: newClock(), tokens: l.Source.Tokens}
	var slots sync.WaitGroup
	for i := range l.Streams {
		slots.Go(func() {
			if !l.Wave {
				pause(ctx, min(l.Warmup, l.Source.Prefill+time.Duration(l.Source.Tokens)*l.Source.Gap)*time.Duration(i)/time.Duration(l.Streams))
			}
			for ctx.Err() == nil {
				if err := m.request(ctx, client, l.URL); err != nil && ctx.Err() == nil {
					m.failed.Add(1)
				}
			}
		})
	}
	if !l.Wave {
		pause(ctx, l.Warmup)
	}
	from, cpu, before := time.Now(), cpuTime(), m.all.Load()
	m.on.Store(true)
	pause(ctx, l.Measure)
	m.on.Store(false)
	took, used, chunks := time.Since(from), cpuTime()-cpu, m.all.Load()-before
	memory := resident()
	cancel()
	slots.Wait()
	if chunks == 0 {
		return Level{}, errors.New("plain: no chunk came")
	}
	return Level{
		Streams: l.Streams, StampSource: "plain", ChunksPerSecond: float64(chunks) / took.Seconds(), Requests: m.requests.Load(), Failed: m.failed.Load(),
		TTFT: m.ttft.sum(), Chunk: m.chunk.sum(), Gap: m.gap.sum(), FullTTFT: m.full.sum(), CPUPerChunk: used.Seconds() / float64(chunks), Memory: memory,
	}, nil
}

type plain struct {
	clock                  clock
	tokens                 int
	on                     atomic.Bool
	ttft, chunk, gap, full spread
	all, requests, failed  atomic.Int64
}

func (p *plain) request(ctx context.Context, client *http.Client, url string) error {
	const body = `{"model":"m","messages":[{"role":"user","content":"measure"}],"max_tokens":64,"stream":true}`
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	seen := 0
	var lastAt, lastSent int64
	chunks, gaps := make([]time.Duration, 0, p.tokens), make([]time.Duration, 0, p.tokens)
	defer func() {
		p.chunk.add(chunks...)
		p.gap.add(gaps...)
	}()
	for {
		line, err := lines.ReadBytes('\n')
		at := p.clock.monotonic(time.Now())
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok || bytes.HasPrefix(data, []byte("[DONE]")) {
			continue
		}
		var event struct {
			Sent    int64 `json:"sim_sent_ns"`
			Came    int64 `json:"sim_request_ns"`
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return err
		}
		if event.Sent == 0 {
			continue
		}
		p.all.Add(1)
		if seen++; p.on.Load() {
			chunks = append(chunks, time.Duration(at-event.Sent))
			if seen == 1 {
				p.ttft.add(time.Duration(at - event.Sent))
				p.full.add(time.Duration(at - p.clock.monotonic(begun) - (event.Sent - event.Came))) // its TTFT starts before Do
			} else {
				gaps = append(gaps, time.Duration(at-lastAt-(event.Sent-lastSent)))
			}
		}
		lastAt, lastSent = at, event.Sent
	}
	p.requests.Add(1)
	if seen != p.tokens {
		return fmt.Errorf("%d tokens", seen)
	}
	return nil
}

// start runs a child and returns its first line.
func start(tb testing.TB, role string, l Load) (line string, end func()) {
	tb.Helper()
	load, err := json.Marshal(l)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"="+role, envLoad+"="+string(load))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		tb.Fatalf("%s: %v", role, err)
	}
	return strings.TrimSpace(line), func() { _ = stdin.Close(); _ = cmd.Wait() }
}

// once measures one client in a process of its own.
func once(tb testing.TB, role string, l Load) Level {
	tb.Helper()
	line, end := start(tb, role, l)
	defer end()
	var v Level
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		tb.Fatal(err)
	}
	return v
}

// BenchmarkFidelity is the client's error beside that of a plain client, each in a process of its own
// and the source of the streams in a third, in turn, the median of three. x-… are ratios of loadgen's
// figure to the plain client's.
func BenchmarkFidelity(b *testing.B) {
	source := Source{Prefill: 200 * time.Millisecond, Gap: 20 * time.Millisecond, Tokens: 64}
	for _, bb := range []struct {
		name string
		load Load
		role string
	}{
		{"streams=50", Load{Streams: 50}, "loadgen"},
		{"streams=200", Load{Streams: 200}, "loadgen"},
		{"streams=500", Load{Streams: 500}, "loadgen"},
		{"streams=1000", Load{Streams: 1000}, "loadgen"},
		{"streams=2000", Load{Streams: 2000}, "loadgen"},
		{"wave=1000", Load{Streams: 1000, Wave: true}, "loadgen"},
		{"read-stamps=500", Load{Streams: 500}, "fallback"},
		{"read-stamps=1000", Load{Streams: 1000}, "fallback"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			l := bb.load
			l.Source, l.Warmup, l.Measure = source, 1600*time.Millisecond, 2*time.Second
			if l.Wave {
				l.Measure = time.Second
			}
			url, end := start(b, "source", l)
			defer end()
			l.URL = url
			var ours, theirs []Level
			for b.Loop() {
				ours, theirs = nil, nil
				for range 3 {
					ours = append(ours, once(b, bb.role, l))
					theirs = append(theirs, once(b, "plain", l))
				}
			}
			report(b, l, ours, theirs)
		})
	}
}

func report(b *testing.B, l Load, ours, theirs []Level) {
	median := func(vs []Level, f func(Level) float64) float64 {
		slices.SortFunc(vs, func(x, y Level) int {
			switch a, c := f(x), f(y); {
			case a < c:
				return -1
			case a > c:
				return 1
			}
			return 0
		})
		return f(vs[len(vs)/2])
	}
	for _, q := range []struct {
		name  string
		scale float64
		f     func(Level) float64
	}{
		{"ttft-p99-µs", 1e6, func(v Level) float64 { return v.TTFT.P99 }},
		{"chunk-p99-µs", 1e6, func(v Level) float64 { return v.Chunk.P99 }},
		{"gap-p99-µs", 1e6, func(v Level) float64 { return v.Gap.P99 }},
		{"full-ttft-p99-µs", 1e6, func(v Level) float64 { return v.FullTTFT.P99 }},
		{"cpu-µs/chunk", 1e6, func(v Level) float64 { return v.CPUPerChunk }},
		{"MiB", 1.0 / (1 << 20), func(v Level) float64 { return float64(v.Memory) }},
	} {
		mine, other := median(ours, q.f), median(theirs, q.f)
		b.ReportMetric(mine*q.scale, q.name)
		b.ReportMetric(other*q.scale, "plain-"+q.name)
		b.ReportMetric(mine/other, "x-"+strings.TrimSuffix(strings.TrimSuffix(q.name, "-µs"), "-µs/chunk"))
	}
	b.ReportMetric(100*median(ours, func(v Level) float64 { return v.LateShare }), "late-%")
	b.ReportMetric(0, "ns/op") // paced: it says nothing
	for _, v := range ours {
		if v.Failed > 0 {
			b.Errorf("%d requests lost or doubled a chunk", v.Failed)
		}
		// The source may lose its CPU between the stamp and the write.
		if v.Missed > v.Chunk.N/10_000 {
			b.Errorf("%d of %d chunks came outside the interval that the client names", v.Missed, v.Chunk.N)
		}
	}
}
