package collector

import (
	"strconv"
	"strings"

	"firstbreach/exporter/gpu"
	"firstbreach/internal/signal"

	"github.com/prometheus/client_golang/prometheus"
)

// gpuCollector exports the last snapshot of the GPUs. Their only label is the UUID: the index
// changes when a GPU is lost, and everything else is on the info series.
type gpuCollector struct {
	snapshot    func() gpu.Snapshot
	processName func(pid uint32) string // "" where it can't be told

	nvmlUp, nvmlDown, nvmlErrors         metric
	calls, seconds, slow, timeouts, last metric
	info, up, down                       metric
	quantities                           [gpu.Quantities]quantity
	migInfo, migUsed, migFree, migTotal  metric
	process                              metric
}

// quantity is the metric of a quantity and how many labels it has beside the UUID.
type quantity struct {
	metric
	labels int
}

func newGPU(snapshot func() gpu.Snapshot, processName func(uint32) string) *gpuCollector {
	const uuid, instance = "uuid", "gpu_instance_id"
	return &gpuCollector{
		snapshot:    snapshot,
		processName: processName,
		nvmlUp:      gauge(signal.NVMLUp, "Whether the GPUs can be read."),
		nvmlDown:    gauge(signal.NVMLDown, "Why the GPUs can't be read; only there while they can't.", "reason"),
		nvmlErrors:  counter(signal.NVMLErrors, "Calls to the NVIDIA driver that failed.", "function", "return"),
		calls:       counter(signal.NVMLCalls, "Readings that were asked of the NVIDIA driver."),
		seconds:     counter(signal.NVMLCallSeconds, "Time spent in them."),
		slow:        counter(signal.NVMLSlowCalls, "Those of them that took more than 100 ms.", "function"),
		timeouts:    counter(signal.NVMLTimeouts, "Calls that were given up, and with them their GPU until they return."),
		last:        gauge(signal.NVMLLastSuccess, "When the GPUs were last read."),

		info:       gauge(signal.GPUInfo, "What the GPU is; the value is always 1.", uuid, "gpu", "name", "pci_bus_id", "driver", "minor", "serial", "vbios"),
		up:         gauge(signal.GPUUp, "Whether this GPU can be read; 0 when it was there before and is lost.", uuid),
		down:       gauge(signal.GPUDown, "Why this GPU can't be read; only there while it can't.", uuid, "reason"),
		quantities: quantities(),

		migInfo:  gauge(signal.GPUMIGInfo, "A MIG device; the value is always 1.", uuid, "mig_uuid", instance, "compute_instance_id", "name"),
		migUsed:  gauge(signal.GPUMIGMemoryUsed, "Memory of the MIG instance in use.", uuid, instance),
		migFree:  gauge(signal.GPUMIGMemoryFree, "Memory of the MIG instance that is free.", uuid, instance),
		migTotal: gauge(signal.GPUMIGMemoryTotal, "Memory of the MIG instance altogether.", uuid, instance),
		process:  gauge(signal.GPUProcessMemory, "GPU memory of a process.", uuid, "pid", "name"),
	}
}

