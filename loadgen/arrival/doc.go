// Package arrival knows when bytes went out and came in: a net.Conn that stamps them.
//
// A stamp belongs to the read that brought the bytes, taken before anything is parsed, because
// everything behind it (decoding, scheduling, garbage collection) would be booked as the server's
// latency. The package knows nothing of HTTP, of requests or of metrics.
package arrival
