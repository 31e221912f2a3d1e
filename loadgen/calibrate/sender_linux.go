package calibrate

import (
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sender writes to a connection without waiting, and without telling the scheduler, which would cost
// more than the write. A peer so slow that its queue is full is given up.
type sender struct {
	raw   syscall.RawConn
	call  func(fd uintptr)
	b     []byte
	n     int
	errno syscall.Errno
}

func newSender(c *net.TCPConn) (*sender, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &sender{raw: raw}
	s.call = s.write
	return s, nil
}

func (s *sender) write(fd uintptr) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&s.b[0])), uintptr(len(s.b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	s.n, s.errno = int(n), errno
}

func (s *sender) send(b []byte) error {
	s.b = b
	err := s.raw.Control(s.call)
	s.b = nil
	switch {
	case err != nil:
		return err
	case s.errno != 0:
		return s.errno
	case s.n < len(b):
		return unix.EAGAIN
	}
	return nil
}

// exactSleep has the kernel wake this thread when it is due and not up to 50 µs later.
func exactSleep() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// nap sleeps on this thread.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil)
}
