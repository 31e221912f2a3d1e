// Package query reads one run out of Prometheus, over its HTTP API, into the plain value that
// package verdict judges.
//
// Step totals are the last raw sample of each step's own series: nothing is extrapolated, and
// nothing is estimated but the quantiles, which are for people to read. Whatever isn't there is
// said to be missing, never read as zero.
//
// The package knows PromQL and nothing of statistics: it judges nothing and renders nothing.
package query
