package serve

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"

	"firstbreach/analyze/window"
)

// reasons are the values of the label of firstbreach_report_failures_total.
func reasons() []string {
	return []string{"prometheus", "configuration", "write", "clock", "deliver_folder", "deliver_webhook", "deliver_grafana"}
}

type metrics struct {
	registry *prometheus.Registry
	failures *prometheus.CounterVec
	missed   *prometheus.CounterVec
	reloadOK prometheus.Gauge
}

func newMetrics(state func() state) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		failures: counter("firstbreach_report_failures_total", "What could not be done, by reason. Each is tried again, but for configuration.", "reason"),
		missed:   counter("firstbreach_report_missed_total", "Due times that passed without a report, while the server or Prometheus was down.", "schedule"),
		reloadOK: prometheus.NewGauge(prometheus.GaugeOpts{Name: "firstbreach_config_last_reload_successful", Help: "Whether the last attempt to read the configuration succeeded."}),
	}
	for _, r := range reasons() {
		m.failures.WithLabelValues(r)
	}
	m.registry.MustRegister(m.failures, m.missed, m.reloadOK, newGauges(state), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), versioncollector.NewCollector("analyze"))
	return m
}

// schedules makes the counters of the schedules there, at 0, and takes away those of others.
func (m *metrics) schedules(old, now []Schedule) {
	names := map[string]bool{}
	for _, s := range now {
		names[s.Name] = true
		m.missed.WithLabelValues(s.Name)
	}
	for _, s := range old {
		if !names[s.Name] {
			m.missed.DeleteLabelValues(s.Name)
		}
	}
}

// state is what the server knows at one time.
type state struct {
	config  *Config
	reports []Report             // the newest first
	due     map[string]time.Time // when each schedule was due last; none where it never was
	now     time.Time
}

// gauges turns the state into gauges when it is scraped: one set for each service and schedule of the
// configuration, and none of what the configuration no longer has.
type gauges struct {
	state                           func() state
	verdict, spent, success, behind *prometheus.Desc
}

func newGauges(state func() state) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"service", "schedule"}, labels...), nil)
	}
	return &gauges{
		state:   state,
		verdict: desc("firstbreach_report_verdict", "1 for the verdict of the last report, 0 for the others.", "verdict"),
		spent:   desc("firstbreach_report_budget_spent_ratio", "Share of the error budget of the whole period that the last report's window spent.", "slo"),
		success: desc("firstbreach_report_last_success_timestamp_seconds", "End of the window of the last report that was made; time() less this is its age. 0 before the first."),
		behind:  desc("firstbreach_report_overdue_seconds", "For how long the report that was due last has been missing; 0 when it is there."),
	}
}

func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.verdict, g.spent, g.success, g.behind} {
		out <- d
	}
}

func (g *gauges) Collect(out chan<- prometheus.Metric) {
	st := g.state()
	newest := map[[2]string]Report{}
	for _, r := range st.reports {
		key := [2]string{r.Service, r.Schedule}
		if _, ok := newest[key]; !ok {
			newest[key] = r
		}
	}
	for _, f := range st.config.SLO {
		for _, sched := range st.config.Schedules {
			gauge := func(d *prometheus.Desc, v float64, more ...string) {
				out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{f.Service, sched.Name}, more...)...)
			}
			r, made := newest[[2]string{f.Service, sched.Name}]
			behind := 0.0
			if due, ok := st.due[sched.Name]; ok && (!made || r.To.Before(due)) {
				behind = max(0, st.now.Sub(due.Add(sched.delay())).Seconds())
			}
			gauge(g.behind, behind)
			if !made {
				gauge(g.success, 0)
				continue
			}
			gauge(g.success, float64(r.To.Unix()))
			for _, v := range []window.State{window.OK, window.Breach, window.Undecided, window.NoData} {
				is := 0.0
				if r.Verdict == v {
					is = 1
				}
				gauge(g.verdict, is, string(v))
			}
			for name, share := range r.Spent {
				gauge(g.spent, share, name)
			}
		}
	}
}
