package gpu

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// values renders the readings of a GPU, by quantity and labels.
func values(g GPU) map[string]float64 {
	m := map[string]float64{}
	for _, r := range g.Readings {
		m[key(r.Quantity, r.Labels[:]...)] = r.Value
	}
	return m
}

func key(q Quantity, labels ...string) string {
	return fmt.Sprint(int(q)) + strings.TrimRight("/"+strings.Join(labels, "/"), "/")
}

// sampled starts a sampler in a bubble, lets it run for d and returns its snapshot.
func sampled(t *testing.T, f *fakeDriver, d time.Duration) Snapshot {
	t.Helper()
	var snap Snapshot
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f})
		defer s.Close()
		time.Sleep(d)
		synctest.Wait()
		snap = s.Snapshot()
	})
	if f.parallel.Load() {
		t.Error("two calls into the driver at once")
	}
	return snap
}

func TestSample(t *testing.T) {
	f := &fakeDriver{gpus: []*fakeGPU{working("a"), working("b")}}
	snap := sampled(t, f, time.Second/2)
	if !snap.Up || snap.Driver != "610.57" || len(snap.GPUs) != 2 {
		t.Fatalf("up = %v (%s), driver %q, %d GPUs", snap.Up, snap.Reason, snap.Driver, len(snap.GPUs))
	}
	g := snap.GPUs[1]
	if want := (GPU{UUID: "b", Index: 1, Name: "NVIDIA Test", PCIBusID: "0:b", Serial: "123", VBIOS: "96.00", Minor: "3", Up: true}); g.UUID != want.UUID ||
		g.Index != 1 || g.Name != want.Name || g.PCIBusID != want.PCIBusID || g.Serial != want.Serial || g.VBIOS != want.VBIOS || g.Minor != want.Minor || !g.Up {
		t.Errorf("got %+v, want %+v", g, want)
	}
	got := values(g)
	want := map[string]float64{
		key(Utilization): 0.37, key(MemoryUtilization): 0.12, key(BusySeconds): 0, key(MemoryBusySeconds): 0,
		key(EncoderUtilization): 0.11, key(DecoderUtilization): 0.12, key(JPEGUtilization): 0.13, key(OFAUtilization): 0.14,
		key(ClockHertz, "graphics"): 1000e6, key(ClockHertz, "sm"): 1001e6, key(ClockHertz, "memory"): 1002e6, key(ClockHertz, "video"): 1003e6,
		key(ThrottleSeconds, "sw_power_cap"): 1.5, key(ThrottleSeconds, "sw_thermal"): 2.5, key(ThrottleSeconds, "hw_thermal"): 0,
		key(ThrottleSeconds, "hw_power_brake"): 0, key(ThrottleSeconds, "sync_boost"): 0,
		// What the fields don't have comes from the older call; the thermal time is counted once.
		key(ThrottleSeconds, "board_limit"): 3, key(ThrottleSeconds, "low_utilization"): 4, key(ThrottleSeconds, "reliability"): 5,
		key(PerformanceState): 2, key(MemoryUsed): 60 << 30, key(MemoryFree): 20<<30 - 1<<20, key(MemoryReserved): 1 << 20, key(MemoryTotal): 80 << 30,
		key(BAR1Used): 5 << 20, key(BAR1Total): 256 << 20, key(ProtectedUsed): 1 << 20, key(ProtectedTotal): 1 << 30,
		key(PowerWatts): 250.5, key(PowerLimitWatts, "enforced"): 600, key(PowerLimitWatts, "default"): 700, key(EnergyJoules): 3000.5,
		key(Celsius): 61, key(MemoryCelsius): 70, key(FanSpeed, "0"): 0.4, key(ECCEnabled): 1,
		key(ECCErrors, "corrected", "aggregate"): 1, key(ECCErrors, "uncorrected", "aggregate"): 3,
		key(ECCErrors, "corrected", "volatile"): 5, key(ECCErrors, "uncorrected", "volatile"): 7,
		key(RetiredPages, "single_bit"): 8, key(RetiredPages, "double_bit"): 9, key(RetirementPending): 0,
		key(RowsRemapped, "correctable"): 1, key(RowsRemapped, "uncorrectable"): 2, key(RemappingPending): 1, key(RemappingFailed): 0,
		key(RecoveryAction): 0, key(PCIeReplays): 7, key(PCIeReceived): 1000, key(PCIeTransmitted): 2000, key(MIGEnabled): 0, key(XIDEvents): 0,
	}
	for bit, reason := range clockReasons {
		want[key(ClockEvent, reason)] = 0
		if bit == 2 || bit == 6 {
			want[key(ClockEvent, reason)] = 1
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if f.shutdowns != 1 || f.initCalls != 1 {
		t.Errorf("%d inits and %d shutdowns after Close, want one of each", f.initCalls, f.shutdowns)
	}
}

// The driver is called as often as the interval says, however often the snapshot is read, and no
// cycle makes more than a bounded number of calls.
func TestCallsDoNotDependOnReaders(t *testing.T) {
	calls := func(reads int) int64 {
		f := &fakeDriver{gpus: []*fakeGPU{working("a")}}
		synctest.Test(t, func(t *testing.T) {
			s := Start(Options{Driver: f})
			defer s.Close()
			for range 995 { // between two ticks
				for range reads {
					s.Snapshot()
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		if f.initCalls != 1 {
			t.Errorf("%d inits", f.initCalls)
		}
		return f.calls.Load()
	}
	none, many := calls(0), calls(50)
	if none != many {
		t.Errorf("%d calls without readers, %d with", none, many)
	}
	if perCycle := none / 10; perCycle > 60 {
		t.Errorf("%d calls in a cycle", perCycle)
	}
}

// A value that can't be read, or can't be, is absent; the others stay.
func TestAbsentValues(t *testing.T) {
	ret := func(function string, r Return) func(*fakeGPU) {
		return func(g *fakeGPU) { g.ret[function] = r }
	}
	for _, c := range []struct {
		name   string
		change func(*fakeGPU)
		gone   []Quantity
		counts Failure
	}{
		{"MIG has no utilisation", ret("nvmlDeviceGetUtilizationRates", NotSupported),
			[]Quantity{Utilization, MemoryUtilization, BusySeconds, MemoryBusySeconds}, Failure{}},
		{"utilisation over 100 %", func(g *fakeGPU) { g.util = 4294967295 },
			[]Quantity{Utilization, MemoryUtilization, BusySeconds, MemoryBusySeconds}, Failure{"nvmlDeviceGetUtilizationRates", Invalid}},
		{"a virtual GPU has no power", ret("nvmlDeviceGetPowerUsage", NotSupported), []Quantity{PowerWatts}, Failure{}},
		{"an old driver has no energy", ret("nvmlDeviceGetTotalEnergyConsumption", FunctionNotFound), []Quantity{EnergyJoules}, Failure{}},
		{"an idle GPU has no samples", ret("nvmlDeviceGetSamples", NotFound), nil, Failure{}},
		{"more used than there is", func(g *fakeGPU) { g.mem.Used = g.mem.Total + 1 },
			[]Quantity{MemoryUsed, MemoryFree, MemoryReserved, MemoryTotal}, Failure{"nvmlDeviceGetMemoryInfo", Invalid}},
		{"no memory set apart before driver 510", func(g *fakeGPU) { g.mem.Reserved = nil }, []Quantity{MemoryReserved}, Failure{}},
		{"no permission", ret("nvmlDeviceGetTemperatureV", NoPermission), []Quantity{Celsius}, Failure{"nvmlDeviceGetTemperatureV", NoPermission}},
		{"no fan", ret("nvmlDeviceGetNumFans", NotSupported), []Quantity{FanSpeed}, Failure{}},
		{"no ECC", ret("nvmlDeviceGetTotalEccErrors", NotSupported), []Quantity{ECCErrors}, Failure{}},
		{"no temperature of memory", func(g *fakeGPU) { delete(g.fields, fieldMemoryTemperature) }, []Quantity{MemoryCelsius}, Failure{}},
		{"a sentinel for a temperature", func(g *fakeGPU) { g.fields[fieldMemoryTemperature] = Field{Value: 1 << 63} },
			[]Quantity{MemoryCelsius}, Failure{"nvmlDeviceGetFieldValues", Invalid}},
		{"no fields", ret("nvmlDeviceGetFieldValues", FunctionNotFound),
			[]Quantity{MemoryCelsius, PCIeReceived, PCIeTransmitted, RecoveryAction}, Failure{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := working("a")
			c.change(g)
			snap := sampled(t, &fakeDriver{gpus: []*fakeGPU{g}}, time.Second/2)
			if !snap.Up || len(snap.GPUs) != 1 || !snap.GPUs[0].Up {
				t.Fatalf("snapshot %+v", snap)
			}
			have := map[Quantity]bool{}
			for _, r := range snap.GPUs[0].Readings {
				have[r.Quantity] = true
			}
			absent := map[Quantity]bool{PCIeReceiveRate: true, PCIeTransmitRate: true, XIDEventsByCode: true, XIDLast: true}
			for _, q := range c.gone {
				absent[q] = true
			}
			for q := range Quantities {
				if have[q] == absent[q] {
					t.Errorf("quantity %d: there = %v", q, have[q])
				}
			}
			failed := map[Failure]uint64{}
			if c.counts != (Failure{}) {
				failed[c.counts] = 1
			}
			if diff := cmp.Diff(failed, snap.Calls.Failed); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// One lost GPU costs one GPU: it stays on the page as down, also when it is no longer counted.
func TestLostGPU(t *testing.T) {
	for _, c := range []struct {
		name   string
		lose   func(*fakeDriver)
		reason string
	}{
		{"its handle is lost", func(f *fakeDriver) { f.gpus[1].handle = GPUIsLost }, "gpu_is_lost"},
		{"a getter says so", func(f *fakeDriver) { f.gpus[1].ret["nvmlDeviceGetMemoryInfo"] = GPUIsLost }, "gpu_is_lost"},
		{"its cgroup was taken away", func(f *fakeDriver) { f.gpus[1].handle = Unknown }, "unknown"},
		{"it needs a reset", func(f *fakeDriver) { f.gpus[1].ret["nvmlDeviceGetUtilizationRates"] = ResetRequired }, "reset_required"},
		{"it is no longer counted", func(f *fakeDriver) { f.gpus = []*fakeGPU{f.gpus[0], f.gpus[2]} }, "gpu_is_lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeDriver{gpus: []*fakeGPU{working("a"), working("b"), working("c")}}
			synctest.Test(t, func(t *testing.T) {
				s := Start(Options{Driver: f})
				defer s.Close()
				synctest.Wait()
				f.set(func() { c.lose(f) })
				time.Sleep(3 * time.Second)
				synctest.Wait()
				snap := s.Snapshot()
				if !snap.Up || len(snap.GPUs) != 3 {
					t.Fatalf("up %v, %d GPUs", snap.Up, len(snap.GPUs))
				}
				for _, g := range snap.GPUs {
					if g.UUID != "b" {
						if !g.Up || len(g.Readings) == 0 {
							t.Errorf("%s is down as well", g.UUID)
						}
						continue
					}
					w := GPU{UUID: "b", Index: 1, Name: "NVIDIA Test", PCIBusID: "0:b", Serial: "123", VBIOS: "96.00", Minor: "3", Reason: c.reason}
					if diff := cmp.Diff(w, g); diff != "" {
						t.Error(diff)
					}
				}
			})
		})
	}
}

// A GPU in whose call the driver hangs costs that GPU; it comes back when the call does, and Close
// doesn't wait for it. What is left behind is bounded.
func TestHang(t *testing.T) {
	release := make(chan struct{})
	f := &fakeDriver{gpus: []*fakeGPU{working("a"), working("b"), working("c")}}
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		before := runtime.NumGoroutine()
		s := Start(Options{Driver: f})
		synctest.Wait()
		f.set(func() { f.gpus[1].hang = release })
		time.Sleep(time.Minute)
		synctest.Wait()
		snap := s.Snapshot()
		if !snap.Up || len(snap.GPUs) != 3 || !snap.GPUs[0].Up || !snap.GPUs[2].Up || len(snap.GPUs[2].Readings) == 0 {
			t.Errorf("the other GPUs: %+v", snap)
		}
		if b := snap.GPUs[1]; b.UUID != "b" || b.Up || b.Reason != ReasonHung || b.Readings != nil {
			t.Errorf("the GPU that hangs: %+v", b)
		}
		if snap.Calls.Timeouts != 1 {
			t.Errorf("%d timeouts in a minute, want 1", snap.Calls.Timeouts)
		}
		if n := runtime.NumGoroutine() - before; n > 4 {
			t.Errorf("%d goroutines more", n)
		}
		f.set(func() { f.gpus[1].hang = nil })
		close(release)
		time.Sleep(2 * time.Second)
		if g := s.Snapshot().GPUs[1]; !g.Up {
			t.Errorf("after the call came back: %+v", g)
		}
		again := make(chan struct{})
		f.set(func() { f.gpus[0].hang = again })
		time.Sleep(2 * time.Second)
		begin := time.Now()
		s.Close()
		if waited := time.Since(begin); waited > closeWait {
			t.Errorf("Close took %v", waited)
		}
		close(again)
	})
}

// However many GPUs hang at once, the others have their values all the time.
func TestManyHang(t *testing.T) {
	f := &fakeDriver{}
	for i := range maxHung {
		f.gpus = append(f.gpus, working(fmt.Sprint("gpu", i)))
	}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f})
		defer s.Close()
		synctest.Wait()
		release := make(chan struct{})
		f.set(func() {
			for _, g := range f.gpus[1:] {
				g.hang = release
			}
		})
		before := runtime.NumGoroutine()
		for range 300 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			snap := s.Snapshot()
			if !snap.Up || !snap.GPUs[0].Up || len(snap.GPUs[0].Readings) == 0 || len(snap.GPUs) != maxHung {
				t.Fatalf("the GPU that works: %+v", snap)
			}
		}
		snap := s.Snapshot()
		for _, g := range snap.GPUs[1:] {
			if g.Up || g.Reason != ReasonHung {
				t.Errorf("%s: up %v, %s", g.UUID, g.Up, g.Reason)
			}
		}
		if n := runtime.NumGoroutine() - before; n > maxHung || snap.Calls.Timeouts != maxHung-1 {
			t.Errorf("%d goroutines more, %d timeouts", n, snap.Calls.Timeouts)
		}
		f.set(func() {
			for _, g := range f.gpus {
				g.hang = nil
			}
		})
		close(release)
		time.Sleep(2 * time.Second)
		for _, g := range s.Snapshot().GPUs {
			if !g.Up {
				t.Errorf("%s is still down: %s", g.UUID, g.Reason)
			}
		}
	})
}

// A driver that hangs as a whole takes the values away, and the page stays.
func TestStale(t *testing.T) {
	f := &fakeDriver{gpus: []*fakeGPU{working("a")}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f})
		defer s.Close()
		synctest.Wait()
		release := make(chan struct{})
		f.set(func() { f.countHang = release })
		begin := time.Now()
		for time.Since(begin) < 9*time.Second {
			time.Sleep(time.Second)
		}
		if snap := s.Snapshot(); !snap.Up {
			t.Errorf("down after 9 s: %s", snap.Reason)
		}
		time.Sleep(5 * time.Second)
		snap := s.Snapshot()
		if snap.Up || snap.Reason != ReasonStale || len(snap.GPUs) != 1 || snap.GPUs[0].Up || snap.GPUs[0].Readings != nil {
			t.Errorf("snapshot %+v", snap)
		}
		if age := time.Since(snap.Calls.Success); age < 13*time.Second {
			t.Errorf("the last success is %v old", age)
		}
		f.set(func() { f.countHang = nil })
		close(release)
		time.Sleep(2 * time.Second)
		if snap := s.Snapshot(); !snap.Up {
			t.Errorf("after it came back: %s", snap.Reason)
		}
	})
}

