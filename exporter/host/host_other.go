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
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/process"
)

// Reader asks the operating system through gopsutil.
type Reader struct{ Options }

// New returns a reader; the paths are Linux's and not used.
func New(o Options) (*Reader, error) { return &Reader{o}, nil }

// Info says what the machine runs.
func (r *Reader) Info() (Info, error) {
	kernel, err := psutil.KernelVersion()
	i := Info{OS: runtime.GOOS, Kernel: kernel, Arch: runtime.GOARCH}
	if boot, err := psutil.BootTime(); err == nil {
		booted := float64(boot)
		i.Booted = &booted
	}
	return i, unsupported(err)
}

// Load reads the load average.
func (r *Reader) Load() (Load, error) {
	avg, err := load.Avg()
	if err != nil {
		return Load{}, unsupported(err)
	}
	return Load{avg.Load1, avg.Load5, avg.Load15}, nil
}

// Pressure is only known on Linux.
func (r *Reader) Pressure() ([]Pressure, error) { return nil, ErrUnsupported }

// Contained is only known on Linux.
func (r *Reader) Contained() bool { return false }

// PickedProcesses reads the processes that the options pick.
func (r *Reader) PickedProcesses() ([]Process, error) {
	if r.Processes == nil {
		return nil, ErrUnsupported
	}
	all, err := process.Processes()
	if err != nil {
		return nil, unsupported(err)
	}
	var picked []Process
	for _, p := range all {
		name, err := p.Name()
		if err != nil {
			continue // it has ended, or is another user's
		}
		if command, _ := p.Cmdline(); !r.Processes.MatchString(name) && !r.Processes.MatchString(command) {
			continue
		}
		if one, ok := read(p, name); ok && len(picked) < maxProcesses {
			picked = append(picked, one)
		}
	}
	return picked, nil
}

func read(p *process.Process, name string) (Process, bool) {
	times, err := p.Times()
	if err != nil {
		return Process{}, false
	}
	memory, err := p.MemoryInfo()
	if err != nil {
		return Process{}, false
	}
	one := Process{PID: int(p.Pid), Name: name, User: times.User, System: times.System, Resident: memory.RSS, Virtual: memory.VMS}
	if n, err := p.NumThreads(); err == nil {
		threads := float64(n)
		one.Threads = &threads
	}
	if ms, err := p.CreateTime(); err == nil {
		started := float64(ms) / 1000
		one.Started = &started
	}
	return one, true
}

// ProcessName returns the name of a process, or "" where it can't be told.
func (r *Reader) ProcessName(pid uint32) string {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return ""
	}
	name, _ := p.Name()
	return name
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
		if r.Include != nil && !r.Include.MatchString(name) || r.Exclude != nil && r.Exclude.MatchString(name) {
			continue
		}
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
	if err != nil && err.Error() == "not implemented yet" {
		return ErrUnsupported
	}
	return err
}
