// Package signal is the catalogue of metrics: for each logical signal its layer and unit, and for
// each engine the metric names with their versions, labels, bucket edges and how to read them. The
// names of the load generator's and the exporter's own metrics are constants here too: nobody else
// spells a metric name.
//
// A probe reads an engine's page once and says which candidates are there. The package builds no
// PromQL and judges nothing.
package signal
