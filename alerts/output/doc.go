// Package output turns generated rules, tests and routing into files, writes them, and tells whether
// those that lie there are current.
//
// What is in them is for packages rules, ruletest and routing.
package output
