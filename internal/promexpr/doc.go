// Package promexpr builds PromQL as a syntax tree and prints it, so that no expression is ever
// pasted together from strings. What it prints always parses again to the same tree.
//
// It knows no metric name (package signal does), sends no query (package query does) and writes no
// rule file.
package promexpr
