package signal

// GPU returns the names of GPU metrics: the exporter's own first, then those of dcgm-exporter
// (etc/default-counters.csv), which keep NVML's units.
func GPU() *Engine {
	const mib = 1 << 20
	dcgm := []string{"gpu", "UUID", "device", "modelName", "pci_bus_id"}
	own := func(name, unit string, agg Aggregate) Metric { return gauge(name, unit, agg, "uuid") }
	framebuffer := []Term{
		{Name: "DCGM_FI_DEV_FB_USED"},
		{Name: "DCGM_FI_DEV_FB_FREE"},
		{Name: "DCGM_FI_DEV_FB_RESERVED", MayBeAbsent: true},
	}
	return &Engine{
		Name: SourceGPU, Title: "the exporter", Layer: LayerResource,
		Enable: "the GPU needs its driver, and the exporter a build with cgo",
		candidates: map[string][]Metric{
			SignalGPUUtilization: {
				own(GPUUtilization, UnitRatio, Max),
				gauge("DCGM_FI_DEV_GPU_UTIL", "percent", Max, dcgm...).scale(0.01),
			},
			SignalGPUMemoryUsed: {
				own(GPUMemoryUsed, UnitBytes, Sum),
				gauge("DCGM_FI_DEV_FB_USED", "MiB", Sum, dcgm...).scale(mib),
			},
			SignalGPUMemoryUtilization: {
				own(GPUMemoryUsed, UnitBytes, Max).read(ReadRatio).of(Term{Name: GPUMemoryTotal}),
				gauge("DCGM_FI_DEV_FB_USED", "MiB", Max, dcgm...).read(ReadRatio).of(framebuffer...),
			},
			SignalGPUPower: {
				own(GPUPower, UnitWatts, Sum),
				gauge("DCGM_FI_DEV_POWER_USAGE", UnitWatts, Sum, dcgm...),
			},
			SignalGPUTemperature: {
				own(GPUTemperature, UnitCelsius, Max),
				gauge("DCGM_FI_DEV_GPU_TEMP", UnitCelsius, Max, dcgm...),
			},
		},
	}
}
