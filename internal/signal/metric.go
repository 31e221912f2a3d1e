package signal

import (
	"math"
	"strings"
)

// Type is a metric's type on the page.
type Type string

// The types of the exposition format that engines use.
const (
	Gauge     Type = "gauge"
	Counter   Type = "counter"
	Histogram Type = "histogram"
	Summary   Type = "summary"
)

// Reading says how a metric's samples become the signal's value. In the formulas m is the metric,
// of the sum of the terms of Of, and the result is then multiplied by Scale.
type Reading string

// The readings.
const (
	ReadValue          Reading = "value"                // m
	ReadRate           Reading = "rate"                 // rate(m)
	ReadMean           Reading = "mean"                 // rate(m_sum) / rate(m_count)
	ReadRatio          Reading = "ratio"                // m / of
	ReadRateRatio      Reading = "rate_ratio"           // rate(m) / rate(of)
	ReadRemainder      Reading = "remainder"            // of − m
	ReadRemainderRatio Reading = "remainder_ratio"      // 1 − m / of
	ReadRateRemainder  Reading = "rate_remainder_ratio" // 1 − rate(m) / rate(of)
)

// Aggregate says how the several series of one metric (data-parallel ranks, disks, GPUs,
// replicas) become one value.
type Aggregate string

// The aggregates. With Sum a ratio is the ratio of the sums; with Max it is taken series by
// series, and the greatest counts.
const (
	Sum Aggregate = "sum"
	Max Aggregate = "max"
)

// Term selects series: those of the metric Name whose labels have one of the values of Match and
// none of the values of Except.
type Term struct {
	Name   string
	Match  map[string][]string
	Except map[string][]string
	// MayBeAbsent is set where no series exists before the first event: absent reads as 0.
	MayBeAbsent bool
}

// Metric is one candidate for a signal: a name on an engine's page and how to read it.
type Metric struct {
	Term
	Type      Type
	Unit      string  // as exported: seconds, us, MiB, percent …
	Scale     float64 // exported unit × Scale = the signal's unit
	Labels    []string
	Buckets   []float64 // upper edges of a classic histogram as exported, without +Inf; nil when unknown
	Since     string    // first release known to have it; "" when it always had it or that isn't known
	Until     string    // first release that no longer shows it by default; "" when it still does
	Aggregate Aggregate
	Reading   Reading
	Of        []Term // what a ratio or remainder is taken of
	Optional  bool   // off by default, or not in every build
	// Alias marks the name that an exporter or proxy gives the candidate before it: a page has one
	// of the two, never both.
	Alias bool
	Note  string
}

// Family returns the name of the family that holds the metric on a page, given its type there: a
// name such as x_sum or x_count belongs to a histogram x.
func (t Term) Family(hasFamily func(string) bool) (string, bool) {
	if hasFamily(t.Name) {
		return t.Name, true
	}
	for _, suffix := range []string{"_sum", "_count", "_bucket"} {
		if base, ok := strings.CutSuffix(t.Name, suffix); ok && hasFamily(base) {
			return base, true
		}
	}
	return "", false
}

// Edges returns the bucket edges in the signal's unit, in rising order; nil when unknown.
func (m Metric) Edges() []float64 {
	if m.Buckets == nil {
		return nil
	}
	edges := make([]float64, len(m.Buckets))
	for i, b := range m.Buckets {
		edges[i] = b * m.Scale
	}
	return edges
}

// NearestEdge returns the bucket edge nearest to a threshold given in the signal's unit, also in
// that unit, and whether the threshold is on it. Of two equally near edges it returns the lower:
// the stricter one. ok is false when the edges aren't known.
func (m Metric) NearestEdge(threshold float64) (edge float64, exact, ok bool) {
	for _, e := range m.Edges() {
		if !ok || math.Abs(e-threshold) < math.Abs(edge-threshold) {
			edge, ok = e, true
		}
	}
	// Scaling costs a rounding in the last digit; real edges are never that close together.
	exact = ok && math.Abs(edge-threshold) <= 1e-9*math.Max(math.Abs(edge), math.Abs(threshold))
	return edge, exact, ok
}
