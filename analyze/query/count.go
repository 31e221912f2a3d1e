package query

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/figures"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// edge is the classic bucket edge of one latency objective.
type edge struct {
	objective slo.Objective
	metric    string
	spellings []string  // of le, as this Prometheus writes it; empty when there is no such edge
	edges     []float64 // finite edges that are there, rising
	buckets   bool      // whether there is any bucket at all

	within map[*step]latency // values at or below the threshold
}

// edgeQuestions ask which bucket edges there are, once for each histogram with an objective or quantiles.
// Prometheus 3 writes "1.0", older ones "1", and either may be asked.
func (l *loader) edgeQuestions() []question {
	var qs []question
	for _, h := range histograms() {
		var on []slo.Objective
		for _, o := range l.SLO.Objectives {
			if o.Kind == slo.Latency && o.Signal == h.signal {
				on = append(on, o)
			}
		}
		if len(on) == 0 && !h.shown {
			continue
		}
		qs = append(qs, question{
			name: "bucket edges of " + h.metric, label: labelLE, expr: l.own(h.metric + suffixBucket), at: l.until, back: l.span,
			take: func(a answer) error {
				for _, o := range on {
					l.edges = append(l.edges, findEdge(o, h.metric, a.values))
				}
				for _, le := range finiteEdges(a.values) {
					l.lastEdge[h.metric] = max(l.lastEdge[h.metric], le)
				}
				return nil
			},
		})
	}
	return qs
}

// findEdge looks an objective's threshold up among the values of le.
func findEdge(o slo.Objective, metric string, values model.LabelValues) edge {
	e := edge{objective: o, metric: metric, buckets: len(values) > 0, within: map[*step]latency{}}
	threshold := o.Threshold.Seconds()
	for text, le := range finiteEdges(values) {
		e.edges = append(e.edges, le)
		// A duration turned into seconds may be off in the last digit.
		if math.Abs(le-threshold) <= 1e-9*threshold {
			e.spellings = append(e.spellings, text)
		}
	}
	slices.Sort(e.edges)
	slices.Sort(e.spellings)
	e.edges = slices.Compact(e.edges)
	return e
}

// finiteEdges are the bucket edges among the values of le, by how they are written.
func finiteEdges(values model.LabelValues) map[string]float64 {
	edges := map[string]float64{}
	for _, v := range values {
		if le, err := strconv.ParseFloat(string(v), 64); err == nil && !math.IsInf(le, 0) && !math.IsNaN(le) {
			edges[string(v)] = le
		}
	}
	return edges
}

// missing says why there is no bucket at the threshold, and what to change.
func (e edge) missing(f form) string {
	switch {
	case len(e.spellings) > 0:
		return fmt.Sprintf("no samples of %s%s{le=%q} for this step", e.metric, suffixBucket, e.spellings[0])
	case !e.buckets && f.native > 0:
		return fmt.Sprintf("Prometheus has %s as a native histogram only, without the bucket edge at %s: set `always_scrape_classic_histograms: true` in loadgen's scrape configuration and run again",
			e.metric, e.objective.Threshold)
	case !e.buckets:
		return "Prometheus has no samples of " + e.metric
	}
	return fmt.Sprintf("%s has no bucket edge at %s (le=%q; the edges are %s): loadgen puts one at every threshold of the SLO file that it is started with, so run it with this SLO file, and don't drop buckets in Prometheus",
		e.metric, e.objective.Threshold, formatFloat(e.objective.Threshold.Seconds()), e.around())
}

