// Package oracle checks the verdict against services whose answer is known: it runs a model of a service
// in virtual time, writes what a load test would have measured into a Prometheus store, has it queried and
// judged like any run, and compares the verdict with the truth.
//
// The truth of a step is the share of bad requests over very many of them, from an event queue of its own
// or from queueing theory. Nothing here is taken from the simulated engine of loadgen/sim, and nothing
// else depends on this package.
package oracle
