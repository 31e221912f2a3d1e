package collector

import "github.com/prometheus/client_golang/prometheus"

// metric is one metric with its type and labels, described once.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) metric {
	return metric{newDesc(name, help, labels...), prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) metric {
	return metric{newDesc(name, help, labels...), prometheus.GaugeValue}
}

// send sends a value. A label that is not UTF-8 becomes an error of the scrape for this series
// only.
func (m metric) send(ch chan<- prometheus.Metric, v float64, labels ...string) {
	c, err := prometheus.NewConstMetric(m.desc, m.kind, v, labels...)
	if err != nil {
		c = prometheus.NewInvalidMetric(m.desc, err)
	}
	ch <- c
}

// maybe sends the value unless it is nil: what can't be told is absent, never 0.
func (m metric) maybe(ch chan<- prometheus.Metric, v *float64, labels ...string) {
	if v != nil {
		m.send(ch, *v, labels...)
	}
}

// bytes is maybe for a number of bytes.
func (m metric) bytes(ch chan<- prometheus.Metric, v *uint64, labels ...string) {
	if v != nil {
		m.send(ch, float64(*v), labels...)
	}
}