func TestSameUUIDTwice(t *testing.T) {
	snap := sampled(t, &fakeDriver{gpus: []*fakeGPU{working("a"), working("a"), working("")}}, time.Second/2)
	if len(snap.GPUs) != 1 || !snap.Up {
		t.Errorf("%d GPUs, want 1", len(snap.GPUs))
	}
}

func TestDown(t *testing.T) {
	for _, c := range []struct {
		name   string
		f      *fakeDriver
		reason string
	}{
		{"no library", &fakeDriver{inits: []Return{LibraryNotFound}}, "library_not_found"},
		{"no driver", &fakeDriver{inits: []Return{DriverNotLoaded}}, "driver_not_loaded"},
		{"driver replaced", &fakeDriver{inits: []Return{LibVersionMismatch}}, "library_version_mismatch"},
		{"not a real library", &fakeDriver{inits: []Return{FunctionNotFound}}, "library_incomplete"},
		{"no GPU", &fakeDriver{}, "no_gpu"},
		{"unknown", &fakeDriver{countRet: Unknown}, "unknown"},
		{"its device files were taken away", &fakeDriver{gpus: []*fakeGPU{{handle: Unknown}, {handle: Unknown}}}, "unknown"},
		{"a new code", &fakeDriver{countRet: 77}, "code_77"},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Long enough for a snapshot that nobody refreshes to become stale.
			snap := sampled(t, c.f, 25*time.Second)
			if snap.Up || snap.Reason != c.reason || snap.GPUs != nil {
				t.Errorf("snapshot %+v, want reason %s", snap, c.reason)
			}
		})
	}
}

