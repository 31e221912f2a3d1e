package calibrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/sim"
	"firstbreach/loadgen/wire"
)

// Load is what the client is given to read.
type Load struct {
	URL     string // of a Source with the fields below
	Source  Source
	Streams int           // at once
	Warmup  time.Duration // not measured
	Measure time.Duration
	// Wave has all streams begin at once, on fresh connections, and measures that: no warmup.
	Wave bool
	// ReadStamps has arrivals stamped when they are read, as where the kernel gives no stamps.
	ReadStamps bool
}

// Level is the client's error at one number of streams.
type Level struct {
	Streams         int     `json:"streams"`
	StampSource     string  `json:"stamp_source"` // kernel, read or mixed
	ChunksPerSecond float64 `json:"chunks_per_second"`
	Requests        int64   `json:"requests"`
	Failed          int64   `json:"failed"` // requests that lost or doubled a chunk, or were not ok
	// TTFT is the error of when the first token came, Chunk that of every token's, Gap that of the time
	// between two of a stream. The latest possible arrival stands for those read late.
	TTFT  Spread `json:"ttft_error"`
	Chunk Spread `json:"chunk_error"`
	Gap   Spread `json:"gap_error"`
	// FullTTFT is the error of the whole TTFT, which is the time from the request's arrival at the source
	// until its first token was sent.
	FullTTFT    Spread  `json:"full_ttft_error"`
	LateShare   float64 `json:"late_share"`    // of chunks read only after the next one had come
	Missed      int64   `json:"missed"`        // chunks sent outside the interval in which the client says they came
	CPUPerChunk float64 `json:"cpu_per_chunk"` // seconds of this process; 0 where it isn't known
	Memory      int64   `json:"memory_bytes"`  // resident, at the end; 0 where it isn't known
}

