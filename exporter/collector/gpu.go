package collector

import (
	"strconv"

	"firstbreach/exporter/gpu"
	"firstbreach/internal/signal"

	"github.com/prometheus/client_golang/prometheus"
)

// gpuCollector exports the last snapshot of the GPUs. Their only label is the UUID: the index
// changes when a GPU is lost, and everything else is on the info series.
type gpuCollector struct {
	snapshot func() gpu.Snapshot

	nvmlUp, nvmlDown, nvmlErrors metric
	info, up                     metric
	utilization, bus             metric
	used, free, reserved, total  metric
	power, energy, temperature   metric
}

func newGPU(snapshot func() gpu.Snapshot) *gpuCollector {
	const uuid = "uuid"
	return &gpuCollector{
		snapshot:   snapshot,
		nvmlUp:     gauge(signal.NVMLUp, "Whether the GPUs can be read."),
		nvmlDown:   gauge(signal.NVMLDown, "Why the GPUs can't be read; only there while they can't.", "reason"),
		nvmlErrors: counter(signal.NVMLErrors, "Calls to the NVIDIA driver that failed.", "function", "return"),

		info:        gauge(signal.GPUInfo, "What the GPU is; the value is always 1.", uuid, "gpu", "name", "pci_bus_id", "driver"),
		up:          gauge(signal.GPUUp, "Whether this GPU can be read; 0 when it was there before and is lost.", uuid),
		utilization: gauge(signal.GPUUtilization, "Share of the driver's last window in which a kernel ran.", uuid),
		bus:         gauge(signal.GPUMemoryUtilization, "Share of the driver's last window in which memory was read or written.", uuid),
		used:        gauge(signal.GPUMemoryUsed, "GPU memory in use; without what the driver reserves where that is told apart.", uuid),
		free:        gauge(signal.GPUMemoryFree, "GPU memory that is free.", uuid),
		reserved:    gauge(signal.GPUMemoryReserved, "GPU memory that the driver reserves.", uuid),
		total:       gauge(signal.GPUMemoryTotal, "GPU memory altogether.", uuid),
		power:       gauge(signal.GPUPower, "Power that the GPU draws.", uuid),
		energy:      counter(signal.GPUEnergy, "Energy that the GPU has used since its driver was loaded.", uuid),
		temperature: gauge(signal.GPUTemperature, "Temperature of the GPU.", uuid),
	}
}

// Update implements Collector. That the GPUs can't be read is an answer, not an error.
func (c *gpuCollector) Update(ch chan<- prometheus.Metric) error {
	s := c.snapshot()
	for f, n := range s.Errors {
		c.nvmlErrors.send(ch, float64(n), f.Function, f.Return.String())
	}
	if !s.Up {
		c.nvmlUp.send(ch, 0)
		c.nvmlDown.send(ch, 1, s.Reason)
		return nil
	}
	c.nvmlUp.send(ch, 1)
	for _, g := range s.GPUs {
		c.info.send(ch, 1, g.UUID, strconv.Itoa(g.Index), g.Name, g.PCIBusID, s.Driver)
		if !g.Up {
			c.up.send(ch, 0, g.UUID)
			continue
		}
		c.up.send(ch, 1, g.UUID)
		c.values(ch, g)
	}
	return nil
}

func (c *gpuCollector) values(ch chan<- prometheus.Metric, g gpu.GPU) {
	c.utilization.maybe(ch, g.Utilization, g.UUID)
	c.bus.maybe(ch, g.MemoryUtilization, g.UUID)
	if m := g.Memory; m != nil {
		c.used.bytes(ch, &m.Used, g.UUID)
		c.free.bytes(ch, &m.Free, g.UUID)
		c.reserved.bytes(ch, m.Reserved, g.UUID)
		c.total.bytes(ch, &m.Total, g.UUID)
	}
	c.power.maybe(ch, g.PowerWatts, g.UUID)
	c.energy.maybe(ch, g.EnergyJoules, g.UUID)
	c.temperature.maybe(ch, g.Celsius, g.UUID)
}
