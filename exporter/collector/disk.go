package collector

import (
	"firstbreach/exporter/host"
	"firstbreach/internal/signal"

	"github.com/prometheus/client_golang/prometheus"
)

// diskCollector exports what each whole disk has done: the columns of iostat -x.
type diskCollector struct {
	read func() ([]host.Disk, error)

	reads, writes, discards, flushes operation
	inFlight, busy, weighted         metric
}

// operation is the metrics of one kind of operation; a metric without a descriptor is not exported.
type operation struct {
	completed, merged, bytes, seconds metric
}

func newDisk(r *host.Reader) *diskCollector {
	const device = "device"
	return &diskCollector{
		read: r.Disks,
		reads: operation{
			completed: counter(signal.HostDiskReads, "Reads completed.", device),
			merged:    counter(signal.HostDiskReadsMerged, "Reads merged with a neighbour.", device),
			bytes:     counter(signal.HostDiskReadBytes, "Bytes read.", device),
			seconds:   counter(signal.HostDiskReadTime, "Time spent by all reads.", device),
		},
		writes: operation{
			completed: counter(signal.HostDiskWrites, "Writes completed.", device),
			merged:    counter(signal.HostDiskWritesMerged, "Writes merged with a neighbour.", device),
			bytes:     counter(signal.HostDiskWrittenBytes, "Bytes written.", device),
			seconds:   counter(signal.HostDiskWriteTime, "Time spent by all writes.", device),
		},
		discards: operation{
			completed: counter(signal.HostDiskDiscards, "Discards completed.", device),
			merged:    counter(signal.HostDiskDiscardMerged, "Discards merged with a neighbour.", device),
			bytes:     counter(signal.HostDiskDiscardBytes, "Bytes discarded.", device),
			seconds:   counter(signal.HostDiskDiscardTime, "Time spent by all discards.", device),
		},
		flushes: operation{
			completed: counter(signal.HostDiskFlushes, "Flush requests completed.", device),
			seconds:   counter(signal.HostDiskFlushTime, "Time spent by all flush requests.", device),
		},
		inFlight: gauge(signal.HostDiskIONow, "Operations in flight.", device),
		busy:     counter(signal.HostDiskIOTime, "Time with at least one operation in flight.", device),
		weighted: counter(signal.HostDiskIOTimeWeighed, "Integral over time of the operations in flight.", device),
	}
}

// Update implements Collector.
func (c *diskCollector) Update(ch chan<- prometheus.Metric) error {
	disks, err := c.read()
	for _, d := range disks {
		c.reads.send(ch, &d.Reads, d.Device)
		c.writes.send(ch, &d.Writes, d.Device)
		c.discards.send(ch, d.Discards, d.Device)
		c.flushes.send(ch, d.Flushes, d.Device)
		c.inFlight.maybe(ch, d.InFlight, d.Device)
		c.busy.maybe(ch, d.BusySeconds, d.Device)
		c.weighted.maybe(ch, d.WeightedSeconds, d.Device)
	}
	return err
}

func (o operation) send(ch chan<- prometheus.Metric, io *host.IO, device string) {
	if io == nil {
		return
	}
	for _, v := range []struct {
		metric
		value float64
	}{
		{o.completed, float64(io.Completed)},
		{o.merged, float64(io.Merged)},
		{o.bytes, float64(io.Bytes)},
		{o.seconds, io.Seconds},
	} {
		if v.desc != nil {
			v.send(ch, v.value, device)
		}
	}
}