// quantities describes the metric of each quantity.
func quantities() (all [gpu.Quantities]quantity) {
	for _, q := range []struct {
		quantity gpu.Quantity
		name     string
		help     string
		labels   []string
	}{
		{gpu.Utilization, signal.GPUUtilization, "Share of the driver's last window in which a kernel ran.", nil},
		{gpu.MemoryUtilization, signal.GPUMemoryUtilization, "Share of the driver's last window in which memory was read or written.", nil},
		{gpu.BusySeconds, signal.GPUBusy, "Time in which a kernel ran, integrated from the driver's samples.", nil},
		{gpu.MemoryBusySeconds, signal.GPUMemoryBusy, "Time in which memory was read or written, integrated from the driver's samples.", nil},
		{gpu.EncoderUtilization, signal.GPUEncoder, "Utilization of the video encoder.", nil},
		{gpu.DecoderUtilization, signal.GPUDecoder, "Utilization of the video decoder.", nil},
		{gpu.JPEGUtilization, signal.GPUJPEG, "Utilization of the JPEG decoder.", nil},
		{gpu.OFAUtilization, signal.GPUOFA, "Utilization of the optical flow accelerator.", nil},
		{gpu.ClockHertz, signal.GPUClock, "Clock frequency.", []string{"clock"}},
		{gpu.ThrottleSeconds, signal.GPUThrottle, "Time for which the clocks were held down.", []string{"reason"}},
		{gpu.ClockEvent, signal.GPUClockEvent, "Whether this holds the clocks down now.", []string{"reason"}},
		{gpu.PerformanceState, signal.GPUPerformanceState, "Performance state; 0 is the fastest.", nil},
		{gpu.MemoryUsed, signal.GPUMemoryUsed, "GPU memory in use; without what the driver reserves where that is told apart.", nil},
		{gpu.MemoryFree, signal.GPUMemoryFree, "GPU memory that is free.", nil},
		{gpu.MemoryReserved, signal.GPUMemoryReserved, "GPU memory that the driver reserves.", nil},
		{gpu.MemoryTotal, signal.GPUMemoryTotal, "GPU memory altogether.", nil},
		{gpu.BAR1Used, signal.GPUBAR1Used, "GPU memory that is mapped for the CPU through BAR1.", nil},
		{gpu.BAR1Total, signal.GPUBAR1Total, "GPU memory that can be mapped for the CPU through BAR1.", nil},
		{gpu.ProtectedUsed, signal.GPUProtectedUsed, "Protected memory of confidential computing in use.", nil},
		{gpu.ProtectedTotal, signal.GPUProtectedTotal, "Protected memory of confidential computing altogether.", nil},
		{gpu.PowerWatts, signal.GPUPower, "Power that the GPU draws.", nil},
		{gpu.PowerLimitWatts, signal.GPUPowerLimit, "Limit of the power: enforced is the one in force.", []string{"limit"}},
		{gpu.EnergyJoules, signal.GPUEnergy, "Energy that the GPU has used since its driver was loaded.", nil},
		{gpu.Celsius, signal.GPUTemperature, "Temperature of the GPU.", nil},
		{gpu.MemoryCelsius, signal.GPUMemoryTemperature, "Temperature of the GPU's memory.", nil},
		{gpu.FanSpeed, signal.GPUFan, "Speed of the fan as a share of its nominal maximum.", []string{"fan"}},
		{gpu.ECCEnabled, signal.GPUECCEnabled, "Whether ECC is on.", nil},
		{gpu.ECCErrors, signal.GPUECCErrors, "ECC errors: volatile ones since the driver was loaded, aggregate ones of the GPU's life.", []string{"type", "scope"}},
		{gpu.RetiredPages, signal.GPURetiredPages, "Pages of memory that were retired.", []string{"cause"}},
		{gpu.RetirementPending, signal.GPURetirementPending, "Whether pages will be retired at the next reset.", nil},
		{gpu.RowsRemapped, signal.GPURemappedRows, "Rows of memory that were replaced by spare ones.", []string{"type"}},
		{gpu.RemappingPending, signal.GPURemappingPending, "Whether rows will be replaced at the next reset.", nil},
		{gpu.RemappingFailed, signal.GPURemappingFailed, "Whether a row could not be replaced.", nil},
		{gpu.RecoveryAction, signal.GPURecoveryAction, "What the driver wants done: 0 nothing, 1 reset the GPU, 2 reboot, 3 drain, 4 drain and reset.", nil},
		{gpu.PCIeReplays, signal.GPUPCIeReplays, "Transfers that PCIe had to repeat.", nil},
		{gpu.PCIeReceiveRate, signal.GPUPCIeReceiveRate, "Bytes per second that the GPU received, measured for 20 ms.", nil},
		{gpu.PCIeTransmitRate, signal.GPUPCIeTransmitRate, "Bytes per second that the GPU sent, measured for 20 ms.", nil},
		{gpu.PCIeReceived, signal.GPUPCIeReceived, "Bytes that the GPU received over PCIe.", nil},
		{gpu.PCIeTransmitted, signal.GPUPCIeTransmitted, "Bytes that the GPU sent over PCIe.", nil},
		{gpu.MIGEnabled, signal.GPUMIGEnabled, "Whether MIG is on.", nil},
		{gpu.XIDEvents, signal.GPUXIDEvents, "Errors that the driver reported while the exporter ran.", nil},
		{gpu.XIDEventsByCode, signal.GPUXIDEventsByCode, "The same by XID code; a code is there from its first error.", []string{"xid"}},
		{gpu.XIDLast, signal.GPUXIDLast, "When the last of them was taken.", nil},
	} {
		kind := gauge
		if strings.HasSuffix(q.name, "_total") {
			kind = counter
		}
		all[q.quantity] = quantity{kind(q.name, q.help, append([]string{"uuid"}, q.labels...)...), len(q.labels)}
	}
	return all
}

