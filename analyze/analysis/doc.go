// Package analysis is the path from a run to its report: it finds the run's files and its Prometheus,
// has the run queried, judged and written down.
//
// It holds no rule of its own: what is asked is query's, what is decided verdict's, what is shown
// report's.
package analysis
