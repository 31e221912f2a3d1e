package collector

import (
	"sync"

	"firstbreach/exporter/host"
	"firstbreach/internal/signal"

	"github.com/prometheus/client_golang/prometheus"
)

// infoCollector exports what the machine runs. None of it changes while it runs, so that it is read
// once: on a machine of many CPUs /proc/stat, which has the time of the start, is the dearest file.
type infoCollector struct {
	read   func() (host.Info, error)
	info   metric
	booted metric

	mu   sync.Mutex
	last *host.Info
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
	i, err := c.once()
	if err != nil {
		return err
	}
	c.info.send(ch, 1, i.OS, i.Kernel, i.Arch)
	c.booted.maybe(ch, i.Booted)
	return nil
}

// once is the first reading that went well.
func (c *infoCollector) once() (host.Info, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		i, err := c.read()
		if err != nil {
			return i, err
		}
		c.last = &i
	}
	return *c.last, nil
}
