// Package boards says what is drawn: a service's objectives in production, its load tests, and the
// machine under it. Queries are built from the catalogue and the SLO file, so that a dashboard, an
// alert and a verdict look at the same series.
//
// How a description becomes Grafana's JSON is for package board.
package boards
