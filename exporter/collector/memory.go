package collector

import (
	"firstbreach/exporter/host"
	"firstbreach/internal/signal"

	"github.com/prometheus/client_golang/prometheus"
)

// memoryCollector exports the size and use of memory and swap.
type memoryCollector struct {
	read func() (host.Memory, error)

	total, available, free        metric
	buffers, cached, sreclaimable metric
	swapTotal, swapFree           metric
}

func newMemory(r *host.Reader) *memoryCollector {
	return &memoryCollector{
		read:         r.Memory,
		total:        gauge(signal.HostMemoryTotal, "Memory of the machine."),
		available:    gauge(signal.HostMemoryAvailable, "Memory that could be given to a new process without swapping."),
		free:         gauge(signal.HostMemoryFree, "Memory that nothing uses."),
		buffers:      gauge(signal.HostMemoryBuffers, "Memory that buffers block devices."),
		cached:       gauge(signal.HostMemoryCached, "Memory that caches files."),
		sreclaimable: gauge(signal.HostMemorySReclaimable, "Memory of kernel caches that can be reclaimed."),
		swapTotal:    gauge(signal.HostSwapTotal, "Size of swap."),
		swapFree:     gauge(signal.HostSwapFree, "Swap that is not in use."),
	}
}

// Update implements Collector.
func (c *memoryCollector) Update(ch chan<- prometheus.Metric) error {
	m, err := c.read()
	if err != nil {
		return err
	}
	c.total.bytes(ch, m.Total)
	c.available.bytes(ch, m.Available)
	c.free.bytes(ch, m.Free)
	c.buffers.bytes(ch, m.Buffers)
	c.cached.bytes(ch, m.Cached)
	c.sreclaimable.bytes(ch, m.SReclaimable)
	c.swapTotal.bytes(ch, m.SwapTotal)
	c.swapFree.bytes(ch, m.SwapFree)
	return nil
}

// pagingCollector exports what has moved between memory and disk.
type pagingCollector struct {
	read func() (host.Paging, error)

	swapIn, swapOut, pagedIn, pagedOut metric
}

func newPaging(r *host.Reader) *pagingCollector {
	return &pagingCollector{
		read:     r.Paging,
		swapIn:   counter(signal.HostSwapIn, "Bytes read back from swap."),
		swapOut:  counter(signal.HostSwapOut, "Bytes written to swap."),
		pagedIn:  counter(signal.HostPagedIn, "Bytes read from block devices."),
		pagedOut: counter(signal.HostPagedOut, "Bytes written to block devices."),
	}
}

// Update implements Collector.
func (c *pagingCollector) Update(ch chan<- prometheus.Metric) error {
	p, err := c.read()
	c.swapIn.bytes(ch, p.SwapIn)
	c.swapOut.bytes(ch, p.SwapOut)
	c.pagedIn.bytes(ch, p.PagedIn)
	c.pagedOut.bytes(ch, p.PagedOut)
	return err
}
