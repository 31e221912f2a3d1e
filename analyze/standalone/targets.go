package standalone

import (
	"maps"
	"net"
	"net/url"

	"firstbreach/analyze/store"
	"firstbreach/internal/signal"
)

// Jobs of the embedded store where the SLO file's selectors name none.
const (
	jobLoadgen  = "loadgen"
	jobExporter = "exporter"
	jobEngine   = "engine"
)

// targets are what the embedded store scrapes. Engine, host and GPU pages get exactly the labels by
// which the SLO file's selectors pick them, and host and GPU the role of their machine.
func (j *job) targets() []store.Target {
	all := []store.Target{{Job: jobLoadgen, URL: j.loadgen.url + "/metrics", Labels: map[string]string{signal.LabelRole: signal.RoleClient}}}
	role := signal.RoleClient
	if onLoopback(j.plan.Target.URL) {
		role = signal.RoleTarget // the client's machine is the target's
	}
	all = append(all, j.machine(j.exporter.url+"/metrics", role)...)
	if page := j.plan.Target.HostMetrics; page != "" {
		all = append(all, j.machine(page, signal.RoleTarget)...)
	}
	if page := j.plan.Target.Metrics; page != "" {
		all = append(all, scraped(page, jobEngine, j.slo.Selectors.Engine))
	}
	return all
}

// machine is one exporter's page, under the labels of the host selector and, where they differ, again
// under those of the GPU selector.
func (j *job) machine(page, role string) []store.Target {
	host := scraped(page, jobExporter, j.slo.Selectors.Host)
	gpu := scraped(page, jobExporter, j.slo.Selectors.GPU)
	host.Labels[signal.LabelRole], gpu.Labels[signal.LabelRole] = role, role
	if host.Job == gpu.Job && maps.Equal(host.Labels, gpu.Labels) {
		return []store.Target{host}
	}
	return []store.Target{host, gpu}
}

// scraped is a page under the labels of a selector.
func scraped(page, job string, selector map[string]string) store.Target {
	t := store.Target{Job: job, URL: page, Labels: map[string]string{}}
	for name, value := range selector {
		if name == "job" {
			t.Job = value
			continue
		}
		t.Labels[name] = value
	}
	return t
}

// onLoopback reports whether a URL leads to this machine by its loopback interface.
func onLoopback(rawURL string) bool {
	u, err := url.Parse(rawURL)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}
