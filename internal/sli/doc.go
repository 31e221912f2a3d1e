// Package sli says which series answer an objective in production, and in which PromQL: bad and all
// requests of a ratio, the value of a gauge. Alert rules and dashboards are built from it, so that
// they ask the same question.
//
// It builds expressions and evaluates none. Metric names come from package signal; how fast a budget
// may burn, and who is told, is for the rules.
package sli
