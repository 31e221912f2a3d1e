package host

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Reader reads one machine's /proc and /sys.
type Reader struct {
	Options
	proc     procfs.FS
	pageSize uint64
}

// New returns a reader of the given mount points.
func New(o Options) (*Reader, error) {
	if o.ProcFS == "" {
		o.ProcFS = "/proc"
	}
	if o.SysFS == "" {
		o.SysFS = "/sys"
	}
	if o.PageSize <= 0 {
		o.PageSize = os.Getpagesize()
	}
	proc, err := procfs.NewFS(o.ProcFS)
	if err != nil {
		return nil, fmt.Errorf("%w: mount the host's /proc there, or name its path", err)
	}
	if _, err := os.Stat(filepath.Join(o.ProcFS, "stat")); err != nil {
		return nil, fmt.Errorf("%s is not a /proc: %w; mount the host's there, or name its path", o.ProcFS, err)
	}
	return &Reader{Options: o, proc: proc, pageSize: uint64(o.PageSize)}, nil
}

// Info says what the machine runs.
func (r *Reader) Info() (Info, error) {
	kernel, err := os.ReadFile(filepath.Join(r.ProcFS, "sys/kernel/osrelease"))
	if err != nil {
		return Info{}, err
	}
	i := Info{OS: runtime.GOOS, Kernel: strings.TrimSpace(string(kernel)), Arch: runtime.GOARCH}
	i.Booted, err = r.booted()
	return i, err
}

// CPU reads /proc/stat.
func (r *Reader) CPU() (CPU, error) {
	stat, err := r.proc.Stat()
	if err != nil {
		return CPU{}, err
	}
	if len(stat.CPU) == 0 {
		return CPU{}, fmt.Errorf("%s/stat has no line for any CPU", r.ProcFS)
	}
	// The parser leaves 0 for a line that isn't there, as in some sandboxes. On a running machine
	// these can't be 0: whoever reads them runs.
	cpu := CPU{Interrupts: positive(stat.IRQTotal), ContextSwitches: positive(stat.ContextSwitches)}
	if cpu.ProcsRunning = positive(stat.ProcessesRunning); cpu.ProcsRunning != nil {
		blocked := float64(stat.ProcessesBlocked)
		cpu.ProcsBlocked = &blocked
	}
	ids := make([]int64, 0, len(stat.CPU))
	for id := range stat.CPU {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		s := stat.CPU[id]
		cpu.Times = append(cpu.Times, CPUTime{
			CPU:  strconv.FormatInt(id, 10),
			User: s.User, Nice: s.Nice, System: s.System, Idle: s.Idle, IOWait: s.Iowait,
			IRQ: s.IRQ, SoftIRQ: s.SoftIRQ, Steal: s.Steal, Guest: s.Guest, GuestNice: s.GuestNice,
		})
	}
	return cpu, nil
}

// Memory reads /proc/meminfo.
func (r *Reader) Memory() (Memory, error) {
	m, err := r.proc.Meminfo()
	if err != nil {
		return Memory{}, err
	}
	if m.MemTotalBytes == nil {
		return Memory{}, fmt.Errorf("%s/meminfo has no MemTotal", r.ProcFS)
	}
	return Memory{
		Total: m.MemTotalBytes, Available: m.MemAvailableBytes, Free: m.MemFreeBytes,
		Buffers: m.BuffersBytes, Cached: m.CachedBytes, SReclaimable: m.SReclaimableBytes,
		SwapTotal: m.SwapTotalBytes, SwapFree: m.SwapFreeBytes,
	}, nil
}

// Paging reads /proc/vmstat.
func (r *Reader) Paging() (Paging, error) {
	f, err := os.Open(filepath.Join(r.ProcFS, "vmstat"))
	if err != nil {
		return Paging{}, err
	}
	defer f.Close()
	return parseVMStat(f, r.pageSize)
}

// Disks reads /proc/diskstats. Which devices are whole disks is read from /sys: a partition has a
// file of that name there, whatever it is called. A
// line that can't be read costs only its device; the error then names it and the others are valid.
func (r *Reader) Disks() ([]Disk, error) {
	f, err := os.Open(filepath.Join(r.ProcFS, "diskstats"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	disks, err := parseDiskstats(f)
	return slices.DeleteFunc(disks, func(d Disk) bool { return !r.wanted(d.Device) }), err
}

// wanted reports whether the device is a whole disk that the options ask for.
func (r *Reader) wanted(device string) bool {
	switch {
	case r.Include != nil && !r.Include.MatchString(device),
		r.Exclude != nil && r.Exclude.MatchString(device),
		r.Include == nil && r.Exclude == nil && virtual(device):
		return false
	}
	return !r.partition(device)
}

// partition reports whether the device is part of a disk. A device that isn't in /sys at all is
// taken for a disk: to count it is the smaller mistake.
func (r *Reader) partition(device string) bool {
	// The kernel writes a / in a device's name as ! in /sys.
	dir := strings.ReplaceAll(device, "/", "!")
	_, err := os.Stat(filepath.Join(r.SysFS, "class/block", dir, "partition"))
	return err == nil
}

// virtual reports whether the device is memory, a file or an optical drive.
func virtual(device string) bool {
	for _, prefix := range []string{"loop", "ram", "zram", "sr", "fd"} {
		if rest, ok := strings.CutPrefix(device, prefix); ok {
			if _, err := strconv.ParseUint(rest, 10, 64); err == nil {
				return true
			}
		}
	}
	return false
}

// positive returns nil for 0.
func positive(v uint64) *float64 {
	if v == 0 {
		return nil
	}
	f := float64(v)
	return &f
}
