// Package level names how much load a step is under: a number of requests in flight (closed loop)
// or a rate at which they arrive (open loop).
//
// It knows no plan, no metric and no verdict.
package level
