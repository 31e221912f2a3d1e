// Package ruletest writes unit tests for generated rules, in promtool's form: traffic of which it is
// known what must fire, beside the alerts that must. Whoever changes a rule by hand, or a Prometheus
// that reads one differently, breaks them.
//
// Which traffic that is, package rules says.
package ruletest
