package query

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"firstbreach/analyze/verdict"
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
}

// latencyObjectives are the per-request objectives on a latency.
func (l *loader) latencyObjectives() []slo.Objective {
	var out []slo.Objective
	for _, o := range l.SLO.Objectives {
		if o.Kind == slo.Latency && latencyMetric(o.Signal) != "" {
			out = append(out, o)
		}
	}
	return out
}

// edgeQuestions ask which bucket edges there are, once for each histogram with an objective.
// Prometheus 3 writes "1.0", older ones "1", and either may be asked.
func (l *loader) edgeQuestions() (metrics []string, qs []question) {
	for _, o := range l.latencyObjectives() {
		metric := latencyMetric(o.Signal)
		if slices.Contains(metrics, metric) {
			continue
		}
		metrics = append(metrics, metric)
		qs = append(qs, question{
			name: "bucket edges of " + metric, label: labelLE, expr: l.own(metric + suffixBucket), at: l.until, back: l.span,
		})
	}
	return metrics, qs
}

// findEdge looks an objective's threshold up among the values of le.
func findEdge(o slo.Objective, values model.LabelValues) edge {
	e := edge{objective: o, metric: latencyMetric(o.Signal), buckets: len(values) > 0}
	threshold := o.Threshold.Seconds()
	for _, v := range values {
		le, err := strconv.ParseFloat(string(v), 64)
		if err != nil || math.IsInf(le, 0) || math.IsNaN(le) {
			continue
		}
		e.edges = append(e.edges, le)
		// A duration turned into seconds may be off in the last digit.
		if math.Abs(le-threshold) <= 1e-9*threshold {
			e.spellings = append(e.spellings, string(v))
		}
	}
	slices.Sort(e.edges)
	slices.Sort(e.spellings)
	e.edges = slices.Compact(e.edges)
	return e
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
	}
}

// readCounts reads sums, counts and buckets and fills the counts of every per-request objective.
func (l *loader) readCounts(ctx context.Context, edges []edge) error {
	var qs []question
	for _, h := range histograms() {
		qs = append(qs, l.countQuestion(h, l.forms[h.metric]), l.sumQuestion(h, l.forms[h.metric]))
	}
	var found []edge
	for _, e := range edges {
		if len(e.spellings) > 0 {
			found = append(found, e)
			qs = append(qs, l.bucketQuestion(e))
		}
	}
	as, err := l.ask(ctx, qs...)
	if err != nil {
		return err
	}
	for i, h := range histograms() {
		if err := l.takeHistogram(h, as[2*i], as[2*i+1]); err != nil {
			return err
		}
	}
	within := map[string]map[*step]latency{}
	for i, e := range found {
		counts := map[*step]latency{}
		err := l.each(as[2*len(histograms())+i], func(s *step, _ model.Metric, v float64) {
			c := counts[s]
			counts[s] = latency{count: c.count + whole(v), shards: c.shards + 1}
		})
		if err != nil {
			return err
		}
		within[e.objective.Name] = counts
	}
	for _, s := range l.steps {
		s.Counts = map[string]verdict.Count{}
		for _, e := range edges {
			n, ok := within[e.objective.Name][s]
			s.Counts[e.objective.Name] = s.latencyCount(e, l.forms[e.metric], n, ok)
		}
		s.outcomeCounts(l.SLO.Objectives)
	}
	return nil
}

// takeHistogram adds a histogram's count and sum to the steps, over their shards.
func (l *loader) takeHistogram(h histogram, counts, sums answer) error {
	err := l.each(counts, func(s *step, _ model.Metric, v float64) {
		x := s.values[h.metric]
		x.count, x.shards = x.count+whole(v), x.shards+1
		s.values[h.metric] = x
	})
	if err != nil {
		return err
	}
	err = l.each(sums, func(s *step, _ model.Metric, v float64) {
		x := s.values[h.metric]
		x.sum += v
		s.values[h.metric] = x
	})
	for _, s := range l.steps {
		x := s.values[h.metric]
		switch h.signal {
		case signal.SignalTTFT:
			s.SumTTFT = x.sum
		case signal.SignalDuration:
			s.SumE2E = x.sum
		case signal.SignalTPOT:
			s.SumTPOT, s.CountTPOT = x.sum, x.count
		}
	}
	return err
}

// notScraped is why a step has no count at all.
const notScraped = "Prometheus has no samples of this step: it was not scraped"

// latencyCount is design's rule: bad = slow + failed, of the values and the failed together.
func (s *step) latencyCount(e edge, f form, within latency, found bool) verdict.Count {
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
		return verdict.Count{Undefined: undefined, Missing: fmt.Sprintf("%s counts %d values within %s but only %d in all: samples are missing",
			e.metric, within.count, e.objective.Threshold, all.count)}
	}
	// A request has many gaps between chunks, but one value of anything else.
	if ok := s.Outcomes[string(wire.OK)]; e.objective.Signal != slo.SignalICL && all.count+undefined != ok {
		return verdict.Count{Undefined: undefined, Missing: fmt.Sprintf("%s holds %d values and %d requests had none, but %d requests were ok: samples are missing",
			e.metric, all.count, undefined, ok)}
	}
	slow, late, failed := all.count-within.count, s.window(string(record.Measure)).late[e.objective.Name], s.failed()
	if late > slow {
		return verdict.Count{Undefined: undefined, Missing: fmt.Sprintf("%d values of %s were read too late to tell, but only %d are over %s: samples are missing",
			late, e.metric, slow, e.objective.Threshold)}
	}
	return verdict.Count{Total: all.count + failed, Slow: slow, Failed: failed, Undefined: undefined, Late: late}
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

// isMeasure reports whether a series is of the window that counts.
func isMeasure(m model.Metric) bool { return string(m[signal.LabelWindow]) == string(record.Measure) }
