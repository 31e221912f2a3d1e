// Package window judges a stretch of production by the SLO file, without any load test: every
// objective's share of good requests with its interval and what it cost of the error budget, the
// breaches within it with their onset and the layer that turned first, and the number of requests in
// flight at which production itself first broke.
//
// It only observes. What follows from that, and what doesn't, is in the Result's limits; a load test
// is package verdict's.
package window
