package sim

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// metricsPage is a scrape of an engine: values by metric name and, for labelled ones, label value.
type metricsPage struct {
	value map[string]float64 // counters, gauges; histogram counts under name_count, sums under name_sum
}

func readPage(t *testing.T, e *Engine) *metricsPage {
	t.Helper()
	families, err := (&server{engine: e}).gather()
	if err != nil {
		t.Fatal(err)
	}
	page := &metricsPage{value: map[string]float64{}}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			page.add(f.GetName(), m)
		}
	}
	return page
}

func (p *metricsPage) add(name string, m *dto.Metric) {
	for _, l := range m.GetLabel() {
		if l.GetName() == "finished_reason" || l.GetName() == "reason" {
			name += "/" + l.GetValue()
		}
	}
	switch {
	case m.GetCounter() != nil:
		p.value[name] = m.GetCounter().GetValue()
	case m.GetGauge() != nil:
		p.value[name] = m.GetGauge().GetValue()
	case m.GetHistogram() != nil:
		p.value[name+"_count"] = float64(m.GetHistogram().GetSampleCount())
		p.value[name+"_sum"] = m.GetHistogram().GetSampleSum()
	}
}
