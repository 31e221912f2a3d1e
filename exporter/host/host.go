package host

import (
	"errors"
	"regexp"
)

// Options say what is read. The zero value reads the usual places.
type Options struct {
	ProcFS, SysFS string // mount points; "" is the usual one
	PageSize      int    // of memory, in bytes; 0: this system's
	// Include and Exclude filter disks by the whole of their device's name. Without either, memory
	// disks, loop devices and optical drives are left out.
	Include, Exclude *regexp.Regexp
	// Processes picks processes by a part of their name or command line. nil: none.
	Processes *regexp.Regexp
}

// ErrUnsupported is returned for what this operating system, or this build of the exporter,
// cannot tell.
var ErrUnsupported = errors.New("not available on this system")

// Info says what the machine runs. It holds no name or address of it.
type Info struct {
	OS, Kernel, Arch string
	Booted           *float64 // Unix time
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

// Load is the load average over 1, 5 and 15 minutes.
type Load [3]float64

// Pressure is the time that tasks have waited for a resource since boot, in seconds. Full is nil
// for what can't bring everything to a stop.
type Pressure struct {
	Resource string // cpu, memory, io, irq
	Some     *float64
	Full     *float64
}

// Process is one process.
type Process struct {
	PID               int
	Name              string // as the system tells it: on Linux, 15 bytes
	User, System      float64
	Resident, Virtual uint64
	Threads           *float64
	Started           *float64 // Unix time
}

// maxProcesses bounds the processes of one reading.
const maxProcesses = 200

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
