// Package rules makes Prometheus rules of an SLO file: what is recorded, and what alerts whom. It is
// pure: the same file gives the same rules.
//
// Which series answer an objective is for package sli; who is told by which route, for package
// routing; how the rules are tested, for package ruletest.
package rules
