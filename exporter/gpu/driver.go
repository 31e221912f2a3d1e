package gpu

// Driver is NVML as far as it is used here. Its methods are called by one goroutine only, because
// the driver serializes calls under a lock of its own. A function that the installed library lacks
// must answer FunctionNotFound: calling it would end the process.
type Driver interface {
	Init() Return
	// Shutdown is called only after an Init that succeeded.
	Shutdown() Return
	Version() (string, Return)
	Count() (int, Return)
	Device(index int) (Device, Return)
}

// Device is one GPU.
type Device interface {
	UUID() (string, Return)
	Name() (string, Return)
	PCIBusID() (string, Return)
	// Utilization returns, in percent, the time in which a kernel ran and in which memory was
	// read or written, over the driver's last window (1/6 s to 1 s).
	Utilization() (gpu, memory uint32, ret Return)
	Memory() (MemoryInfo, Return)
	// Power returns milliwatts, Energy millijoules since the driver was loaded, Temperature
	// degrees Celsius.
	Power() (uint32, Return)
	Energy() (uint64, Return)
	Temperature() (int32, Return)
}

// MemoryInfo is a GPU's memory in bytes. Older drivers count what they reserve as used: Reserved
// is nil then.
type MemoryInfo struct {
	Total, Free, Used uint64
	Reserved          *uint64
}
