package promplay

import (
	"bytes"
	"maps"
	"math"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Page turns a metrics page into series: counters grow by what the page says in each minute, gauges
// stand. The labels are those of the target.
func Page(t *testing.T, page []byte, target map[string]string) []Series {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	list := []Series{{Name: "up", Labels: target, At: func(int) float64 { return 1 }}}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			list = append(list, ofMetric(f, m, target)...)
		}
	}
	return list
}

func ofMetric(f *dto.MetricFamily, m *dto.Metric, target map[string]string) []Series {
	set := maps.Clone(target)
	for _, l := range m.GetLabel() {
		set[l.GetName()] = l.GetValue()
	}
	grow := func(name string, v float64, labels map[string]string) Series {
		if math.IsNaN(v) || v < 0 {
			v = 0
		}
		return Series{Name: name, Labels: labels, At: Counter(v)}
	}
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		return []Series{grow(f.GetName(), m.GetCounter().GetValue(), set)}
	case dto.MetricType_HISTOGRAM:
		return ofHistogram(f.GetName(), m.GetHistogram(), set, grow)
	case dto.MetricType_GAUGE:
		return []Series{{Name: f.GetName(), Labels: set, At: func(int) float64 { return m.GetGauge().GetValue() }}}
	case dto.MetricType_UNTYPED:
		return []Series{{Name: f.GetName(), Labels: set, At: func(int) float64 { return m.GetUntyped().GetValue() }}}
	}
	return nil
}

func ofHistogram(name string, h *dto.Histogram, set map[string]string, grow func(string, float64, map[string]string) Series) []Series {
	list := []Series{grow(name+"_count", float64(h.GetSampleCount()), set), grow(name+"_sum", h.GetSampleSum(), set)}
	for _, b := range h.GetBucket() {
		labels := maps.Clone(set)
		labels["le"] = model.FloatString(b.GetUpperBound()).String()
		list = append(list, grow(name+"_bucket", float64(b.GetCumulativeCount()), labels))
	}
	return list
}
