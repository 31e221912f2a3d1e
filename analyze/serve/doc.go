// Package serve makes reports of production on a schedule: `analyze window` over the last period of
// each SLO file, kept in a folder, shown on a page and delivered where the configuration says. What it
// does and fails to do is in its metrics.
//
// It judges nothing itself: that is package window's.
package serve
