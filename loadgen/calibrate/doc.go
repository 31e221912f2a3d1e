// Package calibrate measures the client's own error: it has the whole of loadgen read streams whose
// every chunk says when it was sent, and compares that with when the client says it came.
//
// The streams come from another process on the same machine, so that they share neither scheduler
// nor collector with the client, and one clock. It judges no endpoint and decides no verdict.
package calibrate
