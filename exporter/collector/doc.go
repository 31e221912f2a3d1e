// Package collector turns the readings of host and gpu into Prometheus metrics. It can be embedded:
// New returns a prometheus.Collector, Handler serves it.
//
// Each part is a collector of its own: one that fails or hangs costs its own series and says so in
// exporter_collector_success, and nothing else. It sets no role and no host name: who a machine is
// is for the scrape configuration to say.
package collector
