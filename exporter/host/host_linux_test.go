package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fixture returns a reader of a recorded machine with 4 KiB pages.
func fixture(t *testing.T, name string) *Reader {
	t.Helper()
	r, err := New(Options{
		ProcFS: filepath.Join("testdata", name, "proc"), SysFS: filepath.Join("testdata", name, "sys"), PageSize: 4096,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ptr[T any](v T) *T { return &v }

func TestInfo(t *testing.T) {
	got, err := fixture(t, "linux-6.18").Info()
	if err != nil || got.OS != "linux" || got.Kernel != "6.18.44" || got.Arch != runtime.GOARCH || got.Booted == nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestCPU(t *testing.T) {
	got, err := fixture(t, "odd").CPU()
	if err != nil {
		t.Fatal(err)
	}
	// Short lines, a gap in the numbers, and no line for interrupts or processes.
	want := CPU{Times: []CPUTime{
		{CPU: "0", User: 0.6, System: 0.25, Idle: 5},
		{CPU: "7", User: 0.4, System: 0.25, Idle: 5, IOWait: 0.12},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, err = fixture(t, "linux-6.18").CPU()
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Times) != 2 || got.ProcsRunning == nil || got.ProcsBlocked == nil || *got.ProcsBlocked != 0 ||
		got.Interrupts == nil || got.ContextSwitches == nil {
		t.Errorf("got %+v", got)
	}
}

func TestMemory(t *testing.T) {
	got, err := fixture(t, "odd").Memory()
	if err != nil {
		t.Fatal(err)
	}
	// A kernel before 3.14 doesn't tell what is available.
	want := Memory{
		Total: ptr[uint64](2097152000), Free: ptr[uint64](524288000), Buffers: ptr[uint64](0), Cached: ptr[uint64](262144000),
		SwapTotal: ptr[uint64](1048576000), SwapFree: ptr[uint64](946176000),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, err = fixture(t, "linux-6.18").Memory()
	if err != nil || got.Available == nil || *got.Total != 24684092*1024 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestPaging(t *testing.T) {
	r := fixture(t, "odd")
	got, err := r.Paging()
	// pswpin is in pages, pgpgin in KiB; the value that can't be read is absent and named.
	want := Paging{SwapIn: ptr[uint64](3 * 4096), SwapOut: ptr[uint64](5 * 4096), PagedIn: ptr[uint64](7 * 1024)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err == nil || !strings.Contains(err.Error(), "pgpgout") {
		t.Errorf("error = %v", err)
	}
	r.pageSize = 65536
	if got, _ = r.Paging(); *got.SwapIn != 3*65536 || *got.PagedIn != 7*1024 {
		t.Errorf("with pages of 64 KiB: %+v", got)
	}
}

func TestDisks(t *testing.T) {
	disks, err := fixture(t, "linux-6.18").Disks()
	if err != nil {
		t.Fatal(err)
	}
	// nvme0n1p1 and vda1 are partitions; xvda1 is a whole disk in spite of its name.
	var names []string
	for _, d := range disks {
		names = append(names, d.Device)
	}
	if diff := cmp.Diff([]string{"vda", "nvme0n1", "dm-0", "xvda1"}, names); diff != "" {
		t.Error(diff)
	}
	want := Disk{
		Device:   "nvme0n1",
		Reads:    IO{Completed: 120000, Merged: 200, Bytes: 9600000 * 512, Seconds: 60},
		Writes:   IO{Completed: 80000, Merged: 4000, Bytes: 6400000 * 512, Seconds: 40},
		Discards: &IO{Completed: 500, Bytes: 4096000 * 512, Seconds: 0.25},
		Flushes:  &IO{Completed: 900, Seconds: 0.09},
		InFlight: ptr(3.0), BusySeconds: ptr(70.0), WeightedSeconds: ptr(100.5),
	}
	if diff := cmp.Diff(want, disks[1]); diff != "" {
		t.Error(diff)
	}
}

func TestOddDisks(t *testing.T) {
	disks, err := fixture(t, "odd").Disks()
	rw := Disk{
		Reads:    IO{Completed: 100, Merged: 1, Bytes: 2000 * 512, Seconds: 0.03},
		Writes:   IO{Completed: 200, Merged: 2, Bytes: 4000 * 512, Seconds: 0.06},
		InFlight: ptr(0.0), BusySeconds: ptr(0.07), WeightedSeconds: ptr(0.09),
	}
	discards := &IO{Completed: 5, Bytes: 800 * 512, Seconds: 0.006}
	want := []Disk{rw, rw, rw, rw}
	want[0].Device = "sda"
	want[1].Device = "sdb"                                    // 15 fields: too few for discards
	want[2].Device, want[2].Discards = "sdc", discards        // 18 fields
	want[2].InFlight = ptr(1.0)                               //
	want[3].Device, want[3].Discards = "cciss/c0d0", discards // 21 fields: a newer kernel's
	want[3].Flushes = &IO{Completed: 9, Seconds: 0.008}       //
	if diff := cmp.Diff(want, disks); diff != "" {
		t.Error(diff)
	}
	for _, part := range []string{"13 fields", "sde: field 7", "sda is there twice"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

func TestMissingFiles(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "none"), dir} {
		if _, err := New(Options{ProcFS: path}); err == nil || !strings.Contains(err.Error(), "name its path") {
			t.Errorf("%s: %v", path, err)
		}
	}
	stat := filepath.Join(dir, "stat")
	if err := os.WriteFile(stat, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := New(Options{ProcFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(stat); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"info":   func() error { _, err := r.Info(); return err },
		"cpu":    func() error { _, err := r.CPU(); return err },
		"memory": func() error { _, err := r.Memory(); return err },
		"paging": func() error { _, err := r.Paging(); return err },
		"disks":  func() error { _, err := r.Disks(); return err },
		"load":   func() error { _, err := r.Load(); return err },
	} {
		if err := read(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEmptyFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"stat", "meminfo", "vmstat", "diskstats"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := New(Options{ProcFS: dir, SysFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.CPU(); err == nil {
		t.Error("an empty stat is no error")
	}
	if _, err := r.Memory(); err == nil {
		t.Error("an empty meminfo is no error")
	}
	if p, err := r.Paging(); err != nil || p != (Paging{}) {
		t.Errorf("paging: %+v, %v", p, err)
	}
	if d, err := r.Disks(); err != nil || len(d) != 0 {
		t.Errorf("disks: %+v, %v", d, err)
	}
}

// The machine that runs the test can be read.
func TestThisMachine(t *testing.T) {
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := r.CPU()
	if err != nil || len(cpu.Times) == 0 {
		t.Errorf("cpu: %+v, %v", cpu, err)
	}
	m, err := r.Memory()
	if err != nil || *m.Total == 0 {
		t.Errorf("memory: %+v, %v", m, err)
	}
	// A sandbox may hide its disks.
	if _, err := r.Disks(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("disks: %v", err)
	}
}

// Which disks are read can be said by name; a partition is none, whatever is asked for.
func TestFilter(t *testing.T) {
	r := fixture(t, "linux-6.18")
	for _, c := range []struct {
		include, exclude *regexp.Regexp
		want             string
	}{
		{regexp.MustCompile("^(?:nvme.*)$"), nil, "nvme0n1"},
		{nil, regexp.MustCompile("^(?:loop.*|zram0|sr0|vda)$"), "nvme0n1 dm-0 xvda1"},
		{regexp.MustCompile("^(?:loop0|sr0)$"), nil, "loop0 sr0"},
	} {
		r.Include, r.Exclude = c.include, c.exclude
		disks, err := r.Disks()
		var names []string
		for _, d := range disks {
			names = append(names, d.Device)
		}
		if got := strings.Join(names, " "); err != nil || got != c.want {
			t.Errorf("include %v, exclude %v: %s, %v; want %s", c.include, c.exclude, got, err, c.want)
		}
	}
}

func TestPressure(t *testing.T) {
	for text, want := range map[string]Pressure{
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n": {Some: ptr(1.5), Full: ptr(0.25)},
		"full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n":                                                            {Full: ptr(7e-6)},
		"": {},
	} {
		got, err := parsePressure(strings.NewReader(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	}
	if _, err := parsePressure(strings.NewReader("some avg10=0.00 total=x")); err == nil {
		t.Error("no error for a total that is no number")
	}
	if _, err := fixture(t, "odd").Pressure(); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a kernel without pressure: %v", err)
	}
}

// A process is found by a part of its name or command line; a name that the kernel cut inside a
// character, with parentheses in it, and a process that isn't there, do no harm.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"stat":       "cpu0 1 2 3 4\nbtime 1700000000\n",
		"41/comm":    "VLLM::Engine\xc3\n",
		"41/cmdline": "python3\x00-m\x00vllm\x00",
		"41/stat":    "41 (VLLM) (\xc3) S 1 41 41 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 12 0 500 8192 3 18446744073709551615\n",
		"42/comm":    "other\n",
		"42/cmdline": "other\x00",
		"43/comm":    "vllm\n",
		"43/stat":    "43 (vllm) S\n",
		"notapid/x":  "",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := New(Options{ProcFS: dir, PageSize: 4096, Processes: regexp.MustCompile("vllm")})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.PickedProcesses()
	want := []Process{{
		PID: 41, Name: "VLLM) (\uFFFD", User: 2.5, System: 0.5, Resident: 3 * 4096, Virtual: 8192, Threads: ptr(12.0), Started: ptr(1700000005.0),
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if name := r.ProcessName(42); name != "other" {
		t.Errorf("name = %q", name)
	}
	if name := r.ProcessName(99); name != "" {
		t.Errorf("the name of no process = %q", name)
	}
}
