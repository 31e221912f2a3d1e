package arrival

import (
	"net"
	"sync"
	"time"
)

// Conn is a net.Conn that remembers when its latest bytes came in and went out. Like any
// net.Conn it may be used by several goroutines at once.
type Conn struct {
	net.Conn

	reading sync.Mutex // held through a Read: the receiver has one set of buffers
	recv    *receiver  // nil where there are no kernel stamps

	mu      sync.Mutex
	last    Stamp
	wrote   time.Time
	written int64
	onWait  *func(Stamp)
}

// Wrap returns a Conn around c. A connection that is one already is returned as it is. A TCP
// connection gets kernel stamps where the system has them; any other is stamped when Read returns.
func Wrap(c net.Conn) *Conn {
	if conn, ok := c.(*Conn); ok {
		return conn
	}
	return &Conn{Conn: c, recv: newReceiver(c)}
}

// From finds the Conn in a connection that may be layered over it, as a *tls.Conn is; it returns
// nil where there is none.
func From(c net.Conn) *Conn {
	for c != nil {
		if conn, ok := c.(*Conn); ok {
			return conn
		}
		layer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = layer.NetConn()
	}
	return nil
}

// NetConn returns the connection below.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Source is how the connection is stamped. A read of a connection with kernel stamps that has
// none, or an impossible one, is stamped as the others are, and its Stamp says so.
func (c *Conn) Source() Source {
	if c.recv != nil {
		return SourceKernel
	}
	return SourceRead
}

// Read reads from the connection below and stamps what it returned.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	wait, last := c.onWait, c.last
	c.mu.Unlock()
	if wait != nil {
		(*wait)(last)
	}
	if c.recv == nil || len(p) == 0 {
		n, err := c.Conn.Read(p)
		if n > 0 {
			at := time.Now()
			c.arrived(Stamp{At: at, Returned: at, Source: SourceRead, Full: n == len(p)})
		}
		return n, err
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	n, s, err := c.recv.read(p)
	if n > 0 {
		c.arrived(s)
	}
	return n, err
}

func (c *Conn) arrived(s Stamp) {
	c.mu.Lock()
	s.Seq = c.last.Seq + 1
	c.last = s
	c.mu.Unlock()
}

// Late reports whether the latest read brought more than one segment, so that its stamp, which is
// that of the last one, doesn't hold for the events before. events is how many the read seems to
// hold; with one the answer is always no. It asks the kernel, so it is called for reads with
// several events only, by the one who reads.
func (c *Conn) Late(events int) bool {
	if c.recv == nil || events < 2 {
		return false
	}
	return c.recv.late(events)
}

// Write notes the time at which it was entered and writes to the connection below.
func (c *Conn) Write(p []byte) (int, error) {
	at := time.Now()
	c.mu.Lock()
	c.wrote = at
	c.mu.Unlock()
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	c.written += int64(n)
	c.mu.Unlock()
	return n, err
}

// Last returns the stamp of the latest bytes that were read.
func (c *Conn) Last() Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// Wrote returns when the latest Write was entered (the zero time before the first one) and how
// many bytes all writes have put out. After a request has been written it is the moment at which
// its last byte was handed over.
func (c *Conn) Wrote() (at time.Time, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrote, c.written
}

// OnWait has f called at the start of every Read, with the stamp of the bytes before: whatever
// a layer above has passed on by then arrived no later than that. f runs on the goroutine that
// reads, and takes the place of an earlier one. stop turns f off, and leaves alone what another
// user of the connection has set meanwhile; a call that has begun may outlast it.
func (c *Conn) OnWait(f func(Stamp)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := &f
	c.onWait = mine
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.onWait == mine {
			c.onWait = nil
		}
	}
}
