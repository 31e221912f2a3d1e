package gpu

// Quantity is a kind of value of one GPU.
type Quantity int

// The quantities; in brackets, what their labels are. Counters begin at 0 or at what the driver
// has counted since it was loaded.
const (
	Utilization        Quantity = iota // 0–1, driver's last window
	MemoryUtilization                  // 0–1, activity of the memory bus
	BusySeconds                        // counter: integral of Utilization
	MemoryBusySeconds                  // counter: integral of MemoryUtilization
	EncoderUtilization                 // 0–1
	DecoderUtilization                 // 0–1
	JPEGUtilization                    // 0–1
	OFAUtilization                     // 0–1, optical flow
	ClockHertz                         // [clock]
	ThrottleSeconds                    // counter [reason]
	ClockEvent                         // 0 or 1 [reason]
	PerformanceState                   // 0 the fastest
	MemoryUsed                         // bytes, as all up to ProtectedTotal
	MemoryFree
	MemoryReserved
	MemoryTotal
	BAR1Used
	BAR1Total
	ProtectedUsed
	ProtectedTotal
	PowerWatts
	PowerLimitWatts   // [limit]
	EnergyJoules      // counter
	Celsius           //
	MemoryCelsius     //
	FanSpeed          // 0–1 of the most [fan]
	ECCEnabled        // 0 or 1
	ECCErrors         // counter [type, scope]
	RetiredPages      // [cause]
	RetirementPending // 0 or 1
	RowsRemapped      // [type]
	RemappingPending  // 0 or 1
	RemappingFailed   // 0 or 1
	RecoveryAction    // NVML's number; 0 is none
	PCIeReplays       // counter
	PCIeReceiveRate   // bytes/s
	PCIeTransmitRate  // bytes/s
	PCIeReceived      // counter, bytes
	PCIeTransmitted   // counter, bytes
	MIGEnabled        // 0 or 1
	XIDEvents         // counter
	XIDEventsByCode   // counter [xid]
	XIDLast           // Unix time
	Quantities        // how many there are
)

// Reading is one value of a GPU.
type Reading struct {
	Quantity Quantity
	Value    float64
	Labels   [2]string // "" where the quantity has none
}
