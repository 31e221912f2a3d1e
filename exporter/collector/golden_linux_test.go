package collector

import (
	"flag"
	"os"
	"path/filepath"
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
func machine(t *testing.T, name string, snapshot gpu.Snapshot) *prometheus.Registry {
	t.Helper()
	root := filepath.Join("..", "host", "testdata", name)
	s, err := New(Options{ProcFS: filepath.Join(root, "proc"), SysFS: filepath.Join(root, "sys"), NoGPU: true})
	if err != nil {
		t.Fatal(err)
	}
	s.add("gpu", newGPU(func() gpu.Snapshot { return snapshot }))
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(unchecked{s})
	return r
}

// unchecked hides the set's descriptors, which a pedantic registry would take for all of them.
type unchecked struct{ *Set }

func (unchecked) Describe(chan<- *prometheus.Desc) {}

func ptr[T any](v T) *T { return &v }

func twoGPUs() gpu.Snapshot {
	return gpu.Snapshot{
		Up: true, Driver: "610.57",
		GPUs: []gpu.GPU{
			{
				UUID: "GPU-1111", Index: 0, Name: "NVIDIA H200", PCIBusID: "00000000:18:00.0", Up: true,
				Utilization: ptr(0.37), MemoryUtilization: ptr(0.12), PowerWatts: ptr(250.5), EnergyJoules: ptr(3000.5), Celsius: ptr(61.0),
				Memory: &gpu.MemoryInfo{Total: 80 << 30, Free: 20 << 30, Used: 59 << 30, Reserved: ptr[uint64](1 << 30)},
			},
			{UUID: "GPU-2222", Index: 1, Name: "NVIDIA H200", PCIBusID: "00000000:19:00.0", Reason: "gpu_is_lost"},
		},
		Errors: map[gpu.Failure]uint64{{Function: "nvmlDeviceGetHandleByIndex", Return: gpu.GPUIsLost}: 3},
	}
}

// TestPage compares whole pages; -update writes them anew. memory pages of 4 KiB are assumed.
func TestPage(t *testing.T) {
	update := slices.Contains(flag.Args(), "update")
	for name, snapshot := range map[string]gpu.Snapshot{
		"linux-6.18": twoGPUs(),
		"odd":        {Reason: "library_not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getpagesize() != 4096 {
				t.Skip("the recorded page is of a machine with memory pages of 4 KiB")
			}
			families, err := machine(t, name, snapshot).Gather()
			if err != nil {
				t.Fatal(err)
			}
			families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == signal.ScrapeCollectorTime })
			got := strings.ReplaceAll(text(t, families), `arch="`+runtime.GOARCH+`"`, `arch="ARCH"`)
			path := filepath.Join("testdata", name+".prom")
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
	problems, err := testutil.GatherAndLint(machine(t, "linux-6.18", twoGPUs()))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// Everything on the page that the catalogue reads is found by it: the names and types agree.
func TestCatalogueFindsThePage(t *testing.T) {
	families, err := machine(t, "linux-6.18", twoGPUs()).Gather()
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
