package drive

import (
	"math/rand/v2"
	"time"

	"firstbreach/loadgen/wire"
)

// How a slot backs off from a target that fails at once. A slot that came back at once would send
// tens of thousands of requests a second, which no user does, and which measures the client.
const (
	failedFast   = 100 * time.Millisecond // a failure in less time was no work for the target
	firstBackoff = 10 * time.Millisecond
	mostBackoff  = time.Second
)

// backoff is how long one slot of a closed loop waits before its next request: not at all, unless
// its last requests failed fast one after the other. The pause doubles with each of them from the
// second on, up to mostBackoff, and between a half and the whole of that is drawn, so that slots
// which were refused together don't come back together.
//
// A target's Retry-After is not heeded: the step asks what this number of clients gets, and minutes
// without load would answer another question.
type backoff struct {
	random *rand.Rand
	inRow  int // fast failures without anything else between them
}

// newBackoff is the back-off of a slot: the same seed gives the same pauses.
func newBackoff(seed [2]uint64, slot int) *backoff {
	return &backoff{random: rand.New(rand.NewPCG(seed[0]+uint64(slot), seed[1]))}
}

// after is the pause after a request that ended in such a time.
func (b *backoff) after(o wire.Outcome, took time.Duration) time.Duration {
	if !o.Failed() || took >= failedFast {
		b.inRow = 0
		return 0
	}
	if b.inRow++; b.inRow == 1 {
		return 0
	}
	most := firstBackoff
	for i := 2; i < b.inRow && most < mostBackoff; i++ {
		most *= 2
	}
	most = min(most, mostBackoff)
	return most/2 + time.Duration(b.random.Int64N(int64(most/2)+1))
}
