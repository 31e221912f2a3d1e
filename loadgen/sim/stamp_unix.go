//go:build unix

package sim

import (
	"golang.org/x/sys/unix"
)

// Monotonic is the clock of the stamps: see Config.Stamp.
func Monotonic() int64 { return monotonic() }

// monotonic returns the machine's CLOCK_MONOTONIC in nanoseconds; 0 if it can't be read. Processes of
// one machine can compare it.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}
