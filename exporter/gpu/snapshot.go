package gpu

import "time"

// The reasons for which NVML is down, beside the names of Return.
const (
	ReasonNotBuilt  = "not_built_in" // built without cgo, or not for Linux
	ReasonStarting  = "starting"     // no sample yet
	ReasonStale     = "stale"        // the driver has not answered for a while
	ReasonStopped   = "stopped"
	ReasonNoSymbols = "library_incomplete" // the library lacks what every NVML has
)

// Snapshot is the state of all GPUs at one time.
type Snapshot struct {
	Up     bool
	Reason string // why it isn't up; a fixed set of names
	Driver string // version
	GPUs   []GPU  // by index; a lost one keeps its place with Up false
	Taken  time.Time
	Errors map[Failure]uint64 // since the start; failed calls, without "not supported"
}

// Failure is a kind of failed call.
type Failure struct {
	Function string // of NVML
	Return   Return
}

// GPU is one GPU. A nil pointer is a value that this GPU or driver doesn't have, or that couldn't
// be read this time.
type GPU struct {
	UUID     string
	Index    int // as NVML counts; changes when a GPU is lost
	Name     string
	PCIBusID string

	Up     bool
	Reason string // why it isn't up

	Utilization       *float64 // 0–1
	MemoryUtilization *float64 // 0–1, activity of the memory bus
	Memory            *MemoryInfo
	PowerWatts        *float64
	EnergyJoules      *float64 // since the driver was loaded
	Celsius           *float64
}
