package query

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

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
		take: l.takeForms,
	}
}

func (l *loader) takeForms(a answer) error {
	v, err := a.vector()
	if err != nil {
		return err
	}
	n := map[string]int{}
	for _, s := range v {
		n[string(s.Metric[model.MetricNameLabel])] = int(s.Value)
	}
	l.forms = map[string]form{}
	for _, h := range histograms() {
		l.forms[h.metric] = form{native: n[h.metric], classic: n[h.metric+suffixCount]}
	}
	return nil
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
func (l *loader) countQuestion(h histogram) question {
	return question{take: func(a answer) error { return l.takeCount(h, a) }, name: "count of " + h.metric, at: l.until, expr: l.forms[h.metric].either(
		promexpr.MaxBy(l.last(h.metric+suffixCount, measured()), stepLabels()...),
		promexpr.HistogramCount(promexpr.AvgBy(l.last(h.metric, measured()), stepLabels()...)))}
}

func (l *loader) sumQuestion(h histogram) question {
	return question{take: func(a answer) error { return l.takeSum(h, a) }, name: "sum of " + h.metric, at: l.until, expr: l.forms[h.metric].either(
		promexpr.MaxBy(l.last(h.metric+suffixSum, measured()), stepLabels()...),
		promexpr.HistogramSum(promexpr.AvgBy(l.last(h.metric, measured()), stepLabels()...)))}
}

// The quantiles that the report shows.
func quantiles() []float64 { return []float64{0.5, 0.95, 0.99} }

// quantileQuestion asks for one quantile by the labels given, which are those of a level or a step. Native histograms come first: their
// buckets are narrower. Where every series has one the classic ones aren't read at all.
func (l *loader) quantileQuestion(h histogram, q float64, of string, by ...string) question {
	native := promexpr.HistogramQuantile(q,
		promexpr.SumBy(promexpr.AvgBy(l.last(h.metric, measured()), stepLabels()...), by...))
	withLE := append([]string{labelLE}, by...)
	classic := promexpr.HistogramQuantile(q,
		promexpr.SumBy(promexpr.MaxBy(l.last(h.metric+suffixBucket, measured()), stepLabels(labelLE)...), withLE...))
	asked := question{name: fmt.Sprintf("P%g of %s by %s", q*100, h.metric, of), at: l.until}
	switch f := l.forms[h.metric]; {
	case f.native == 0:
		asked.expr = classic
	case f.native >= f.classic:
		asked.expr = native
	default:
		asked.expr = promexpr.Or(native, classic)
	}
	return asked
}

// quantileQuestions ask for every quantile, of each step and pooled over the rounds.
func (l *loader) quantileQuestions() []question {
	var qs []question
	for _, h := range histograms() {
		if !h.shown {
			continue
		}
		for _, q := range quantiles() {
			one := l.quantileQuestion(h, q, "step", oneStepLabels()...)
			one.take = func(a answer) error {
				return l.each(a, func(s *step, _ model.Metric, v float64) {
					setQuantile(&s.TTFT, &s.E2E, &s.TPOT, h.signal, q, finite(v))
				})
			}
			pooled := l.quantileQuestion(h, q, "level", pooledLabels()...)
			pooled.take = func(a answer) error { return l.takePooled(a, h, q) }
			qs = append(qs, one, pooled)
		}
	}
	return qs
}

// takePooled puts a quantile over all rounds into its place.
func (l *loader) takePooled(a answer, h histogram, q float64) error {
	v, err := a.vector()
	if err != nil {
		return err
	}
	for _, s := range v {
		of := verdict.StepLatency{Phase: string(s.Metric[signal.LabelPhase]), Class: string(s.Metric[signal.LabelClass])}
		lvl, err := levelOf(s.Metric)
		if err != nil {
			return err
		}
		of.Concurrency, of.Rate = lvl.Concurrency, lvl.Rate
		p := l.pool(of)
		setQuantile(&p.TTFT, &p.E2E, &p.TPOT, h.signal, q, finite(float64(s.Value)))
		l.noteBeyond(h, q, *p, float64(s.Value))
	}
	return nil
}

// beyond are the levels at which a quantile lies beyond the last edge of a histogram's classic buckets: its
// value is that edge, however slow the requests were.
type beyond struct {
	quantile string
	edge     float64
	levels   []string
}

// noteBeyond keeps a quantile that lies beyond the last edge.
func (l *loader) noteBeyond(h histogram, q float64, at verdict.StepLatency, v float64) {
	last, f := l.lastEdge[h.metric], l.forms[h.metric]
	if f.native >= f.classic || last == 0 || v < last {
		return
	}
	quantile := fmt.Sprintf("P%g of %s", q*100, h.metric)
	if n := len(l.beyond); n == 0 || l.beyond[n-1].quantile != quantile {
		l.beyond = append(l.beyond, beyond{quantile: quantile, edge: last})
	}
	of := at.Phase + " " + at.Level().String()
	if at.Class != "" {
		of += " of class " + at.Class
	}
	b := &l.beyond[len(l.beyond)-1]
	b.levels = append(b.levels, of)
}

// warning says what the values shown are worth.
func (b beyond) warning() string {
	slices.Sort(b.levels)
	return fmt.Sprintf("%s is at least %s s at %s: it lies beyond the last bucket edge (no verdict uses it)", b.quantile, formatFloat(b.edge), strings.Join(b.levels, ", "))
}

// pool is the latency of one level over all rounds, made on first use and kept in order.
func (l *loader) pool(of verdict.StepLatency) *verdict.StepLatency {
	i, ok := slices.BinarySearchFunc(l.run.Latency, of, func(a, b verdict.StepLatency) int {
		return cmp.Or(cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)), cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Class, b.Class),
			a.Level().Compare(b.Level()))
	})
	if !ok {
		l.run.Latency = slices.Insert(l.run.Latency, i, of)
	}
	return &l.run.Latency[i]
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
