package run

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/metrics"
	"slices"
	"time"

	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// The limits of the self-check, each for one window. They were measured against streams whose true
// send times are known: with less than lateShare of late chunks the worst P99 of 273 windows was 55 µs.
const (
	checkWindow  = time.Second
	checkEvents  = 200 // a window is lengthened until it has as many text chunks
	lateShare    = 0.005
	laggingShare = 0.01 // of chunks read a millisecond after they came: that millisecond is the P99
	schedLimit   = 500 * time.Microsecond
	sleepLimit   = 2 * time.Millisecond
	sleepFor     = 5 * time.Millisecond
)

// reader is a Target that counts how its chunks were read.
type reader interface{ Reads() wire.Reads }

// selfCheck watches, beside a step, how late the client itself is.
type selfCheck struct {
	done, ended chan struct{}
}

// checkSelf starts the check of a step; without a Target that counts it checks nothing.
func (r *Runner) checkSelf(live lives) *selfCheck {
	c := &selfCheck{done: make(chan struct{}), ended: make(chan struct{})}
	target, ok := r.target.(reader)
	if ok && len(r.classes) > 0 {
		target = reads(r.classes)
	}
	if !ok {
		close(c.ended)
		return c
	}
	said := false
	go func() {
		defer close(c.ended)
		c.watch(target, func(w window) {
			limit, warnings := w.judge()
			if limit != "" {
				live.Limit(limit)
			}
			for _, text := range warnings {
				live.Warn(text)
			}
			if !said && (limit != "" || len(warnings) > 0) {
				said = true             // the manifest has the rest
				level := slog.LevelInfo // late, but not so late that the step is void
				if limit != "" {
					level = slog.LevelWarn
				}
				r.opts.Logger.Log(context.Background(), level, "the client itself was late; run fewer streams, split the run into shards, or give it a host of its own",
					"step", live.ID(), "chunks", w.reads.Chunks, "late", w.reads.Late, "lagging", w.reads.Lagging, "unstamped", w.reads.Unstamped,
					"scheduling_p99", w.sched, "sleep_overshoot_p99", w.sleep)
			}
		})
	}()
	return c
}

func (c *selfCheck) stop() {
	close(c.done)
	<-c.ended
}

// watch calls look with every full window until the check is stopped.
func (c *selfCheck) watch(target reader, look func(window)) {
	begin, reads, sched := time.Now(), target.Reads(), newLatencies()
	var overshoots []time.Duration
	for {
		asleep := time.Now()
		select {
		case <-c.done:
			return
		case <-time.After(sleepFor):
		}
		now := time.Now()
		overshoots = append(overshoots, now.Sub(asleep)-sleepFor)
		if now.Sub(begin) < checkWindow {
			continue
		}
		all := target.Reads()
		w := window{reads: all.Less(reads)}
		if w.reads.Chunks < checkEvents && len(overshoots) < 60*int(checkWindow/sleepFor) {
			continue
		}
		w.sched, w.sleep = sched.p99(), p99(overshoots)
		if w.reads.Chunks >= checkEvents {
			look(w)
		}
		begin, reads, overshoots = now, all, overshoots[:0]
	}
}

// window is what one window saw.
type window struct {
	reads        wire.Reads
	sched, sleep time.Duration // P99 of how long goroutines waited for a thread, and of how much too long a sleep was
}

// judge applies the limits. Where chunks carry the kernel's stamps a late client does no harm until it
// is later than the next chunk, and what it can't tell then is counted; so that is a warning. Where
// only read stamps were to be had, every chunk is as late as the client was.
func (w window) judge() (limit record.Limit, warnings []string) {
	n := float64(w.reads.Chunks)
	if float64(w.reads.Unstamped) >= lateShare*n {
		if w.sched >= schedLimit || w.sleep >= sleepLimit {
			return record.LimitLateReads, nil
		}
		return "", nil
	}
	if float64(w.reads.Late) >= lateShare*n {
		warnings = append(warnings, fmt.Sprintf("%g %% or more of the text chunks of a second were read only after the next one had come", lateShare*100))
	}
	if float64(w.reads.Lagging) >= laggingShare*n {
		warnings = append(warnings, fmt.Sprintf("%g %% or more of the text chunks of a second were read a millisecond or more after they had come", laggingShare*100))
	}
	return "", warnings
}

func p99(ds []time.Duration) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	ds = slices.Clone(ds)
	slices.Sort(ds)
	return ds[(len(ds)*99+99)/100-1]
}

// latencies reads how long goroutines waited to be run, from one call to the next.
type latencies struct {
	sample [1]metrics.Sample
	before []uint64
}

func newLatencies() *latencies {
	l := &latencies{}
	l.sample[0].Name = "/sched/latencies:seconds"
	l.p99()
	return l
}

// p99 is the upper edge of the bucket that holds the P99 since the last call; 0 when there was
// nothing, or the runtime doesn't tell.
func (l *latencies) p99() time.Duration {
	metrics.Read(l.sample[:])
	if l.sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	h := l.sample[0].Value.Float64Histogram()
	var total uint64
	counts := make([]uint64, len(h.Counts))
	for i, n := range h.Counts {
		counts[i] = n
		if i < len(l.before) {
			counts[i] -= l.before[i]
		}
		total += counts[i]
	}
	l.before = append(l.before[:0], h.Counts...)
	rest := total / 100
	for i := len(counts) - 1; i >= 0 && total > 0; i-- {
		if counts[i] > rest {
			return time.Duration(h.Buckets[i] * float64(time.Second))
		}
		rest -= counts[i]
	}
	return 0
}
