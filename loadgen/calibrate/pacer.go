package calibrate

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"time"

	"firstbreach/loadgen/sim"
)

// pacer writes the tokens of all streams from one thread, because a goroutine woken for each would cost
// the machine more than the client that is being measured. A stream waits in one of two queues, before
// its first token or between two; each is in order by itself, since everybody waits equally long in it.
type pacer struct {
	Source
	mu    sync.Mutex
	first []*stream // begun, its first token not sent
	next  []*stream
}

// stream is one answer that is being sent.
type stream struct {
	out   *sender
	start time.Time
	came  int64 // when the request came
	sent  int   // tokens so far
	done  chan bool
}

// due is when the stream's next token is to be sent.
func (p *pacer) due(s *stream) time.Time {
	return s.start.Add(p.Prefill + time.Duration(s.sent)*p.Gap)
}

// add has the pacer send the tokens of a stream. Whether all were sent is told on s.done.
func (p *pacer) add(s *stream) {
	p.mu.Lock()
	p.first = append(p.first, s)
	p.mu.Unlock()
}

// run sends until ctx ends.
func (p *pacer) run(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	exactSleep()
	var event, out []byte
	for ctx.Err() == nil {
		s, wait := p.take(time.Now())
		if s == nil {
			nap(wait)
			continue
		}
		if s.sent == 0 && p.FirstSent != nil {
			p.FirstSent(time.Duration(sim.Monotonic() - s.came))
		}
		event = p.token(event[:0], s)
		out = chunk(out[:0], event)
		err := s.out.send(out)
		if s.sent++; err != nil || s.sent == p.Tokens {
			s.done <- err == nil
			continue
		}
		p.mu.Lock()
		p.next = append(p.next, s)
		p.mu.Unlock()
	}
}

// take returns the stream whose token is due, or how long to sleep.
func (p *pacer) take(now time.Time) (*stream, time.Duration) {
	// A stream that is added while the pacer sleeps isn't due before Prefill has passed.
	wait := min(max(p.Prefill/2, 100*time.Microsecond), 2*time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	var from *[]*stream
	for _, q := range []*[]*stream{&p.first, &p.next} {
		if len(*q) > 0 {
			if d := p.due((*q)[0]).Sub(now); d < wait {
				wait, from = d, q
			}
		}
	}
	if from == nil || wait > 0 {
		return nil, wait
	}
	s := (*from)[0]
	(*from)[0] = nil
	*from = (*from)[1:]
	return s, 0
}

// token appends the event of a stream's next token, with the time.
func (p *pacer) token(event []byte, s *stream) []byte {
	event = append(event, sourceOpen...)
	if s.sent == 0 {
		event = append(strconv.AppendInt(append(event, keyRequest...), s.came, 10), ',')
	}
	event = strconv.AppendInt(append(event, keySent...), sim.Monotonic(), 10)
	return append(event, "}\n\n"...)
}
