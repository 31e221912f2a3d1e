package collector

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"firstbreach/exporter/gpu"
	"firstbreach/internal/signal"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

// machine is a set that reads a recorded machine, with GPUs from a snapshot.
func machine(t *testing.T, name string, pageSize int, snapshot gpu.Snapshot) *prometheus.Registry {
	t.Helper()
	root := filepath.Join("..", "host", "testdata", name)
	s, err := New(Options{ProcFS: filepath.Join(root, "proc"), SysFS: filepath.Join(root, "sys"), NoGPU: true, pageSize: pageSize})
	if err != nil {
		t.Fatal(err)
	}
	s.add("gpu", newGPU(func() gpu.Snapshot { return snapshot }, func(uint32) string { return "vllm" }))
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(unchecked{s})
	return r
}

// unchecked hides the set's descriptors, which a pedantic registry would take for all of them.
type unchecked struct{ *Set }

func (unchecked) Describe(chan<- *prometheus.Desc) {}

func ptr[T any](v T) *T { return &v }

func twoGPUs() gpu.Snapshot {
	healthy := gpu.GPU{
		UUID: "GPU-1111", Index: 0, Name: "NVIDIA H200", PCIBusID: "00000000:18:00.0", Serial: "165", VBIOS: "96.00.A5", Minor: "0", Up: true,
		MIG: []gpu.MIG{
			{UUID: "MIG-1", Name: "MIG 1g.18gb", GPUInstance: 7, ComputeInstance: 0, Memory: &gpu.MemoryInfo{Total: 16 << 30, Used: 1 << 30, Free: 15 << 30}},
			{UUID: "MIG-2", Name: "MIG 1c.1g.18gb", GPUInstance: 7, ComputeInstance: 1, Memory: &gpu.MemoryInfo{Total: 16 << 30, Used: 1 << 30, Free: 15 << 30}},
		},
		Processes: []gpu.Process{{PID: 4711, Used: 2 << 30}},
	}
	labels := map[gpu.Quantity][2]string{
		gpu.ClockHertz: {"sm"}, gpu.ThrottleSeconds: {"sw_power_cap"}, gpu.ClockEvent: {"hw_thermal"}, gpu.PowerLimitWatts: {"enforced"},
		gpu.FanSpeed: {"0"}, gpu.ECCErrors: {"corrected", "volatile"}, gpu.RetiredPages: {"double_bit"}, gpu.RowsRemapped: {"correctable"},
		gpu.XIDEventsByCode: {"79"},
	}
	for q := range gpu.Quantities {
		healthy.Readings = append(healthy.Readings, gpu.Reading{Quantity: q, Value: float64(q) + 0.5, Labels: labels[q]})
	}
	return gpu.Snapshot{
		Up: true, Driver: "610.57",
		GPUs: []gpu.GPU{healthy, {UUID: "GPU-2222", Index: 1, Name: "NVIDIA H200", PCIBusID: "00000000:19:00.0", Reason: "gpu_is_lost"}},
		Calls: gpu.Calls{
			Total: 1000, Seconds: 2.5, Timeouts: 1, Success: time.Unix(1790000000, 0), Slow: map[string]uint64{"nvmlDeviceGetFieldValues": 2},
			Failed: map[gpu.Failure]uint64{{Function: "nvmlDeviceGetHandleByIndex", Return: gpu.GPUIsLost}: 3},
		},
	}
}

// TestPage compares whole pages; -update writes them anew.
func TestPage(t *testing.T) {
	update := slices.Contains(flag.Args(), "update")
	for _, c := range []struct {
		name     string
		pageSize int
		snapshot gpu.Snapshot
	}{
		{"linux-6.18", 4096, twoGPUs()},                                 // a virtual machine, with disks of other machines
		{"metal-6.8", 4096, gpu.Snapshot{Reason: "no_gpu"}},             // a server with nvme, dm and md
		{"lxcfs-5.15", 4096, gpu.Snapshot{Reason: "driver_not_loaded"}}, // a container's view
		{"grace-6.14-64k", 65536, gpu.Snapshot{Reason: "stale"}},        // arm64 with memory pages of 64 KiB
		{"odd", 4096, gpu.Snapshot{Reason: "library_not_found"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			families, err := machine(t, c.name, c.pageSize, c.snapshot).Gather()
			if err != nil {
				t.Fatal(err)
			}
			families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == signal.ScrapeCollectorTime })
			got := strings.ReplaceAll(text(t, families), `arch="`+runtime.GOARCH+`"`, `arch="ARCH"`)
			path := filepath.Join("testdata", c.name+".prom")
			if update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the page differs; if it should, run: go test ./exporter/collector -args update\n%s", diff)
			}
		})
	}
}

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(machine(t, "linux-6.18", 4096, twoGPUs()))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// Names have a fixed beginning, base units and the ending of their type. The linter passes
// milliwatts, megahertz and percent.
func TestNames(t *testing.T) {
	families, err := machine(t, "linux-6.18", 4096, twoGPUs()).Gather()
	if err != nil {
		t.Fatal(err)
	}
	begins := regexp.MustCompile(`^(host|nvidia_gpu|nvml|exporter)_[a-z0-9_]+$`)
	scaled := regexp.MustCompile(`_(milli|micro|nano|kilo|mega|giga|kibi|mebi|gibi)|_(percent|ms|us|ns|kb|mb|mib|kib|mhz|fahrenheit|minutes|hours)(_|$)`)
	for _, f := range families {
		name := f.GetName()
		if !begins.MatchString(name) || scaled.MatchString(name) {
			t.Errorf("%s: no such beginning, or no base unit", name)
		}
		if counter := f.GetType() == dto.MetricType_COUNTER; counter != strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_count") {
			t.Errorf("%s is a %s", name, f.GetType())
		}
	}
}

// Everything on the page that the catalogue reads is found by it: the names and types agree.
func TestCatalogueFindsThePage(t *testing.T) {
	families, err := machine(t, "linux-6.18", 4096, twoGPUs()).Gather()
	if err != nil {
		t.Fatal(err)
	}
	page := text(t, families)
	for _, e := range []*signal.Engine{signal.Host(), signal.GPU()} {
		found, err := e.Probe(strings.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Warnings) > 0 {
			t.Errorf("%s: %v", e.Name, found.Warnings)
		}
		for _, s := range e.Signals() {
			if got, want := found.Found[s.Name].Name, e.Candidates(s.Name)[0].Name; got != want {
				t.Errorf("%s: found %q, want %q (%s)", s.Name, got, want, found.Missing[s.Name])
			}
		}
	}
}

// A /proc file that blocks costs its own collector.
func TestBlockedFile(t *testing.T) {
	proc := t.TempDir()
	if err := os.CopyFS(proc, os.DirFS("../host/testdata/linux-6.18/proc")); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(proc, "diskstats")
	if err := os.Remove(fifo); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skipf("no FIFO here: %v", err)
	}
	s, err := New(Options{ProcFS: proc, NoGPU: true, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // let the blocked read go
		if f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			f.Close()
		}
	})
	for range 3 {
		got := gather(t, s)
		if got[success("disk")] != 0 || got[success("cpu")] != 1 || got[success("memory")] != 1 {
			t.Errorf("got %v", got)
		}
	}
}
