//go:build !linux

package calibrate

import (
	"net"
	"time"
)

// sender writes to a connection.
type sender struct{ conn net.Conn }

func newSender(c *net.TCPConn) (*sender, error) { return &sender{c}, nil }

func (s *sender) send(b []byte) error {
	_, err := s.conn.Write(b)
	return err
}

func exactSleep() {}

func nap(d time.Duration) { time.Sleep(d) }
