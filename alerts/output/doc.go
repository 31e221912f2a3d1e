// Package output prints generated rules, tests and routing as files.
//
// What is in them is for packages rules, ruletest and routing; package generated writes them.
package output
