// Package report writes a judged run for people and machines: report.json, report.md, report.html
// and junit.xml, all from one Document.
//
// It judges nothing and asks nobody: every number comes from package verdict, and the same inputs
// give the same bytes.
package report
