package host

import "errors"

// ErrUnsupported is returned for what this operating system, or this build of the exporter,
// cannot tell.
var ErrUnsupported = errors.New("not available on this system")

// Info says what the machine runs. It holds no name or address of it.
type Info struct {
	OS, Kernel, Arch string
}

// CPUTime is the time that one CPU has spent since boot, in seconds. User and Nice include
// Guest and GuestNice.
type CPUTime struct {
	CPU                                                   string // "0", "1", …
	User, Nice, System, Idle, IOWait, IRQ, SoftIRQ, Steal float64
	Guest, GuestNice                                      float64
}

// CPU is the state of the processors. A nil pointer is a value that the system doesn't tell.
type CPU struct {
	Times           []CPUTime // by number of the CPU
	ProcsRunning    *float64
	ProcsBlocked    *float64
	Interrupts      *float64 // since boot
	ContextSwitches *float64 // since boot
}

// Memory is the state of memory, in bytes. A nil pointer is a value that the system doesn't tell.
type Memory struct {
	Total, Available, Free        *uint64
	Buffers, Cached, SReclaimable *uint64
	SwapTotal, SwapFree           *uint64
}

// Paging is what has moved between memory and disk since boot, in bytes. A nil pointer is a
// value that the system doesn't tell.
type Paging struct {
	SwapIn, SwapOut   *uint64
	PagedIn, PagedOut *uint64
}

// Disk is what one whole disk has done since boot.
type Disk struct {
	Device string
	Reads  IO
	Writes IO
	// Discards and Flushes are nil where the kernel doesn't count them (before 4.18 and 5.5).
	Discards *IO
	Flushes  *IO      // without bytes or merges
	InFlight *float64 // now
	// BusySeconds is the time with at least one operation in flight, WeightedSeconds the
	// integral of their number.
	BusySeconds, WeightedSeconds *float64
}

// IO is one kind of operation of a disk, since boot.
type IO struct {
	Completed, Merged, Bytes uint64
	Seconds                  float64 // summed over operations
}
