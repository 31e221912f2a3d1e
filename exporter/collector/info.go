package collector

import (
	"firstbreach/exporter/host"
	"firstbreach/internal/signal"

	"github.com/prometheus/client_golang/prometheus"
)

// infoCollector exports what the machine runs.
type infoCollector struct {
	read   func() (host.Info, error)
	info   metric
	booted metric
}

func newInfo(r *host.Reader) *infoCollector {
	return &infoCollector{
		read:   r.Info,
		booted: gauge(signal.HostBootTime, "When the machine was started."),
		info:   gauge(signal.HostInfo, "What the machine runs; the value is always 1.", "os", "kernel", "arch"),
	}
}

// Update implements Collector.
func (c *infoCollector) Update(ch chan<- prometheus.Metric) error {
	i, err := c.read()
	if err != nil {
		return err
	}
	c.info.send(ch, 1, i.OS, i.Kernel, i.Arch)
	c.booted.maybe(ch, i.Booted)
	return nil
}
