package gpu

import (
	"cmp"
	"slices"
)

// read reads every GPU. A GPU that can't be read costs only itself; the outcome is not Success
// only when NVML as a whole is lost.
func (w *worker) read() ([]GPU, Return) {
	count, ret := w.driver.Count()
	if ret != Success {
		w.fail("nvmlDeviceGetCount", "", ret)
		return nil, ret
	}
	var gpus []GPU
	seen := map[string]bool{}
	lost := Success
	for i := range count {
		g, ret := w.readOne(i)
		if ret == Uninitialized || ret == DriverNotLoaded {
			return nil, ret
		}
		if ret != Success && ret != GPUIsLost {
			lost = ret
		}
		// Without a UUID there is no identity to export; a second GPU with the same one would
		// make two identical series.
		if g.UUID == "" || seen[g.UUID] {
			continue
		}
		seen[g.UUID] = true
		gpus = append(gpus, g)
	}
	for uuid, g := range w.known {
		if !seen[uuid] {
			g.Reason = GPUIsLost.String()
			if lost != Success {
				g.Reason = lost.String()
			}
			gpus = append(gpus, g)
		}
	}
	slices.SortStableFunc(gpus, func(a, b GPU) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID))
	})
	return gpus, Success
}

// readOne reads one GPU; it returns one without a UUID when it can't be told which it is.
func (w *worker) readOne(index int) (GPU, Return) {
	d, ret := w.driver.Device(index)
	if ret != Success {
		w.fail("nvmlDeviceGetHandleByIndex", "", ret)
		return GPU{}, ret
	}
	uuid, ret := d.UUID()
	if ret != Success || uuid == "" {
		w.fail("nvmlDeviceGetUUID", "", ret)
		return GPU{}, ret
	}
	g := w.identify(uuid, index, d)
	g.Up = true
	for _, read := range []func(*GPU, Device) Return{w.utilization, w.memory, w.power, w.energy, w.temperature} {
		switch ret := read(&g, d); ret {
		case Uninitialized, DriverNotLoaded:
			return g, ret
		case GPUIsLost, GPUNotFound, ResetRequired:
			// What was read of it before is not to be trusted either.
			g = w.known[uuid]
			g.Reason = ret.String()
			return g, Success
		}
	}
	return g, Success
}

// identify returns the GPU without values, from memory when it was seen before.
func (w *worker) identify(uuid string, index int, d Device) GPU {
	g, ok := w.known[uuid]
	if !ok {
		g.UUID = uuid
		g.Name, _ = d.Name()
		g.PCIBusID, _ = d.PCIBusID()
	}
	g.Index = index
	w.known[uuid] = g
	return g
}

func (w *worker) utilization(g *GPU, d Device) Return {
	const function = "nvmlDeviceGetUtilizationRates"
	gpu, memory, ret := d.Utilization()
	if ret != Success {
		w.fail(function, g.UUID, ret)
		return ret
	}
	// Some GPUs under MIG, and some drivers now and then, answer with numbers far over 100 %.
	if gpu > 100 || memory > 100 {
		w.fail(function, g.UUID, Invalid)
		return Invalid
	}
	busy, bus := float64(gpu)/100, float64(memory)/100
	g.Utilization, g.MemoryUtilization = &busy, &bus
	return Success
}

func (w *worker) memory(g *GPU, d Device) Return {
	const function = "nvmlDeviceGetMemoryInfo"
	m, ret := d.Memory()
	if ret != Success {
		w.fail(function, g.UUID, ret)
		return ret
	}
	if m.Total == 0 || m.Used > m.Total {
		w.fail(function, g.UUID, Invalid)
		return Invalid
	}
	g.Memory = &m
	return Success
}

func (w *worker) power(g *GPU, d Device) Return {
	mw, ret := d.Power()
	if ret != Success {
		w.fail("nvmlDeviceGetPowerUsage", g.UUID, ret)
		return ret
	}
	watts := float64(mw) / 1000
	g.PowerWatts = &watts
	return Success
}

func (w *worker) energy(g *GPU, d Device) Return {
	mj, ret := d.Energy()
	if ret != Success {
		w.fail("nvmlDeviceGetTotalEnergyConsumption", g.UUID, ret)
		return ret
	}
	joules := float64(mj) / 1000
	g.EnergyJoules = &joules
	return Success
}

func (w *worker) temperature(g *GPU, d Device) Return {
	const function = "nvmlDeviceGetTemperatureV"
	c, ret := d.Temperature()
	if ret != Success {
		w.fail(function, g.UUID, ret)
		return ret
	}
	if c < -100 || c > 200 {
		w.fail(function, g.UUID, Invalid)
		return Invalid
	}
	celsius := float64(c)
	g.Celsius = &celsius
	return Success
}
