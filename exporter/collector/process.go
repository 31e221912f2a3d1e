package collector

import (
	"strconv"

	"firstbreach/exporter/host"
	"firstbreach/internal/signal"

	"github.com/prometheus/client_golang/prometheus"
)

// processCollector exports the processes that were asked for. Each has series of its own: summed
// over processes of one name, a counter would step back whenever one of them ends.
type processCollector struct {
	read                               func() ([]host.Process, error)
	cpu                                metric
	resident, virtual, threads, begins metric
}

func newProcess(r *host.Reader) *processCollector {
	labels := []string{"name", "pid"}
	return &processCollector{
		read:     r.PickedProcesses,
		cpu:      counter(signal.HostProcessCPU, "CPU time of the process.", "name", "pid", "mode"),
		resident: gauge(signal.HostProcessResident, "Memory of the process that is in RAM.", labels...),
		virtual:  gauge(signal.HostProcessVirtual, "Address space of the process.", labels...),
		threads:  gauge(signal.HostProcessThreads, "Threads of the process.", labels...),
		begins:   gauge(signal.HostProcessStart, "When the process was started.", labels...),
	}
}

// Update implements Collector.
func (c *processCollector) Update(ch chan<- prometheus.Metric) error {
	all, err := c.read()
	for _, p := range all {
		pid := strconv.Itoa(p.PID)
		c.cpu.send(ch, p.User, p.Name, pid, "user")
		c.cpu.send(ch, p.System, p.Name, pid, "system")
		c.resident.send(ch, float64(p.Resident), p.Name, pid)
		c.virtual.send(ch, float64(p.Virtual), p.Name, pid)
		c.threads.maybe(ch, p.Threads, p.Name, pid)
		c.begins.maybe(ch, p.Started, p.Name, pid)
	}
	return err
}
