package arrival

import (
	"context"
	"net"
)

// Dialer dials connections that are already wrapped. Its DialContext fits http.Transport.
type Dialer struct {
	net.Dialer
}

// DialContext connects to address and returns a *Conn.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return Wrap(c), nil
}
