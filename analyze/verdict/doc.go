// Package verdict judges one run: which measurements count, which steps kept their objectives,
// where the first breach is and how sure that is. Its functions are pure: the same Run gives the
// same Result, byte for byte.
//
// It does no I/O, knows no PromQL, no file and no clock.
package verdict
