package calibrate

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// WriteTable prints one line for each number of streams.
func WriteTable(w io.Writer, levels []Level) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "streams\tchunks/s\tTTFT error p50\tp99\tmax\tchunk error p50\tp99\tmax\tlate\tfailed\tCPU per chunk\tmemory\tstamps\t")
	for _, l := range levels {
		fmt.Fprintf(t, "%d\t%.0f\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f %%\t%d of %d\t%s\t%.0f MiB\t%s\t\n", l.Streams, l.ChunksPerSecond,
			short(l.TTFT.P50), short(l.TTFT.P99), short(l.TTFT.Max), short(l.Chunk.P50), short(l.Chunk.P99), short(l.Chunk.Max),
			100*l.LateShare, l.Failed, l.Requests, short(l.CPUPerChunk), float64(l.Memory)/(1<<20), l.StampSource)
	}
	return t.Flush()
}

// short writes seconds with three digits and a unit.
func short(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3gs", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3gms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.3gµs", float64(d)/float64(time.Microsecond))
}
