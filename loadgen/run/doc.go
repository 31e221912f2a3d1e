// Package run conducts one run: it takes a plan through its rounds of baseline, ladder and recovery,
// keeps the run directory and the metrics page up to date, and puts the target back at the end.
//
// It times no request and counts none: package drive sends, package record keeps. It judges
// nothing.
package run
