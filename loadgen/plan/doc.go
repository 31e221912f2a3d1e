// Package plan is the model of plan.yaml: what is sent where, in which phases, rounds and steps. It
// loads, validates and expands a plan.
//
// It sends nothing and knows no metric.
package plan