// around lists the edges on both sides of the threshold.
func (e edge) around() string {
	i, _ := slices.BinarySearch(e.edges, e.objective.Threshold.Seconds())
	var near []string
	for _, le := range e.edges[max(0, i-1):min(len(e.edges), i+1)] {
		near = append(near, formatFloat(le))
	}
	switch {
	case len(near) == 0:
		return "+Inf alone"
	case i == 0:
		return near[0] + " and up"
	case i == len(e.edges):
		return "up to " + near[0]
	}
	return "…, " + strings.Join(near, ", ") + ", …"
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// bucketQuestion asks how many values lie at or below the threshold.
func (l *loader) bucketQuestion(e edge) question {
	return question{
		name: "within the threshold of " + e.objective.Name, at: l.until,
		expr: promexpr.MaxBy(l.last(e.metric+suffixBucket, measured(), promexpr.OneOf(labelLE, e.spellings...)), stepLabels()...),
		take: func(a answer) error {
			return l.each(a, func(s *step, _ model.Metric, v float64) {
				n := e.within[s]
				e.within[s] = latency{n.count + whole(v), n.shards + 1}
			})
		},
	}
}

// histogramQuestions ask for the counts and sums that are used, and for what lies within each
// threshold.
func (l *loader) histogramQuestions() []question {
	var qs []question
	for _, h := range histograms() {
		if h.signal == signal.SignalTPOT || slices.ContainsFunc(l.edges, func(e edge) bool { return e.metric == h.metric }) {
			qs = append(qs, l.countQuestion(h))
		}
		if h.shown {
			qs = append(qs, l.sumQuestion(h))
		}
	}
	for _, e := range l.edges {
		if len(e.spellings) > 0 {
			qs = append(qs, l.bucketQuestion(e))
		}
	}
	return qs
}

// fillCounts computes the counts of every per-request objective.
func (l *loader) fillCounts() {
	for _, s := range l.steps {
		s.Counts = map[string]verdict.Count{}
		for _, e := range l.edges {
			s.Counts[e.objective.Name] = s.latencyCount(e, l.forms[e.metric])
		}
		s.outcomeCounts(l.SLO.Objectives)
	}
}

// takeCount adds a histogram's count to the steps, over their shards.
func (l *loader) takeCount(h histogram, a answer) error {
	return l.each(a, func(s *step, _ model.Metric, v float64) {
		x := s.values[h.metric]
		s.values[h.metric] = latency{x.count + whole(v), x.shards + 1}
		if h.signal == signal.SignalTPOT {
			s.CountTPOT = s.values[h.metric].count
		}
	})
}

// takeSum adds a histogram's sum to the steps, over their shards.
func (l *loader) takeSum(h histogram, a answer) error {
	return l.each(a, func(s *step, _ model.Metric, v float64) {
		switch h.signal {
		case signal.SignalTTFT:
			s.SumTTFT += v
		case signal.SignalDuration:
			s.SumE2E += v
		case signal.SignalTPOT:
			s.SumTPOT += v
		}
	})
}

// notScraped is why a step has no count at all.
const notScraped = "Prometheus has no samples of this step: it was not scraped"

// latencyCount is design's rule: bad = slow + failed, of the values and the failed together.
func (s *step) latencyCount(e edge, f form) verdict.Count {
	within, found := e.within[s]
	all, counted := s.values[e.metric]
	undefined := s.undefined[e.objective.Name]
	switch {
	case s.Outcomes == nil:
		return verdict.Count{Missing: notScraped}
	case !found:
		return verdict.Count{Undefined: undefined, Missing: e.missing(f)}
	case !counted:
		return verdict.Count{Undefined: undefined, Missing: fmt.Sprintf("no samples of %s%s for this step", e.metric, suffixCount)}
	case within.shards != all.shards:
		return verdict.Count{Undefined: undefined, Missing: fmt.Sprintf("%d of %d load generators have no bucket edge at %s: run them all with the same SLO file",
			all.shards-within.shards, all.shards, e.objective.Threshold)}
	case within.count > all.count:
		return s.incomplete(undefined, "%s counts %d values within %s but only %d in all: samples are missing",
			e.metric, within.count, e.objective.Threshold, all.count)
	}
	if late := s.behind(e); late > 0 {
		return s.incomplete(undefined, "the last scrape is only partly there: %s%s{le=%q} ends %s s before %s%s: samples are missing",
			e.metric, suffixBucket, e.spellings[0], figures.Write(late, 3), e.metric, suffixCount)
	}
	// A request has many gaps between chunks, but one value of anything else.
	if ok := s.Outcomes[string(wire.OK)]; e.objective.Signal != slo.SignalICL && all.count+undefined != ok {
		return s.incomplete(undefined, "%s holds %d values and %d requests had none, but %d requests were ok: samples are missing",
			e.metric, all.count, undefined, ok)
	}
	slow, late, failed := all.count-within.count, s.window(string(record.Measure)).late[e.objective.Name], s.failed()
	if late > slow {
		return s.incomplete(undefined, "%d values of %s were read too late to tell, but only %d are over %s: samples are missing",
			late, e.metric, slow, e.objective.Threshold)
	}
	return verdict.Count{Total: all.count + failed, Slow: slow, Failed: failed, Undefined: undefined, Late: late}
}

// incomplete is no count, because samples of this step in this round are missing; that is no setting, which
// would hold for the whole run.
func (s *step) incomplete(undefined int64, format string, args ...any) verdict.Count {
	why := fmt.Sprintf(format, args...)
	s.Incomplete = append(s.Incomplete, why)
	return verdict.Count{Undefined: undefined, Missing: why}
}

// behind is by how many seconds the bucket at the threshold ends before the count of the same histogram, in
// any load generator. A scrape carries both, but a store may have taken only a part of it: the values that
// the bucket lacks would be read as slow.
func (s *step) behind(e edge) float64 {
	ends := func(name string) map[string]float64 {
		by := map[string]float64{}
		for _, t := range s.counters[name] {
			if n := len(t.points); n > 0 {
				shard := string(t.labels[labelShard])
				by[shard] = max(by[shard], t.points[n-1].T)
			}
		}
		return by
	}
	most, within := 0.0, ends(withinOf(e))
	for shard, end := range ends(e.metric) {
		if at, ok := within[shard]; ok {
			most = max(most, end-at)
		}
	}
	return most
}

// outcomeCounts fills the counts of the objectives that only look at how requests ended.
func (s *step) outcomeCounts(objectives []slo.Objective) {
	for _, o := range objectives {
		if o.Kind != slo.Success && o.Kind != slo.Timeouts {
			continue
		}
		if s.Outcomes == nil {
			s.Counts[o.Name] = verdict.Count{Missing: notScraped}
			continue
		}
		failed := s.failed()
		c := verdict.Count{Total: failed + s.Outcomes[string(wire.OK)], Failed: failed}
		if o.Kind == slo.Timeouts {
			c.Failed = s.Outcomes[string(wire.Timeout)]
		}
		s.Counts[o.Name] = c
	}
}

// failed counts the measured requests that failed: all outcomes but ok and aborted.
func (s *step) failed() int64 {
	var n int64
	for outcome, count := range s.Outcomes {
		if wire.Outcome(outcome).Failed() {
			n += count
		}
	}
	return n
}

// whole is a counter's value as a number of things.
func whole(v float64) int64 { return int64(math.Round(v)) }
