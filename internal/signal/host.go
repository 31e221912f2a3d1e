package signal

// Host returns the names of host metrics: the exporter's own first, then node_exporter's.
func Host() *Engine {
	idle := []string{"idle", "iowait"}
	cpu := func(name string) Metric {
		return counter(name, UnitSeconds, "cpu", "mode").match("mode", idle...).read(ReadRateRemainder).of(Term{Name: name}).
			note("guest time is in user and nice already, so it is no mode of its own")
	}
	memory := func(total, available string) (used, share Metric) {
		m := gauge(available, UnitBytes, Sum).of(Term{Name: total})
		return m.read(ReadRemainder), m.read(ReadRemainderRatio)
	}
	used, share := memory(HostMemoryTotal, HostMemoryAvailable)
	nodeUsed, nodeShare := memory("node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes")
	swap := func(total, free string) Metric {
		return gauge(free, UnitBytes, Sum).read(ReadRemainder).of(Term{Name: total})
	}
	disk := func(name, unit string) Metric {
		return counter(name, unit, "device").note("a device-mapper or RAID device counts beside the disks under it")
	}
	busy := func(name string) Metric {
		m := disk(name, UnitSeconds)
		m.Aggregate = Max
		return m.note("the kernel can count a little more than a second in a second")
	}
	return &Engine{
		Name: SourceHost, Title: "the exporter", Layer: LayerResource,
		candidates: map[string][]Metric{
			SignalCPUUtilization:    {cpu(HostCPUSeconds), cpu("node_cpu_seconds_total")},
			SignalMemoryUsed:        {used, nodeUsed},
			SignalMemoryUtilization: {share, nodeShare},
			SignalSwapUsed:          {swap(HostSwapTotal, HostSwapFree), swap("node_memory_SwapTotal_bytes", "node_memory_SwapFree_bytes")},
			SignalDiskUtilization:   {busy(HostDiskIOTime), busy("node_disk_io_time_seconds_total")},
			SignalDiskRead:          {disk(HostDiskReadBytes, UnitBytes), disk("node_disk_read_bytes_total", UnitBytes)},
			SignalDiskWritten:       {disk(HostDiskWrittenBytes, UnitBytes), disk("node_disk_written_bytes_total", UnitBytes)},
			SignalProcsBlocked:      {gauge(HostProcsBlocked, UnitProcesses, Sum), gauge("node_procs_blocked", UnitProcesses, Sum)},
		},
	}
}
