// Package store is a Prometheus inside our own process: it scrapes targets, keeps their samples on
// disk and answers the Prometheus HTTP API on a loopback port. With it one command can measure and
// judge, and a finished run can be opened again in Grafana.
//
// The rest of analyze reaches the data through the HTTP API alone, exactly as it would in a
// Prometheus that somebody else runs. So nothing here hands out samples, a querier or an engine,
// and nothing here knows what the metrics mean.
package store
