// Package arrival knows when bytes went out and came in: a net.Conn that stamps them.
//
// A stamp belongs to the read that brought the bytes, because everything behind it (decoding,
// scheduling, garbage collection) would be booked as the server's latency. On Linux it is the
// kernel's own receive stamp, so that not even a late reader moves it; elsewhere it is taken when
// Read returns. Segments that wait unread together keep only the last one's stamp: for such reads
// the package tells the earliest moment too, and never a guess in between. It knows nothing of HTTP,
// of requests or of metrics.
package arrival
