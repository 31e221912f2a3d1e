// Package compare says whether two runs differ: first whether they may be compared at all, then, measure by
// measure, which is worse and how sure that is.
//
// It reads finished reports. It judges no run by itself and asks no Prometheus.
package compare
