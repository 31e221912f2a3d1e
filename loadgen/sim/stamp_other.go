//go:build !unix

package sim

import "time"

// monotonic returns the wall clock, for want of a clock that processes can compare.
func monotonic() int64 { return time.Now().UnixNano() }
