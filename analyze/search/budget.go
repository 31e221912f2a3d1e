package search

import "time"

// cost is what was spent.
type cost struct {
	sent int64
	took time.Duration
}

func (c *cost) add(m Measured) { c.sent, c.took = m.Requests, m.Time }

// exceeds says which budget a measurement isn't expected to fit into; "" when it fits.
func (c *cost) exceeds(o Options, l *lev, a Ask) string {
	// One wave warms up, one is in flight when enough are measured, and one keeps up the load until those
	// are back.
	requests, took := int64(a.Requests+3*a.Concurrency), time.Duration(0)
	if l != nil && l.requests > 0 {
		requests, took = l.requests+max(0, int64(a.Requests-l.asked)), l.took
	}
	switch {
	case o.Requests > 0 && c.sent+requests > o.Requests:
		return endRequest
	case o.Time > 0 && c.took+took > o.Time:
		return endTime
	}
	return ""
}