// A first failure is no final one, but a process can't change to a new library.
func TestRecovery(t *testing.T) {
	f := &fakeDriver{inits: []Return{DriverNotLoaded, DriverNotLoaded, Success}, gpus: []*fakeGPU{working("a")}}
	if snap := sampled(t, f, 61*time.Second); !snap.Up || f.initCalls != 3 {
		t.Errorf("up %v after %d inits", snap.Up, f.initCalls)
	}
	f = &fakeDriver{inits: []Return{LibVersionMismatch, Success}}
	if snap := sampled(t, f, time.Hour); snap.Up || f.initCalls != 1 || f.shutdowns != 0 {
		t.Errorf("up %v after %d inits and %d shutdowns", snap.Up, f.initCalls, f.shutdowns)
	}
}

// The driver is unloaded under a running sampler: down, no old values, and up again when it is
// back.
func TestReinit(t *testing.T) {
	f := &fakeDriver{gpus: []*fakeGPU{working("a")}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f})
		defer s.Close()
		synctest.Wait()
		f.set(func() { f.gpus[0].ret = map[string]Return{"nvmlDeviceGetPowerUsage": Uninitialized} })
		time.Sleep(2 * time.Second)
		snap := s.Snapshot()
		if snap.Up || snap.Reason != "uninitialized" || len(snap.GPUs) != 1 || snap.GPUs[0].Up || snap.GPUs[0].Readings != nil {
			t.Errorf("snapshot %+v", snap)
		}
		f.set(func() { f.gpus[0].ret = nil })
		time.Sleep(31 * time.Second)
		if snap := s.Snapshot(); !snap.Up || !snap.GPUs[0].Up {
			t.Errorf("snapshot %+v", snap)
		}
	})
}

