package arrival

import "time"

// Source says how a stamp was taken.
type Source string

const (
	// SourceKernel is the moment at which the kernel took the segment in that completed the read,
	// whenever the reader got to run.
	SourceKernel Source = "kernel"
	// SourceRead is the moment at which conn.Read returned the bytes: never too early, late by
	// however long the reader waited for a CPU.
	SourceRead Source = "read"
)

// Stamp is when the bytes of one Read arrived. Its times carry the monotonic clock, so stamps are
// subtracted from each other and from time.Now safely across steps of the wall clock. The zero
// Stamp means that nothing has arrived yet.
type Stamp struct {
	// At is when the last byte of the read arrived, or was read: nothing of it came later.
	At time.Time
	// Earliest is the moment before which nothing of the read can have arrived. It is zero where
	// that isn't known, as on every connection without kernel stamps.
	Earliest time.Time
	// Returned is when Read had the bytes. Returned − At is how late the reader was.
	Returned time.Time
	Source   Source
	Seq      uint64 // number of the read on its connection, from 1
	// Full is true when the read filled its buffer, so that more may have been waiting. The kernel
	// keeps one stamp, the last, for all that waits together: that of a full read may belong to
	// bytes behind it.
	Full bool
}
