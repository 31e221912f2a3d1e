//go:build !unix

package sim

import "time"

// Monotonic is the clock of the stamps: see Config.Stamp.
func Monotonic() int64 { return monotonic() }

// monotonic returns the wall clock, for want of a clock that processes can compare.
func monotonic() int64 { return time.Now().UnixNano() }