// NVML is let go of on demand, and taken again after a minute.
func TestRelease(t *testing.T) {
	f := &fakeDriver{gpus: []*fakeGPU{working("a")}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f})
		defer s.Close()
		synctest.Wait()
		s.Release()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if snap := s.Snapshot(); f.shutdowns != 1 || snap.Up || snap.Reason != ReasonReleased {
			t.Errorf("%d shutdowns, %+v", f.shutdowns, snap)
		}
		time.Sleep(time.Minute)
		if snap := s.Snapshot(); !snap.Up {
			t.Errorf("after a minute: %+v", snap)
		}
	})
}

// A GPU that sleeps isn't woken.
func TestSuspended(t *testing.T) {
	dir := t.TempDir()
	device := filepath.Join(dir, "bus/pci/devices/0000:01:00.0")
	write := func(name, text string) {
		path := filepath.Join(device, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("vendor", "0x10de")
	write("class", "0x030200")
	write("power/runtime_status", "suspended")
	f := &fakeDriver{gpus: []*fakeGPU{working("a")}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f, Suspended: func() bool { return Suspended(dir) }})
		defer s.Close()
		time.Sleep(10 * time.Second)
		if snap := s.Snapshot(); snap.Reason != ReasonSuspended || f.calls.Load() != 0 {
			t.Errorf("%+v after %d calls", snap, f.calls.Load())
		}
		write("power/runtime_status", "active")
		time.Sleep(2 * time.Second)
		if snap := s.Snapshot(); !snap.Up {
			t.Errorf("awake: %+v", snap)
		}
	})
}

