//go:build !linux

package host

import (
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/disk"
	psutil "github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/mem"
)

// Reader asks the operating system through gopsutil.
type Reader struct{}

// New returns a reader; the paths are Linux's and not used.
func New(_, _ string) (*Reader, error) { return &Reader{}, nil }

// Info says what the machine runs.
func (r *Reader) Info() (Info, error) {
	kernel, err := psutil.KernelVersion()
	return Info{OS: runtime.GOOS, Kernel: kernel, Arch: runtime.GOARCH}, err
}

// CPU reads the time of each CPU. The other values are Linux's.
func (r *Reader) CPU() (CPU, error) {
	times, err := cpu.Times(true)
	if err != nil {
		return CPU{}, unsupported(err)
	}
	if len(times) == 0 {
		return CPU{}, ErrUnsupported
	}
	var c CPU
	for i, t := range times {
		c.Times = append(c.Times, CPUTime{
			CPU: strconv.Itoa(i), User: t.User, Nice: t.Nice, System: t.System, Idle: t.Idle,
			IOWait: t.Iowait, IRQ: t.Irq, SoftIRQ: t.Softirq, Steal: t.Steal,
		})
	}
	return c, nil
}

// Memory reads the size and use of memory and swap.
func (r *Reader) Memory() (Memory, error) {
	v, err := mem.VirtualMemory()
	if err != nil {
		return Memory{}, unsupported(err)
	}
	m := Memory{Total: &v.Total, Available: &v.Available, Free: &v.Free}
	if s, err := mem.SwapMemory(); err == nil {
		m.SwapTotal, m.SwapFree = &s.Total, &s.Free
	}
	return m, nil
}

// Paging is only known on Linux: gopsutil's numbers are of different units on different systems.
func (r *Reader) Paging() (Paging, error) { return Paging{}, ErrUnsupported }

// Disks reads what each disk has done. How long it was busy is only known on Linux.
func (r *Reader) Disks() ([]Disk, error) {
	counters, err := disk.IOCounters()
	if err != nil {
		return nil, unsupported(err)
	}
	var disks []Disk
	for name, c := range counters {
		disks = append(disks, Disk{
			Device: name,
			Reads:  IO{Completed: c.ReadCount, Merged: c.MergedReadCount, Bytes: c.ReadBytes, Seconds: float64(c.ReadTime) / 1000},
			Writes: IO{Completed: c.WriteCount, Merged: c.MergedWriteCount, Bytes: c.WriteBytes, Seconds: float64(c.WriteTime) / 1000},
		})
	}
	slices.SortFunc(disks, func(a, b Disk) int { return strings.Compare(a.Device, b.Device) })
	return disks, nil
}

// unsupported recognizes gopsutil's error for what a system, or a build without cgo, can't tell;
// its value is in an internal package.
func unsupported(err error) error {
	if err.Error() == "not implemented yet" {
		return ErrUnsupported
	}
	return err
}
