package gpu

import "time"

// The reasons for which NVML is down, or a GPU, beside the names of Return.
const (
	ReasonNotBuilt  = "not_built_in" // built without cgo, or not for Linux
	ReasonStarting  = "starting"     // no sample yet
	ReasonStale     = "stale"        // the driver has not answered for a while
	ReasonStopped   = "stopped"
	ReasonNoSymbols = "library_incomplete" // the library lacks what every NVML has
	ReasonNoGPU     = "no_gpu"             // the driver works and has no GPU
	ReasonReleased  = "released"           // let go on demand, for a while
	ReasonSuspended = "suspended"          // a GPU sleeps, and would wake up
	ReasonHung      = "hung"               // a call for this GPU does not return
)

// Snapshot is the state of all GPUs at one time.
type Snapshot struct {
	Up     bool
	Reason string // why it isn't up; a fixed set of names
	Driver string // version
	GPUs   []GPU  // by index; a lost one keeps its place with Up false
	Taken  time.Time
	Calls  Calls
}

// Calls is what the calls into the driver came to since the start.
type Calls struct {
	Total    uint64
	Seconds  float64
	Timeouts uint64             // calls that took longer than the time-out
	Slow     map[string]uint64  // by function; calls of more than 100 ms
	Failed   map[Failure]uint64 // without "not supported"
	Success  time.Time          // when the GPUs were last read
}

// Failure is a kind of failed call.
type Failure struct {
	Function string // of NVML
	Return   Return
}

// GPU is one GPU. A value that this GPU or driver doesn't have, or that couldn't be read, isn't
// among its readings.
type GPU struct {
	UUID     string
	Index    int // as NVML counts; changes when a GPU is lost
	Name     string
	PCIBusID string
	Serial   string
	VBIOS    string
	Minor    string // of /dev/nvidiaN

	Up     bool
	Reason string // why it isn't up

	Readings  []Reading
	MIG       []MIG
	Processes []Process
}