// A slow function costs itself: the page stays fresh, and it is called the less often.
func TestSlowGetter(t *testing.T) {
	g := working("a")
	slow := 0
	g.during = func() { slow++; time.Sleep(400 * time.Millisecond) }
	f := &fakeDriver{gpus: []*fakeGPU{g}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f})
		defer s.Close()
		time.Sleep(time.Minute + time.Second/2)
		synctest.Wait()
		snap := s.Snapshot()
		if !snap.Up || time.Since(snap.Taken) > 1500*time.Millisecond || snap.Calls.Slow["nvmlDeviceGetUtilizationRates"] != uint64(slow) {
			t.Errorf("taken %v ago, slow %v, want %d", time.Since(snap.Taken), snap.Calls.Slow, slow)
		}
	})
	if slow > 10 {
		t.Errorf("%d slow calls in a minute", slow)
	}
}

func TestSkip(t *testing.T) {
	f := &fakeDriver{gpus: []*fakeGPU{working("a")}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f, Skip: []string{"nvmlDeviceGetRemappedRows"}, PCIeThroughput: true})
		defer s.Close()
		synctest.Wait()
		got := values(s.Snapshot().GPUs[0])
		if _, ok := got[key(RemappingPending)]; ok || got[key(PCIeReceiveRate)] != 500_000 || got[key(PCIeTransmitRate)] != 600_000 {
			t.Errorf("got %v", got)
		}
	})
}

