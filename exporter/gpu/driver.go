package gpu

// Driver is NVML as far as it is used here. Its methods are called one at a time, because the
// driver serializes calls under a lock of its own. A function that the installed library lacks
// must answer FunctionNotFound: calling it would end the process.
type Driver interface {
	Init() Return
	// Shutdown is called only after an Init that succeeded.
	Shutdown() Return
	Version() (string, Return)
	Count() (int, Return)
	Device(index int) (Device, Return)
	// Events opens a queue of XID errors.
	Events() (Events, Return)
}

// Events is a queue of XID errors.
type Events interface {
	// Register adds the errors of a GPU, which the events are then reported for by its UUID.
	Register(d Device, uuid string) Return
	// Next returns the oldest error; it answers Timeout, without waiting, when there is none.
	Next() (XID, Return)
	Close()
}

// XID is one error that the driver reported.
type XID struct {
	UUID string
	Code uint64
}

// Device is one GPU. Its units are NVML's own.
type Device interface {
	UUID() (string, Return)
	Name() (string, Return)
	PCIBusID() (string, Return)
	Serial() (string, Return)
	VBIOS() (string, Return)
	Minor() (int, Return)

	// Utilization returns, in percent, the time in which a kernel ran and in which memory was
	// read or written, over the driver's last window (1/6 s to 1 s).
	Utilization() (gpu, memory uint32, ret Return)
	// Samples returns what the driver has sampled after since, which is on the driver's own clock.
	Samples(kind SampleKind, since uint64) ([]Sample, Return)
	EncoderUtilization() (percent uint32, ret Return)
	DecoderUtilization() (percent uint32, ret Return)
	JPEGUtilization() (percent uint32, ret Return)
	OFAUtilization() (percent uint32, ret Return)

	Clock(c Clock) (megahertz uint32, ret Return)
	ClockEvents() (mask uint64, ret Return)
	// Violation returns for how many nanoseconds a policy has held the clocks down.
	Violation(policy uint32) (ns uint64, ret Return)
	PerformanceState() (uint32, Return)
	// Fields returns one answer for each ID.
	Fields(ids []uint32) ([]Field, Return)

	Memory() (MemoryInfo, Return)
	BAR1() (MemoryInfo, Return)
	ProtectedMemory() (MemoryInfo, Return)

	Power() (milliwatts uint32, ret Return)
	EnforcedPowerLimit() (milliwatts uint32, ret Return)
	DefaultPowerLimit() (milliwatts uint32, ret Return)
	Energy() (millijoules uint64, ret Return) // since the driver was loaded
	Temperature() (celsius int32, ret Return)
	Fans() (int, Return)
	Fan(i int) (percent uint32, ret Return)

	ECCMode() (on bool, ret Return)
	ECCErrors(uncorrected, volatile bool) (uint64, Return)
	RetiredPages(doubleBit bool) (int, Return)
	RetirementPending() (bool, Return)
	RemappedRows() (RemappedRows, Return)

	PCIeReplays() (uint64, Return)
	// PCIeThroughput measures for 20 ms, in KB/s, and blocks as long.
	PCIeThroughput(transmit bool) (uint32, Return)

	MIGMode() (on bool, ret Return)
	MIGCount() (int, Return) // places for instances, most of them empty
	MIG(i int) (MIG, Return)
	Processes() ([]Process, Return)
}

// Clock is a clock domain, with NVML's number.
type Clock int

// The clocks.
const (
	ClockGraphics Clock = iota
	ClockSM
	ClockMemory
	ClockVideo
)

// SampleKind is what the driver samples, with NVML's number.
type SampleKind int

// The samples that are read.
const (
	SampleUtilization       SampleKind = 1
	SampleMemoryUtilization SampleKind = 2
)

// Sample is the mean of a percentage over the time since the sample before it.
type Sample struct {
	Time  uint64 // µs on the driver's own clock, which is not Unix time
	Value float64
}

// The fields of nvmlDeviceGetFieldValues that are read, with NVML's numbers.
const (
	fieldViolationPower      = 74
	fieldViolationThermal    = 75
	fieldViolationSyncBoost  = 76
	fieldViolationBoardLimit = 77
	fieldViolationLowUse     = 78
	fieldViolationReliable   = 79
	fieldMemoryTemperature   = 82
	fieldPCIeTransmitted     = 197
	fieldPCIeReceived        = 198
	fieldRecoveryAction      = 230
	fieldThermalSoftware     = 269
	fieldThermalHardware     = 270
	fieldPowerBrake          = 271
)

// Field is the answer for one field.
type Field struct {
	Return Return
	Value  uint64
	Bits   int // of its type, from which it wraps
}

// MemoryInfo is a memory in bytes. Older drivers count what they reserve as used: Reserved is nil
// then.
type MemoryInfo struct {
	Total, Free, Used uint64
	Reserved          *uint64
}

// RemappedRows are rows of memory that were replaced by spare ones.
type RemappedRows struct {
	Correctable, Uncorrectable int
	Pending, Failed            bool
}

// MIG is one MIG device: a compute instance in a GPU instance, which has the memory.
type MIG struct {
	UUID, Name                   string
	GPUInstance, ComputeInstance int
	Memory                       *MemoryInfo
}

// Process is a process on a GPU with its memory in bytes.
type Process struct {
	PID      uint32
	Used     uint64
	Graphics bool // it draws; false: it computes
}
