package arrival

import (
	"context"
	"net"
	"os"
)

// Dialer dials connections that are already wrapped. Its DialContext fits http.Transport.
type Dialer struct {
	net.Dialer
	// ReadStamps has connections stamped when they are read even where the kernel would do it.
	ReadStamps bool
	hold       *os.File // closed when the Dialer is no longer used
}

// NewDialer makes a Dialer and has the kernel's receive stamps switched on from now on.
func NewDialer(d net.Dialer) *Dialer { return &Dialer{Dialer: d, hold: hold()} }

// DialContext connects to address and returns a *Conn.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if d.ReadStamps {
		return &Conn{Conn: c}, nil
	}
	return Wrap(c), nil
}