// MIG instances come and go while they are read; what the GPU has once stays once.
func TestMIG(t *testing.T) {
	g := working("a")
	memory := &MemoryInfo{Total: 10 << 30, Used: 1 << 30, Free: 9 << 30}
	g.migs = []MIG{
		{UUID: "MIG-1", GPUInstance: 1, Memory: memory},
		{UUID: "MIG-2", GPUInstance: 2, Memory: memory},
		{UUID: "MIG-3", GPUInstance: 3, Memory: &MemoryInfo{Total: 1, Used: math.MaxUint64}},
	}
	g.migRets = map[int]Return{1: NotFound}
	f := &fakeDriver{gpus: []*fakeGPU{g}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f})
		defer s.Close()
		synctest.Wait()
		snap := s.Snapshot()
		if got := snap.GPUs[0].MIG; len(got) != 2 || got[0].UUID != "MIG-1" || got[1].UUID != "MIG-3" || got[1].Memory != nil {
			t.Errorf("got %+v", got)
		}
		f.set(func() { f.gpus[0].migs, f.gpus[0].migRets = f.gpus[0].migs[1:], map[int]Return{1: InvalidArgument} })
		time.Sleep(11 * time.Second)
		if got := s.Snapshot().GPUs[0]; len(got.MIG) != 1 || got.MIG[0].UUID != "MIG-2" || !got.Up {
			t.Errorf("after a change: %+v", got.MIG)
		}
	})
}

// Nonsense in the list of processes, as from a driver with another layout, is dropped.
func TestProcesses(t *testing.T) {
	g := working("a")
	g.processList = []Process{
		{PID: 10, Used: 1 << 30}, {PID: 10, Used: 2 << 30, Graphics: true}, {PID: 0, Used: 5},
		{PID: 4_000_000_000, Used: 5}, {PID: 11, Used: 1 << 60}, {PID: 12, Used: math.MaxUint64},
	}
	f := &fakeDriver{gpus: []*fakeGPU{g}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f, Processes: true})
		defer s.Close()
		synctest.Wait()
		if diff := cmp.Diff([]Process{{PID: 10, Used: 2 << 30}}, s.Snapshot().GPUs[0].Processes); diff != "" {
			t.Error(diff)
		}
		f.set(func() { f.gpus[0].ret = map[string]Return{"nvmlDeviceGetComputeRunningProcesses": InsufficientSize} })
		time.Sleep(11 * time.Second)
		snap := s.Snapshot()
		if g := snap.GPUs[0]; !g.Up || g.Processes != nil || snap.Calls.Failed[Failure{"nvmlDeviceGetComputeRunningProcesses", InsufficientSize}] == 0 {
			t.Errorf("got %+v, %v", g.Processes, snap.Calls.Failed)
		}
	})
}

