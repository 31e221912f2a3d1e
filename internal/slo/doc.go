// Package slo is the model of slo.yaml: it loads, validates and describes service level
// objectives. Everything that reads an objective (load generator, analysis, rules, dashboards)
// reads it through this package, so that they can't disagree.
//
// Which service and resource signals there are it takes from the catalogue, package signal. Of
// PromQL it knows, by package promexpr, whether an expression can be parsed; of metric names and of
// statistics it knows nothing.
package slo
