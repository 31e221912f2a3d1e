package sim

import (
	"net"
	"sync"
)

// gate is a listener that can drop everything. While the engine is down it goes on listening and
// resets each connection as it comes: a closed port could be lost to another process, and a client
// that dials a closed port of its own range can connect to itself.
type gate struct {
	net.Listener
	down func() bool

	mu    sync.Mutex
	conns map[*gateConn]struct{}
}

func newGate(l net.Listener, down func() bool) *gate {
	return &gate{Listener: l, down: down, conns: make(map[*gateConn]struct{})}
}

// Accept returns the next connection that isn't reset at once.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		gc := &gateConn{Conn: c, gate: g}
		g.mu.Lock()
		g.conns[gc] = struct{}{}
		g.mu.Unlock()
		if g.down() { // asked after it is known, so that a crash meanwhile drops it too
			gc.reset()
			continue
		}
		return gc, nil
	}
}

// drop resets every connection.
func (g *gate) drop() {
	g.mu.Lock()
	conns := make([]*gateConn, 0, len(g.conns))
	for c := range g.conns {
		conns = append(conns, c)
	}
	g.mu.Unlock()
	for _, c := range conns {
		c.reset()
	}
}

type gateConn struct {
	net.Conn
	gate *gate
}

// Close closes the connection and forgets it.
func (c *gateConn) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// reset closes the connection so that the peer sees a reset rather than an end.
func (c *gateConn) reset() {
	if l, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
		_ = l.SetLinger(0) // fails on a closed connection only
	}
	_ = c.Close()
}