// Two errors of one code are two; the counter is there before the first.
func TestXID(t *testing.T) {
	f := &fakeDriver{gpus: []*fakeGPU{working("a"), working("b")}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f})
		defer s.Close()
		synctest.Wait()
		f.set(func() { f.xids = []XID{{"a", 79}, {"a", 79}, {"a", 13}} })
		time.Sleep(2 * time.Second)
		at := time.Now()
		time.Sleep(time.Hour)
		got := values(s.Snapshot().GPUs[0])
		if got[key(XIDEvents)] != 3 || got[key(XIDEventsByCode, "79")] != 2 || got[key(XIDEventsByCode, "13")] != 1 {
			t.Errorf("got %v", got)
		}
		if last := got[key(XIDLast)]; last > float64(at.Unix()) || last < float64(at.Unix()-2) {
			t.Errorf("last %v, now %v", last, at.Unix())
		}
		if got := values(s.Snapshot().GPUs[1]); got[key(XIDEvents)] != 0 {
			t.Errorf("the other GPU has %v", got[key(XIDEvents)])
		}
	})
}

// A failure is logged once, however often it happens.
func TestLogsOnce(t *testing.T) {
	var log bytes.Buffer
	g := working("a")
	g.ret = map[string]Return{"nvmlDeviceGetMemoryInfo": NoPermission, "nvmlDeviceGetNumFans": NotSupported}
	f := &fakeDriver{gpus: []*fakeGPU{g}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		time.Sleep(time.Minute)
		s.Close()
		if n := s.last.Load().Calls.Failed[Failure{"nvmlDeviceGetMemoryInfo", NoPermission}]; n < 60 {
			t.Errorf("%d failures counted, want one a second", n)
		}
	})
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

// A panic in a reading is that GPU's.
func TestPanic(t *testing.T) {
	f := &fakeDriver{gpus: []*fakeGPU{working("a"), working("b")}}
	f.gpus[0].during = func() { panic("no") }
	snap := sampled(t, f, 3*time.Second)
	if !snap.Up || snap.GPUs[0].Up || !snap.GPUs[1].Up {
		t.Errorf("snapshot %+v", snap)
	}
}

func TestReturnNames(t *testing.T) {
	seen := map[string]Return{}
	for r := Return(-2); r < 1000; r++ {
		if other, ok := seen[r.String()]; ok {
			t.Errorf("%d and %d are both %s", other, r, r)
		}
		seen[r.String()] = r
	}
}

// Ten thousand cycles with errors, losses and events leave heap and goroutines as they were.
func TestSoak(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	f := &fakeDriver{gpus: []*fakeGPU{working("a"), working("b")}}
	f.gpus[1].ret = map[string]Return{"nvmlDeviceGetMemoryInfo": Unknown}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f, Interval: time.Second, Processes: true})
		defer s.Close()
		round := func(cycles int) {
			for i := range cycles {
				f.set(func() {
					f.gpus[0].handle = Success
					if i%10 == 0 {
						f.gpus[0].handle = GPUIsLost
					}
					f.xids = append(f.xids, XID{"b", uint64(i)})
				})
				time.Sleep(time.Second)
			}
		}
		round(500)
		before, goroutines := heap(), runtime.NumGoroutine()
		round(10_000)
		if now := runtime.NumGoroutine(); now > goroutines {
			t.Errorf("%d goroutines, before %d", now, goroutines)
		}
		if now := heap(); now > before+before/2+256<<10 {
			t.Errorf("heap %d bytes, before %d", now, before)
		}
	})
}