// Measure has the whole of loadgen (client, decoders, histograms, ledger) read the load and compares
// every chunk's time with when it was sent.
func Measure(ctx context.Context, l Load) (Level, error) {
	client, err := wire.NewClient(wire.Options{
		BaseURL: l.URL, API: "openai-chat", MaxConnections: l.Streams,
		Timeouts: wire.Timeouts{Connect: 30 * time.Second, FirstToken: time.Minute, Idle: time.Minute, Total: 5 * time.Minute},
	})
	if err != nil {
		return Level{}, err
	}
	defer client.CloseIdle()
	if l.ReadStamps {
		client.StampReads()
	}
	dir, err := os.MkdirTemp("", "firstbreach-calibrate")
	if err != nil {
		return Level{}, err
	}
	defer os.RemoveAll(dir)
	ledger, err := record.CreateLedger(filepath.Join(dir, record.LedgerFile))
	if err != nil {
		return Level{}, err
	}
	defer ledger.Close()
	page := record.NewPage(record.PageOptions{Run: "calibrate", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	step, _, err := page.Begin(ctx, record.StepID{Phase: "ramp", Round: 1, Step: 1, Concurrency: l.Streams})
	if err != nil {
		return Level{}, err
	}
	m := &meter{client: client, tokens: l.Source.Tokens, clock: newClock()}
	body := client.Dialect().Body(wire.Request{Model: "m", Prompt: "measure", OutputTokens: l.Source.Tokens})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan window, 1)
	go func() {
		watched <- m.window(ctx, l)
		cancel()
	}()
	shape := drive.Closed{Concurrency: l.Streams}
	if !l.Wave {
		shape.Spread = min(l.Warmup, l.Source.Prefill+time.Duration(l.Source.Tokens)*l.Source.Gap)
	}
	_, err = shape.Drive(ctx, drive.Step{
		Bounds: plan.Step{Duration: time.Hour}, Body: func(int) []byte { return body },
		Sender: m, Recorder: recorder{step, ledger},
	})
	if err != nil {
		return Level{}, fmt.Errorf("calibrate: %w", err)
	}
	return m.level(l, <-watched)
}

// recorder keeps what a run keeps.
type recorder struct {
	*record.Step
	ledger *record.Ledger
}

// Sent, Returned and BackingOff implement drive.Recorder.
func (r recorder) Sent(_ int, now time.Time)              { r.Step.Sent(now) }
func (r recorder) Returned(_ int, now time.Time)          { r.Step.Returned(now) }
func (r recorder) BackingOff(_, slots int, now time.Time) { r.Step.BackingOff(slots, now) }

// Record implements drive.Recorder.
func (r recorder) Record(q record.Request) error {
	r.Observe(q)
	return r.ledger.Append(r.ID(), q)
}

// meter sends requests and compares.
type meter struct {
	client *wire.Client
	tokens int
	clock  clock

	on                       atomic.Bool // the window is open
	ttft, chunk, gap, full   spread
	requests, failed, missed atomic.Int64
	readStamped, chunks      atomic.Int64
}

// Do implements drive.Sender.
func (m *meter) Do(ctx context.Context, body []byte) wire.Result {
	seen := 0
	var lastAt, lastSent, truth int64
	chunks, gaps := make([]time.Duration, 0, m.tokens), make([]time.Duration, 0, m.tokens)
	r := m.client.DoTapped(ctx, body, func(object []byte, latest, earliest time.Time) {
		sent, ok := number(object, keySent)
		if !ok {
			return
		}
		at := m.clock.monotonic(latest)
		if seen++; m.on.Load() {
			chunks = append(chunks, time.Duration(at-sent))
			if sent > at+slack || earliest.Before(latest) && sent < m.clock.monotonic(earliest)-held {
				m.missed.Add(1)
			}
			if seen == 1 {
				m.ttft.add(time.Duration(at - sent))
				if came, ok := number(object, keyRequest); ok {
					truth = sent - came
				}
			} else {
				gaps = append(gaps, time.Duration(at-lastAt-(sent-lastSent)))
			}
		}
		lastAt, lastSent = at, sent
	})
	m.chunk.add(chunks...)
	m.gap.add(gaps...)
	if truth > 0 && r.TTFT != nil {
		m.full.add(*r.TTFT - time.Duration(truth))
	}
	if r.Outcome == wire.Aborted {
		return r
	}
	m.requests.Add(1)
	m.chunks.Add(int64(r.Chunks))
	m.readStamped.Add(int64(r.ReadStamped))
	if r.Outcome != wire.OK || r.Chunks != m.tokens || seen != m.tokens {
		m.failed.Add(1)
	}
	return r
}

const (
	// slack is what two readings of one clock may differ by.
	slack = int64(20 * time.Microsecond)
	// held is how long the source may have been kept between its stamp and its write.
	held = int64(time.Millisecond)
)

// number finds the value of a key of an object.
func number(object []byte, key string) (int64, bool) {
	i := bytes.LastIndex(object, []byte(key))
	if i < 0 {
		return 0, false
	}
	rest := object[i+len(key):]
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	return n, err == nil
}

// window is what was used up while it was open.
type window struct {
	took  time.Duration
	cpu   time.Duration
	reads wire.Reads
	mem   int64
}

// window opens the window after the warmup and closes it after the measurement.
func (m *meter) window(ctx context.Context, l Load) window {
	if !l.Wave {
		pause(ctx, l.Warmup)
	}
	from, cpu, reads := time.Now(), cpuTime(), m.client.Reads()
	m.on.Store(true)
	pause(ctx, l.Measure)
	m.on.Store(false)
	return window{time.Since(from), cpuTime() - cpu, m.client.Reads().Less(reads), resident()}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (m *meter) level(l Load, w window) (Level, error) {
	v := Level{
		Streams: l.Streams, StampSource: "mixed", ChunksPerSecond: float64(w.reads.Chunks) / w.took.Seconds(),
		Requests: m.requests.Load(), Failed: m.failed.Load(), Missed: m.missed.Load(),
		TTFT: m.ttft.sum(), Chunk: m.chunk.sum(), Gap: m.gap.sum(), FullTTFT: m.full.sum(), Memory: w.mem,
	}
	if w.reads.Chunks == 0 {
		return v, errors.New("calibrate: no chunk came: is the source running?")
	}
	v.LateShare = float64(w.reads.Late) / float64(w.reads.Chunks)
	v.CPUPerChunk = w.cpu.Seconds() / float64(w.reads.Chunks)
	switch m.readStamped.Load() {
	case 0:
		v.StampSource = "kernel"
	case m.chunks.Load():
		v.StampSource = "read"
	}
	return v, nil
}

// clock turns this process's times into readings of the clock of the send stamps.
type clock struct {
	at   time.Time
	mono int64
}

// newClock reads both clocks a few times and keeps the pair that was read quickest.
func newClock() clock {
	var best clock
	quickest := time.Hour
	for range 50 {
		before := time.Now()
		mono := sim.Monotonic()
		if took := time.Since(before); took < quickest {
			quickest, best = took, clock{before.Add(took / 2), mono}
		}
	}
	return best
}

func (c clock) monotonic(t time.Time) int64 { return c.mono + int64(t.Sub(c.at)) }
