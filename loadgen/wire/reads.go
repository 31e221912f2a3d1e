package wire

import (
	"sync/atomic"
	"time"

	"firstbreach/loadgen/arrival"
)

// lagging is how late a chunk has to be read to count in Reads.Lagging.
const lagging = time.Millisecond

// Reads counts text chunks by how well the client knows when they came.
type Reads struct {
	Chunks int64
	// Late chunks were read only after the next one had come, so that the time of their arrival is
	// known as an interval.
	Late int64
	// Unstamped chunks came over connections without kernel stamps: they are as late as the client was.
	Unstamped int64
	// Lagging chunks were read a millisecond or more after the kernel had them.
	Lagging int64
}

// Less returns what was counted since an earlier snapshot.
func (r Reads) Less(earlier Reads) Reads {
	return Reads{r.Chunks - earlier.Chunks, r.Late - earlier.Late, r.Unstamped - earlier.Unstamped, r.Lagging - earlier.Lagging}
}

// reads is counted by every request as it goes on.
type reads struct{ chunks, late, unstamped, lagging atomic.Int64 }

func (r *reads) snapshot() Reads {
	return Reads{r.chunks.Load(), r.late.Load(), r.unstamped.Load(), r.lagging.Load()}
}

// add counts the chunks of one read.
func (r *reads) add(chunks, late int, s arrival.Stamp) {
	if chunks == 0 {
		return
	}
	r.chunks.Add(int64(chunks))
	if late > 0 {
		r.late.Add(int64(late))
	}
	switch {
	case s.Earliest.IsZero():
		r.unstamped.Add(int64(chunks))
	case s.Returned.Sub(s.At) >= lagging:
		r.lagging.Add(int64(chunks))
	}
}
