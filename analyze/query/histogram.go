package query

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/loadgen/record"
)

// histogram is one of loadgen's latency histograms.
type histogram struct {
	signal, metric string
	shown          bool // whether the report shows its mean and quantiles
}

func histograms() []histogram {
	return []histogram{
		{signal.SignalTTFT, signal.LoadgenTTFT, true},
		{signal.SignalDuration, signal.LoadgenDuration, true},
		{signal.SignalTPOT, signal.LoadgenTPOT, true},
		{signal.SignalICL, signal.LoadgenICL, false},
	}
}

// The series of a classic histogram.
const (
	suffixBucket = "_bucket"
	suffixCount  = "_count"
	suffixSum    = "_sum"
	labelLE      = "le"
)

// form says in which forms Prometheus has a histogram: how many series of each.
type form struct{ native, classic int }

// measured matches the window whose requests count.
func measured() promexpr.Matcher { return promexpr.Eq(signal.LabelWindow, string(record.Measure)) }

// formsQuestion asks which histograms are there natively and which with classic buckets: a
// Prometheus may take either, or both.
func (l *loader) formsQuestion() question {
	var names []string
	for _, h := range histograms() {
		names = append(names, h.metric, h.metric+suffixCount)
	}
	sel := promexpr.SelectNames(names, promexpr.Eq(signal.LabelRun, l.RunID), measured())
	return question{
		name: "forms of the histograms", at: l.until,
		expr: promexpr.CountBy(promexpr.LastOverTime(promexpr.Range(sel, l.span)), model.MetricNameLabel),
	}
}

func takeForms(a answer) (map[string]form, error) {
	v, err := a.vector()
	if err != nil {
		return nil, err
	}
	n := map[string]int{}
	for _, s := range v {
		n[string(s.Metric[model.MetricNameLabel])] = int(s.Value)
	}
	forms := map[string]form{}
	for _, h := range histograms() {
		forms[h.metric] = form{native: n[h.metric], classic: n[h.metric+suffixCount]}
	}
	return forms, nil
}

// either is the value read from classic series where there are any and else from native ones. The
// native functions are only sent where there are native histograms: VictoriaMetrics, for one,
// doesn't know them.
func (f form) either(classic, native promexpr.Expr) promexpr.Expr {
	switch {
	case f.native == 0:
		return classic
	case f.classic == 0:
		return native
	}
	return promexpr.Or(classic, native)
}

// countQuestion and sumQuestion ask for a histogram's count and sum in the measure window. Copies of
// a series are averaged where they are native: max knows no native histograms, and copies are equal.
func (l *loader) countQuestion(h histogram, f form) question {
	return question{name: "count of " + h.metric, at: l.until, expr: f.either(
		promexpr.MaxBy(l.last(h.metric+suffixCount, measured()), stepLabels()...),
		promexpr.HistogramCount(promexpr.AvgBy(l.last(h.metric, measured()), stepLabels()...)))}
}

func (l *loader) sumQuestion(h histogram, f form) question {
	return question{name: "sum of " + h.metric, at: l.until, expr: f.either(
		promexpr.MaxBy(l.last(h.metric+suffixSum, measured()), stepLabels()...),
		promexpr.HistogramSum(promexpr.AvgBy(l.last(h.metric, measured()), stepLabels()...)))}
}

// The quantiles that the report shows.
func quantiles() []float64 { return []float64{0.5, 0.95, 0.99} }

// quantileQuestion asks for one quantile by the labels given. Native histograms come first: their
// buckets are narrower. Where every series has one the classic ones aren't read at all.
func (l *loader) quantileQuestion(h histogram, f form, q float64, by ...string) question {
	native := promexpr.HistogramQuantile(q,
		promexpr.SumBy(promexpr.AvgBy(l.last(h.metric, measured()), stepLabels()...), by...))
	withLE := append([]string{labelLE}, by...)
	classic := promexpr.HistogramQuantile(q,
		promexpr.SumBy(promexpr.MaxBy(l.last(h.metric+suffixBucket, measured()), stepLabels(labelLE)...), withLE...))
	asked := question{name: fmt.Sprintf("P%g of %s by %s", q*100, h.metric, by[len(by)-1]), at: l.until}
	switch {
	case f.native == 0:
		asked.expr = classic
	case f.native >= f.classic:
		asked.expr = native
	default:
		asked.expr = promexpr.Or(native, classic)
	}
	return asked
}

// readQuantiles reads every quantile, of each step and pooled over the rounds.
func (l *loader) readQuantiles(ctx context.Context) error {
	pooled := []string{signal.LabelPhase, signal.LabelConcurrency}
	type slot struct {
		signal string
		q      float64
		pooled bool
	}
	var qs []question
	var slots []slot
	for _, h := range histograms() {
		if !h.shown {
			continue
		}
		for _, q := range quantiles() {
			qs = append(qs, l.quantileQuestion(h, l.forms[h.metric], q, oneStepLabels()...), l.quantileQuestion(h, l.forms[h.metric], q, pooled...))
			slots = append(slots, slot{h.signal, q, false}, slot{h.signal, q, true})
		}
	}
	as, err := l.ask(ctx, qs...)
	if err != nil {
		return err
	}
	pools := map[poolKey]*verdict.StepLatency{}
	for i, a := range as {
		v, err := a.vector()
		if err != nil {
			return fmt.Errorf("%s: %w", qs[i].name, err)
		}
		for _, s := range v {
			value := finite(float64(s.Value))
			if slots[i].pooled {
				p, err := poolOf(pools, s.Metric)
				if err != nil {
					return err
				}
				setQuantile(&p.TTFT, &p.E2E, &p.TPOT, slots[i].signal, slots[i].q, value)
				continue
			}
			k, err := keyOf(s.Metric)
			if err != nil {
				return err
			}
			st := l.stepOf(k)
			setQuantile(&st.TTFT, &st.E2E, &st.TPOT, slots[i].signal, slots[i].q, value)
		}
	}
	for _, p := range pools {
		l.run.Latency = append(l.run.Latency, *p)
	}
	slices.SortFunc(l.run.Latency, func(a, b verdict.StepLatency) int {
		return cmp.Or(cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)), cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Concurrency, b.Concurrency))
	})
	return nil
}

// poolKey names the same step of all rounds.
type poolKey struct {
	phase       string
	concurrency int
}

func poolOf(pools map[poolKey]*verdict.StepLatency, m model.Metric) (*verdict.StepLatency, error) {
	n, err := strconv.Atoi(string(m[signal.LabelConcurrency]))
	if err != nil {
		return nil, fmt.Errorf("series %s: the label %s is not a whole number", m, signal.LabelConcurrency)
	}
	k := poolKey{string(m[signal.LabelPhase]), n}
	if pools[k] == nil {
		pools[k] = &verdict.StepLatency{Phase: k.phase, Concurrency: n}
	}
	return pools[k], nil
}

func setQuantile(ttft, e2e, tpot *verdict.Quantiles, sig string, q float64, v *float64) {
	to := map[string]*verdict.Quantiles{signal.SignalTTFT: ttft, signal.SignalDuration: e2e, signal.SignalTPOT: tpot}[sig]
	switch q {
	case 0.5:
		to.P50 = v
	case 0.95:
		to.P95 = v
	case 0.99:
		to.P99 = v
	}
}

// finite is v, or nil where v is no number: the quantile of nothing.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
