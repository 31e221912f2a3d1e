//go:build !linux || (!amd64 && !arm64)

package arrival

import (
	"net"
	"os"
)

// receiver stands for kernel stamps, which there are none of here.
type receiver struct{}

func newReceiver(net.Conn) *receiver { return nil }

func (*receiver) read([]byte) (int, Stamp, error) { panic("no receiver is ever made here") }

func (*receiver) late(int) bool { return false }

func hold() *os.File { return nil }
