// Package search finds the exact first breach with few requests: it doubles, bisects, then measures the
// two neighbouring levels in turn until both are decided, and once more in the end.
//
// It chooses what to measure next and nothing else. How requests are sent is the Measurer's, what their
// counts mean is package verdict's. It knows no clock.
package search
