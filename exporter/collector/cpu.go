package collector

import (
	"firstbreach/exporter/host"
	"firstbreach/internal/signal"

	"github.com/prometheus/client_golang/prometheus"
)

// hotplugSeconds is the step back of a CPU's idle time from which it is taken for a CPU that was
// taken out and put back, whose counters began anew.
const hotplugSeconds = 3.0

// cpuCollector exports the time of each CPU.
type cpuCollector struct {
	read func() (host.CPU, error)
	last map[string]host.CPUTime // by CPU; only Update uses it, and never twice at once

	seconds, guest       metric
	running, blocked     metric
	interrupts, switches metric
}

func newCPU(r *host.Reader) *cpuCollector {
	return &cpuCollector{
		read:       r.CPU,
		last:       map[string]host.CPUTime{},
		seconds:    counter(signal.HostCPUSeconds, "Time each CPU spent in each mode. Time given to guests is in user and nice.", "cpu", "mode"),
		guest:      counter(signal.HostCPUGuestSeconds, "Part of the user and nice time that went to guests.", "cpu", "mode"),
		running:    gauge(signal.HostProcsRunning, "Processes that run or could run."),
		blocked:    gauge(signal.HostProcsBlocked, "Processes that are blocked by I/O."),
		interrupts: counter(signal.HostInterrupts, "Interrupts served."),
		switches:   counter(signal.HostContextSwitches, "Switches from one process to another."),
	}
}

// Update implements Collector.
func (c *cpuCollector) Update(ch chan<- prometheus.Metric) error {
	cpu, err := c.read()
	if err != nil {
		return err
	}
	now := map[string]host.CPUTime{}
	for _, t := range cpu.Times {
		if last, ok := c.last[t.CPU]; ok {
			t = forward(last, t)
		}
		now[t.CPU] = t
		c.send(ch, t)
	}
	c.last = now
	c.running.maybe(ch, cpu.ProcsRunning)
	c.blocked.maybe(ch, cpu.ProcsBlocked)
	c.interrupts.maybe(ch, cpu.Interrupts)
	c.switches.maybe(ch, cpu.ContextSwitches)
	return nil
}

func (c *cpuCollector) send(ch chan<- prometheus.Metric, t host.CPUTime) {
	for mode, v := range map[string]float64{
		"user": t.User, "nice": t.Nice, "system": t.System, "idle": t.Idle,
		"iowait": t.IOWait, "irq": t.IRQ, "softirq": t.SoftIRQ, "steal": t.Steal,
	} {
		c.seconds.send(ch, v, t.CPU, mode)
	}
	c.guest.send(ch, t.Guest, t.CPU, "user")
	c.guest.send(ch, t.GuestNice, t.CPU, "nice")
}

// forward keeps a CPU's counters from running backwards: the kernel computes idle and iowait in
// ways that let them step back a little, which Prometheus would take for a restart and count the
// whole value as new. A large step is a CPU whose counters did begin anew.
func forward(last, now host.CPUTime) host.CPUTime {
	if last.Idle-now.Idle >= hotplugSeconds {
		return now
	}
	return host.CPUTime{
		CPU:  now.CPU,
		User: max(last.User, now.User), Nice: max(last.Nice, now.Nice), System: max(last.System, now.System),
		Idle: max(last.Idle, now.Idle), IOWait: max(last.IOWait, now.IOWait),
		IRQ: max(last.IRQ, now.IRQ), SoftIRQ: max(last.SoftIRQ, now.SoftIRQ), Steal: max(last.Steal, now.Steal),
		Guest: max(last.Guest, now.Guest), GuestNice: max(last.GuestNice, now.GuestNice),
	}
}
