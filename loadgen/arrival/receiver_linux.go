//go:build linux && (amd64 || arm64)

package arrival

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiver reads a TCP socket by recvmsg, which hands out the kernel's receive stamp beside the
// bytes. Everything a read needs is made once. The calls are raw ones: with MSG_DONTWAIT they never
// block, and telling the scheduler of each costs more than they do.
type receiver struct {
	raw  syscall.RawConn
	call func(fd uintptr) bool

	header  unix.Msghdr
	vector  unix.Iovec
	control [64]byte
	n       int
	errno   syscall.Errno
	waited  bool // the queue was empty when the read began

	clock clock
	stamp Stamp     // of the read before
	begun time.Time // when the read before began; before the first one, when the connection was wrapped

	asking   sync.Mutex // guards what follows: Late must not wait for a Read that waits for bytes
	info     unix.TCPInfo
	infoSize uint32
	infoErr  syscall.Errno
	askInfo  func(fd uintptr)
	segments segments
}

// newReceiver turns the stamps of a TCP connection on; it returns nil where there are none.
func newReceiver(c net.Conn) *receiver {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err != nil || failed != nil {
		return nil
	}
	r := &receiver{raw: raw, begun: time.Now()}
	r.header.Iov, r.header.Iovlen = &r.vector, 1
	r.call, r.askInfo = r.recvmsg, r.getsockopt
	return r
}

// recvmsg is one attempt; it is false when nothing has arrived yet.
func (r *receiver) recvmsg(fd uintptr) bool {
	for {
		r.header.Control = &r.control[0]
		r.header.SetControllen(len(r.control))
		n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.header)), unix.MSG_DONTWAIT)
		switch errno {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			r.waited = true
			return false
		}
		r.n, r.errno = int(n), errno
		return true
	}
}

// read reads once into p, which isn't empty.
func (r *receiver) read(p []byte) (int, Stamp, error) {
	begun := time.Now()
	r.vector.Base = &p[0]
	r.vector.SetLen(len(p))
	r.waited, r.n, r.errno = false, 0, 0
	err := r.raw.Read(r.call)
	now := time.Now()
	r.vector.Base = nil
	switch {
	case err != nil:
		return 0, Stamp{}, err
	case r.errno != 0:
		return 0, Stamp{}, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("recvmsg", r.errno)}
	case r.n == 0:
		return 0, Stamp{}, io.EOF
	}
	s := r.stampOf(begun, now, r.n == len(p))
	r.stamp, r.begun = s, begun
	r.asking.Lock()
	r.segments.read(r.n, s.Full)
	r.asking.Unlock()
	return r.n, s, nil
}

// stampOf makes the stamp of a read that began and returned at these times.
func (r *receiver) stampOf(begun, now time.Time, full bool) Stamp {
	s := Stamp{Earliest: r.earliest(begun), Returned: now, Full: full}
	if kernel, ok := r.kernelStamp(); ok {
		if at, now, ok := r.clock.convert(kernel, now); ok && !at.Before(r.stamp.At) {
			s.At, s.Returned, s.Source = at, now, SourceKernel
			if at.Before(s.Earliest) { // stamped by the device before it was put into the queue
				s.Earliest = at
			}
			return s
		}
	}
	s.At, s.Source = s.Returned, SourceRead
	return s
}

// earliest is the moment before which nothing of a read that began then can have arrived. A queue
// found empty at the beginning proves that all of it came later. A read before that didn't fill its
// buffer had emptied the queue at some time after its own beginning, and what came later has a later
// stamp.
func (r *receiver) earliest(begun time.Time) time.Time {
	switch {
	case r.waited:
		return begun
	case r.stamp.Full:
		return r.stamp.Earliest
	case r.stamp.Source == SourceKernel && r.stamp.At.After(r.begun):
		return r.stamp.At
	}
	return r.begun
}

// kernelStamp finds the receive stamp, in nanoseconds of the wall clock, among the control messages.
func (r *receiver) kernelStamp() (int64, bool) {
	b := r.control[:min(int(r.header.Controllen), len(r.control))]
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		size := int(h.Len)
		if size < unix.SizeofCmsghdr || size > len(b) {
			return 0, false
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS && size >= unix.CmsgLen(int(unsafe.Sizeof(unix.Timespec{}))) {
			return (*unix.Timespec)(unsafe.Pointer(&b[unix.CmsgLen(0)])).Nano(), true
		}
		b = b[min(unix.CmsgSpace(size-unix.CmsgLen(0)), len(b)):]
	}
	return 0, false
}

// late asks the kernel how many segments have come in and says whether the latest read had several.
func (r *receiver) late(events int) bool {
	r.asking.Lock()
	defer r.asking.Unlock()
	r.infoErr = unix.EINVAL
	if err := r.raw.Control(r.askInfo); err != nil || r.infoErr != 0 || r.infoSize < uint32(unsafe.Offsetof(r.info.Data_segs_in)+4) {
		return true // it can't be told: the interval is right in any case
	}
	return r.segments.late(r.info.Data_segs_in, int(r.info.Advmss), events)
}

func (r *receiver) getsockopt(fd uintptr) {
	r.infoSize = uint32(unsafe.Sizeof(r.info))
	_, _, r.infoErr = unix.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&r.info)), uintptr(unsafe.Pointer(&r.infoSize)), 0)
}

// hold keeps the kernel's receive stamps switched on for as long as the file is open. The kernel
// turns them on with the first socket that wants them, and not at once, so that the first segments
// of a program's first connection might have none. It returns nil where that can't be done.
func hold() *os.File {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		_ = unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), "receive stamps")
}
