package collector

import (
	"firstbreach/exporter/host"
	"firstbreach/internal/signal"

	"github.com/prometheus/client_golang/prometheus"
)

// pressureCollector exports for how long tasks have waited for a resource.
type pressureCollector struct {
	read       func() ([]host.Pressure, error)
	some, full metric
}

func newPressure(r *host.Reader) *pressureCollector {
	return &pressureCollector{
		read: r.Pressure,
		some: counter(signal.HostPressureSome, "Time in which at least one task waited for the resource.", "resource"),
		full: counter(signal.HostPressureFull, "Time in which all tasks waited for the resource.", "resource"),
	}
}

// Update implements Collector.
func (c *pressureCollector) Update(ch chan<- prometheus.Metric) error {
	all, err := c.read()
	for _, p := range all {
		c.some.maybe(ch, p.Some, p.Resource)
		c.full.maybe(ch, p.Full, p.Resource)
	}
	return err
}

// loadCollector exports the load average.
type loadCollector struct {
	read func() (host.Load, error)
	load metric
}

func newLoad(r *host.Reader) *loadCollector {
	return &loadCollector{
		read: r.Load,
		load: gauge(signal.HostLoadAverage, "Tasks that ran, could run or waited for a disk, on average over the minutes.", "minutes"),
	}
}

// Update implements Collector.
func (c *loadCollector) Update(ch chan<- prometheus.Metric) error {
	load, err := c.read()
	if err != nil {
		return err
	}
	for i, minutes := range []string{"1", "5", "15"} {
		c.load.send(ch, load[i], minutes)
	}
	return nil
}
