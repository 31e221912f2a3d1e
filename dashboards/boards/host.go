package boards

import (
	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/dashboards/board"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
)

// HostUID is the uid of the host dashboard.
const HostUID = "firstbreach-gpu-host"

// Host is the dashboard of machines that the exporter runs on: GPUs first, then CPU, memory, disks.
func Host() board.Board {
	return board.Board{
		UID: HostUID, Title: "GPU hosts",
		Description: "Machines that the exporter runs on. A change here alone is a clue, never a cause.",
		From:        "now-3h",
		Variables: []board.Variable{
			{Name: "job", Label: "Job", Query: "label_values(" + signal.HostInfo + ", job)"},
			{Name: "instance", Label: "Instance", Query: "label_values(" + signal.HostInfo + `{job=~"$job"}, instance)`},
			{Name: "gpu", Label: "GPU", Query: "label_values(" + signal.GPUInfo + `{job=~"$job",instance=~"$instance"}, uuid)`},
		},
		Rows: []board.Row{
			{Title: "GPU", Panels: gpuPanels()},
			{Title: "CPU and memory", Panels: cpuPanels()},
			{Title: "Disks", Panels: diskPanels()},
		},
	}
}

const noGPU = "No GPU is seen: nvidia_gpu_up and nvml_down_info say why"

func onHost(name string, ms ...promexpr.Matcher) *parser.VectorSelector {
	return promexpr.Select(name, append(chosen(), ms...)...)
}

func onGPU(name string) *parser.VectorSelector { return onHost(name, promexpr.Like("uuid", "$gpu")) }

// gpuPanel draws one reading of each GPU.
func gpuPanel(heading, help, unit string, e promexpr.Expr) board.Panel {
	return board.Panel{Title: heading, Description: help, Unit: unit, Width: 8, Height: 7, Min: number(0), NoValue: noGPU,
		Queries: []board.Query{{Expr: print(e), Legend: "{{instance}} {{uuid}}"}}}
}

func gpuPanels() []board.Panel {
	share := promexpr.Div(onGPU(signal.GPUMemoryUsed), onGPU(signal.GPUMemoryTotal))
	inventory := board.Panel{Kind: board.Table, Title: "GPUs", Description: "What is there. Up is 0 for a GPU that is hung or lost; its other series are then missing.", Unit: board.NoUnit, Width: 24, Height: 6, NoValue: noGPU,
		Queries: []board.Query{{Expr: onGPU(signal.GPUInfo).String(), Instant: true}, {Expr: onGPU(signal.GPUUp).String(), Instant: true}},
		Columns: []board.Column{
			{Field: "instance", Title: "Instance"}, {Field: "gpu", Title: "GPU"}, {Field: "name", Title: "Name", Wide: true}, {Field: "uuid", Title: "UUID", Wide: true},
			{Field: "driver", Title: "Driver"}, {Field: "Value #B", Title: "Up", Unit: board.NoUnit, Bound: &board.Bound{Value: 1, Below: true}},
		}}
	return []board.Panel{
		inventory,
		gpuPanel("Utilisation", "Share of time in which a kernel ran. It says nothing of how full the GPU was.", board.Share, onGPU(signal.GPUUtilization)),
		gpuPanel("Memory in use", "Of all its memory. A serving engine takes most of it at its start, whatever the load.", board.Share, share),
		gpuPanel("Memory bus", "Share of time in which memory was read or written.", board.Share, onGPU(signal.GPUMemoryUtilization)),
		gpuPanel("Power", "A GPU at its limit lowers its clock.", board.Watts, onGPU(signal.GPUPower)),
		gpuPanel("Temperature", "Of the chip.", board.Celsius, onGPU(signal.GPUTemperature)),
		gpuPanel("Energy", "Power as the energy counter has it: no spike is lost between two samples.", board.Watts, rate(onGPU(signal.GPUEnergy))),
	}
}

// hostPanel draws something of each machine.
func hostPanel(heading, help, unit string, queries ...board.Query) board.Panel {
	return board.Panel{Title: heading, Description: help, Unit: unit, Width: 8, Height: 7, Min: number(0), Queries: queries}
}

func cpuPanels() []board.Panel {
	byMode := promexpr.SumBy(rate(onHost(signal.HostCPUSeconds, promexpr.NotEq("mode", "idle"))), "mode")
	used := promexpr.Sub(onHost(signal.HostMemoryTotal), onHost(signal.HostMemoryAvailable))
	swap := promexpr.Sub(onHost(signal.HostSwapTotal), onHost(signal.HostSwapFree))
	q := func(e promexpr.Expr, legend string) board.Query { return board.Query{Expr: print(e), Legend: legend} }
	cpu := hostPanel("CPU seconds a second, by mode", "Of all machines that are chosen: as many as they have CPUs is all there is.", board.Short, q(byMode, "{{mode}}"))
	cpu.Stacked = true
	return []board.Panel{
		cpu,
		hostPanel("Processes", "Running and waiting for a CPU; blocked, waiting for I/O.", board.Short, q(onHost(signal.HostProcsRunning), "{{instance}} running"), q(onHost(signal.HostProcsBlocked), "{{instance}} blocked")),
		hostPanel("Context switches and interrupts", "A second.", board.OpsPS, q(rate(onHost(signal.HostContextSwitches)), "{{instance}} context switches"), q(rate(onHost(signal.HostInterrupts)), "{{instance}} interrupts")),
		hostPanel("Memory in use", "What could not be given to a new process.", board.Bytes, q(used, "{{instance}}")),
		hostPanel("Swap in use", "Pages that were put out to disk.", board.Bytes, q(swap, "{{instance}}")),
		hostPanel("Swap traffic", "A model that is swapped answers late and recovers late.", board.BytesPS, q(rate(onHost(signal.HostSwapIn)), "{{instance}} in"), q(rate(onHost(signal.HostSwapOut)), "{{instance}} out")),
	}
}

func diskPanels() []board.Panel {
	q := func(e promexpr.Expr, legend string) board.Query { return board.Query{Expr: print(e), Legend: legend} }
	wait := func(time, done string) promexpr.Expr {
		return promexpr.Div(rate(onHost(time)), promexpr.Above(rate(onHost(done)), 0))
	}
	idle := "No I/O"
	reads := hostPanel("Time per read", "What iostat calls r_await.", board.Seconds, q(wait(signal.HostDiskReadTime, signal.HostDiskReads), "{{instance}} {{device}}"))
	writes := hostPanel("Time per write", "What iostat calls w_await.", board.Seconds, q(wait(signal.HostDiskWriteTime, signal.HostDiskWrites), "{{instance}} {{device}}"))
	reads.NoValue, writes.NoValue = idle, idle
	return []board.Panel{
		hostPanel("Busy", "Share of time with I/O in flight. 1 does not mean saturated on a parallel device.", board.Share, q(rate(onHost(signal.HostDiskIOTime)), "{{instance}} {{device}}")),
		hostPanel("Read", "Bytes read a second.", board.BytesPS, q(rate(onHost(signal.HostDiskReadBytes)), "{{instance}} {{device}}")),
		hostPanel("Written", "Bytes written a second.", board.BytesPS, q(rate(onHost(signal.HostDiskWrittenBytes)), "{{instance}} {{device}}")),
		reads, writes,
		hostPanel("Queue", "Requests waiting or in service; iostat's aqu-sz.", board.Short, q(rate(onHost(signal.HostDiskIOTimeWeighed)), "{{instance}} {{device}}")),
	}
}
