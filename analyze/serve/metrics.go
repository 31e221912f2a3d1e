package serve

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"

	"firstbreach/analyze/window"
)

// reasons are the values of the label of firstbreach_report_failures_total.
func reasons() []string {
	return []string{"prometheus", "configuration", "write", "deliver_folder", "deliver_webhook", "deliver_grafana"}
}

type metrics struct {
	registry *prometheus.Registry
	verdict  *prometheus.GaugeVec
	spent    *prometheus.GaugeVec
	success  *prometheus.GaugeVec
	failures *prometheus.CounterVec
	missed   *prometheus.CounterVec
	reloadOK prometheus.Gauge
}

func newMetrics() *metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		verdict:  gauge("firstbreach_report_verdict", "1 for the verdict of the last report, 0 for the others.", "service", "schedule", "verdict"),
		spent:    gauge("firstbreach_report_budget_spent_ratio", "Share of the error budget of the whole period that the last report's window spent.", "service", "schedule", "slo"),
		success:  gauge("firstbreach_report_last_success_timestamp_seconds", "End of the window of the last report that was made; time() less this is its age.", "service", "schedule"),
		failures: counter("firstbreach_report_failures_total", "What could not be done, by reason. Each is tried again, but for configuration.", "reason"),
		missed:   counter("firstbreach_report_missed_total", "Due times that passed without a report, while the server or Prometheus was down.", "schedule"),
		reloadOK: prometheus.NewGauge(prometheus.GaugeOpts{Name: "firstbreach_config_last_reload_successful", Help: "Whether the last attempt to read the configuration succeeded."}),
	}
	for _, r := range reasons() {
		m.failures.WithLabelValues(r)
	}
	m.registry.MustRegister(m.verdict, m.spent, m.success, m.failures, m.missed, m.reloadOK, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), versioncollector.NewCollector("analyze"))
	return m
}

// show sets the gauges to the newest report of each service and schedule.
func (m *metrics) show(list []Report) {
	m.verdict.Reset()
	m.spent.Reset()
	m.success.Reset()
	seen := map[[2]string]bool{}
	for _, r := range list {
		key := [2]string{r.Service, r.Schedule}
		if seen[key] {
			continue
		}
		seen[key] = true
		for _, v := range []window.State{window.OK, window.Breach, window.Undecided, window.NoData} {
			is := 0.0
			if r.Verdict == v {
				is = 1
			}
			m.verdict.WithLabelValues(r.Service, r.Schedule, string(v)).Set(is)
		}
		for name, share := range r.Spent {
			m.spent.WithLabelValues(r.Service, r.Schedule, name).Set(share)
		}
		m.success.WithLabelValues(r.Service, r.Schedule).Set(float64(r.To.Unix()))
	}
}