// Update implements Collector. That the GPUs can't be read is an answer, not an error.
func (c *gpuCollector) Update(ch chan<- prometheus.Metric) error {
	s := c.snapshot()
	c.self(ch, s.Calls)
	if s.Up {
		c.nvmlUp.send(ch, 1)
	} else {
		c.nvmlUp.send(ch, 0)
		c.nvmlDown.send(ch, 1, s.Reason)
	}
	for _, g := range s.GPUs {
		c.info.send(ch, 1, g.UUID, strconv.Itoa(g.Index), g.Name, g.PCIBusID, s.Driver, g.Minor, g.Serial, g.VBIOS)
		if !g.Up {
			c.up.send(ch, 0, g.UUID)
			c.down.send(ch, 1, g.UUID, g.Reason)
			continue
		}
		c.up.send(ch, 1, g.UUID)
		for _, r := range g.Readings {
			q := c.quantities[r.Quantity]
			q.send(ch, r.Value, append([]string{g.UUID}, r.Labels[:q.labels]...)...)
		}
		c.mig(ch, g)
		for _, p := range g.Processes {
			c.process.send(ch, float64(p.Used), g.UUID, strconv.FormatUint(uint64(p.PID), 10), c.processName(p.PID))
		}
	}
	return nil
}

// self exports how the reading goes. Where there never was a driver there is nothing to tell.
func (c *gpuCollector) self(ch chan<- prometheus.Metric, calls gpu.Calls) {
	for f, n := range calls.Failed {
		c.nvmlErrors.send(ch, float64(n), f.Function, f.Return.String())
	}
	if calls.Success.IsZero() {
		return
	}
	c.calls.send(ch, float64(calls.Total))
	c.seconds.send(ch, calls.Seconds)
	c.timeouts.send(ch, float64(calls.Timeouts))
	c.last.send(ch, float64(calls.Success.UnixMilli())/1000)
	for function, n := range calls.Slow {
		c.slow.send(ch, float64(n), function)
	}
}

// mig exports the MIG devices, and the memory of each GPU instance once, also when several compute
// instances share it.
func (c *gpuCollector) mig(ch chan<- prometheus.Metric, g gpu.GPU) {
	seen := map[int]bool{}
	for _, m := range g.MIG {
		instance := strconv.Itoa(m.GPUInstance)
		c.migInfo.send(ch, 1, g.UUID, m.UUID, instance, strconv.Itoa(m.ComputeInstance), m.Name)
		if m.Memory == nil || seen[m.GPUInstance] {
			continue
		}
		seen[m.GPUInstance] = true
		c.migUsed.send(ch, float64(m.Memory.Used), g.UUID, instance)
		c.migFree.send(ch, float64(m.Memory.Free), g.UUID, instance)
		c.migTotal.send(ch, float64(m.Memory.Total), g.UUID, instance)
	}
}
