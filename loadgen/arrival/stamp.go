package arrival

import "time"

// Source says how a stamp was taken.
type Source string

// SourceRead is the moment at which conn.Read returned the bytes: never too early, late by
// however long the reader waited for a CPU.
const SourceRead Source = "read"

// Stamp is when bytes arrived. At carries the monotonic clock, so stamps are subtracted from each
// other and from time.Now safely across steps of the wall clock. The zero Stamp means that nothing
// has arrived yet.
type Stamp struct {
	At     time.Time
	Source Source
}
