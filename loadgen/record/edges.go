package record

import (
	"slices"
	"time"

	"firstbreach/internal/slo"
)

// Classic bucket edges, in seconds. They serve a Prometheus without native histograms, and give
// people round numbers to read; a verdict reads only the edge at its own threshold, which
// withThresholds puts in. About twenty a histogram keep a step's series in the hundreds.

func ttftEdges() []float64 {
	return []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 60}
}

func durationEdges() []float64 {
	return []float64{.05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 4, 5, 7.5, 10, 15, 20, 30, 45, 60, 90, 120, 300}
}

func tokenEdges() []float64 {
	return []float64{.001, .0025, .005, .0075, .01, .015, .02, .025, .03, .04, .05, .06, .075, .1, .125, .15, .2, .3, .5, .75, 1, 2.5, 10}
}

func dispatchEdges() []float64 {
	return []float64{.00001, .00002, .00005, .0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5}
}

// withThresholds adds an exact edge at every threshold, and one at twice the greatest where that
// lies at the end: with a threshold as the last finite edge no quantile could ever exceed it.
func withThresholds(edges []float64, thresholds []time.Duration) []float64 {
	last := edges[len(edges)-1]
	for _, t := range thresholds {
		edges = append(edges, t.Seconds())
		if t.Seconds() >= last {
			last = 2 * t.Seconds()
		}
	}
	edges = append(edges, last)
	slices.Sort(edges)
	return slices.Compact(edges)
}

// thresholdsOf lists the thresholds of the latency objectives on one signal.
func thresholdsOf(objectives []slo.Objective, signal string) []time.Duration {
	var ts []time.Duration
	for _, o := range objectives {
		if o.Kind == slo.Latency && o.Signal == signal {
			ts = append(ts, o.Threshold)
		}
	}
	return ts
}
