package gpu

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeDriver is a driver whose answers a test sets. The zero value has no GPU.
type fakeDriver struct {
	mu        sync.Mutex
	inits     []Return // one for each Init, the last one for ever
	countRet  Return
	gpus      []*fakeGPU
	initCalls int
	shutdowns int
	calling   atomic.Int32
	parallel  atomic.Bool // two calls at once were seen
}

// enter notes a call; a test changes the driver with set only.
func (f *fakeDriver) enter() func() {
	if f.calling.Add(1) > 1 {
		f.parallel.Store(true)
	}
	f.mu.Lock()
	return func() { f.mu.Unlock(); f.calling.Add(-1) }
}

func (f *fakeDriver) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeDriver) Init() Return {
	defer f.enter()()
	i := f.initCalls
	f.initCalls++
	if len(f.inits) == 0 {
		return Success
	}
	return f.inits[min(i, len(f.inits)-1)]
}

func (f *fakeDriver) Shutdown() Return          { defer f.enter()(); f.shutdowns++; return Success }
func (f *fakeDriver) Version() (string, Return) { defer f.enter()(); return "610.57", Success }
func (f *fakeDriver) Count() (int, Return)      { defer f.enter()(); return len(f.gpus), f.countRet }

// Device returns the GPU as it is now.
func (f *fakeDriver) Device(i int) (Device, Return) {
	defer f.enter()()
	f.gpus[i].seen++
	now := *f.gpus[i]
	return &now, now.handle
}

// fakeGPU is one GPU; seen counts the samples of it.
type fakeGPU struct {
	handle         Return // of the handle
	uuid           string
	util, bus      uint32
	utilRet        Return
	mem            MemoryInfo
	memRet         Return
	milliwatts     uint32
	powerRet       Return
	millijoules    uint64
	energyRet      Return
	celsius        int32
	temperatureRet Return
	hang           chan struct{} // Utilization blocks until it is closed
	seen           int
}

func (g *fakeGPU) UUID() (string, Return)     { return g.uuid, Success }
func (g *fakeGPU) Name() (string, Return)     { return "NVIDIA Test", Success }
func (g *fakeGPU) PCIBusID() (string, Return) { return "00000000:" + g.uuid + ":00.0", Success }
func (g *fakeGPU) Utilization() (uint32, uint32, Return) {
	if g.hang != nil {
		<-g.hang
	}
	return g.util, g.bus, g.utilRet
}
func (g *fakeGPU) Memory() (MemoryInfo, Return) { return g.mem, g.memRet }
func (g *fakeGPU) Power() (uint32, Return)      { return g.milliwatts, g.powerRet }
func (g *fakeGPU) Energy() (uint64, Return)     { return g.millijoules, g.energyRet }
func (g *fakeGPU) Temperature() (int32, Return) { return g.celsius, g.temperatureRet }

func working(uuid string) *fakeGPU {
	reserved := uint64(1 << 20)
	return &fakeGPU{
		uuid: uuid, util: 37, bus: 12, milliwatts: 250500, millijoules: 3_000_500, celsius: 61,
		mem: MemoryInfo{Total: 80 << 30, Free: 20<<30 - 1<<20, Used: 60 << 30, Reserved: &reserved},
	}
}

func want(uuid string, index int) GPU {
	ptr := func(v float64) *float64 { return &v }
	g := working(uuid)
	return GPU{
		UUID: uuid, Index: index, Name: "NVIDIA Test", PCIBusID: "00000000:" + uuid + ":00.0", Up: true,
		Utilization: ptr(0.37), MemoryUtilization: ptr(0.12), Memory: &g.mem,
		PowerWatts: ptr(250.5), EnergyJoules: ptr(3000.5), Celsius: ptr(61),
	}
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
	if !snap.Up || snap.Driver != "610.57" {
		t.Errorf("up = %v (%s), driver %q", snap.Up, snap.Reason, snap.Driver)
	}
	if diff := cmp.Diff([]GPU{want("a", 0), want("b", 1)}, snap.GPUs); diff != "" {
		t.Error(diff)
	}
	if f.shutdowns != 1 {
		t.Errorf("%d shutdowns after Close, want 1", f.shutdowns)
	}
}

// The driver is called once a second, however often the snapshot is read.
func TestCallsDoNotDependOnReaders(t *testing.T) {
	f := &fakeDriver{gpus: []*fakeGPU{working("a")}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f})
		defer s.Close()
		for range 1000 {
			s.Snapshot()
			time.Sleep(10 * time.Millisecond)
		}
	})
	if f.gpus[0].seen < 10 || f.gpus[0].seen > 11 {
		t.Errorf("%d samples in 10 s, want one a second", f.gpus[0].seen)
	}
}

// A value that can't be read, or can't be, is absent; the others stay.
func TestAbsentValues(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*fakeGPU)
		gone   func(*GPU)
		counts Failure
	}{
		{"MIG has no utilisation", func(g *fakeGPU) { g.utilRet = NotSupported },
			func(g *GPU) { g.Utilization, g.MemoryUtilization = nil, nil }, Failure{}},
		{"utilisation over 100 %", func(g *fakeGPU) { g.util = 4294967295 },
			func(g *GPU) { g.Utilization, g.MemoryUtilization = nil, nil },
			Failure{"nvmlDeviceGetUtilizationRates", Invalid}},
		{"a virtual GPU has no power", func(g *fakeGPU) { g.powerRet = NotSupported },
			func(g *GPU) { g.PowerWatts = nil }, Failure{}},
		{"an old driver has no energy", func(g *fakeGPU) { g.energyRet = FunctionNotFound },
			func(g *GPU) { g.EnergyJoules = nil }, Failure{}},
		{"more used than there is", func(g *fakeGPU) { g.mem.Used = g.mem.Total + 1 },
			func(g *GPU) { g.Memory = nil }, Failure{"nvmlDeviceGetMemoryInfo", Invalid}},
		{"no permission", func(g *fakeGPU) { g.temperatureRet = NoPermission },
			func(g *GPU) { g.Celsius = nil }, Failure{"nvmlDeviceGetTemperatureV", NoPermission}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := working("a")
			c.change(g)
			snap := sampled(t, &fakeDriver{gpus: []*fakeGPU{g}}, time.Second/2)
			w := want("a", 0)
			c.gone(&w)
			if diff := cmp.Diff([]GPU{w}, snap.GPUs); diff != "" {
				t.Error(diff)
			}
			errors := map[Failure]uint64{}
			if c.counts != (Failure{}) {
				errors[c.counts] = 1
			}
			if diff := cmp.Diff(errors, snap.Errors); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// One lost GPU costs one GPU: it stays on the page as down, also when it is no longer counted.
func TestLostGPU(t *testing.T) {
	lost := GPU{UUID: "b", Index: 1, Name: "NVIDIA Test", PCIBusID: "00000000:b:00.0"}
	for _, c := range []struct {
		name   string
		lose   func(*fakeDriver)
		reason string
	}{
		{"its handle is lost", func(f *fakeDriver) { f.gpus[1].handle = GPUIsLost }, "gpu_is_lost"},
		{"a getter says so", func(f *fakeDriver) { f.gpus[1].memRet = GPUIsLost }, "gpu_is_lost"},
		{"its cgroup was taken away", func(f *fakeDriver) { f.gpus[1].handle = Unknown }, "unknown"},
		{"it needs a reset", func(f *fakeDriver) { f.gpus[1].utilRet = ResetRequired }, "reset_required"},
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
						if !g.Up || g.PowerWatts == nil {
							t.Errorf("%s is down as well", g.UUID)
						}
						continue
					}
					w := lost
					w.Reason = c.reason
					if diff := cmp.Diff(w, g); diff != "" {
						t.Error(diff)
					}
				}
			})
		})
	}
}

func TestSameUUIDTwice(t *testing.T) {
	snap := sampled(t, &fakeDriver{gpus: []*fakeGPU{working("a"), working("a"), working("")}}, time.Second/2)
	if len(snap.GPUs) != 1 {
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
		{"unknown", &fakeDriver{countRet: Unknown}, "unknown"},
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

// The driver is unloaded under a running sampler: down, and up again when it is back.
func TestReinit(t *testing.T) {
	f := &fakeDriver{gpus: []*fakeGPU{working("a")}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f})
		defer s.Close()
		synctest.Wait()
		f.set(func() { f.gpus[0].powerRet = Uninitialized })
		time.Sleep(2 * time.Second)
		if snap := s.Snapshot(); snap.Up || snap.Reason != "uninitialized" {
			t.Errorf("snapshot %+v", snap)
		}
		f.set(func() { f.gpus[0].powerRet = Success })
		time.Sleep(31 * time.Second)
		if snap := s.Snapshot(); !snap.Up || !snap.GPUs[0].Up {
			t.Errorf("snapshot %+v", snap)
		}
	})
}

// A call that hangs takes the values away, not the process: Close returns all the same.
func TestHang(t *testing.T) {
	g := working("a")
	f := &fakeDriver{gpus: []*fakeGPU{g}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f})
		synctest.Wait()
		release := make(chan struct{})
		f.set(func() { g.hang = release })
		time.Sleep(9 * time.Second)
		if snap := s.Snapshot(); !snap.Up {
			t.Errorf("down after 9 s: %s", snap.Reason)
		}
		time.Sleep(5 * time.Second)
		if snap := s.Snapshot(); snap.Up || snap.Reason != ReasonStale || snap.GPUs != nil {
			t.Errorf("snapshot %+v", snap)
		}
		begin := time.Now()
		s.Close()
		if waited := time.Since(begin); waited != closeWait {
			t.Errorf("Close took %v", waited)
		}
		close(release)
	})
}

// A failure is logged once, however often it happens.
func TestLogsOnce(t *testing.T) {
	var log bytes.Buffer
	g := working("a")
	g.memRet, g.powerRet = NoPermission, NotSupported
	f := &fakeDriver{gpus: []*fakeGPU{g}}
	synctest.Test(t, func(t *testing.T) {
		s := Start(Options{Driver: f, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		time.Sleep(time.Minute)
		s.Close()
		if n := s.last.Load().Errors[Failure{"nvmlDeviceGetMemoryInfo", NoPermission}]; n < 60 {
			t.Errorf("%d failures counted, want one a second", n)
		}
	})
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

func TestReturnNames(t *testing.T) {
	seen := map[string]Return{}
	for r := Return(-1); r < 1000; r++ {
		if other, ok := seen[r.String()]; ok {
			t.Errorf("%d and %d are both %s", other, r, r)
		}
		seen[r.String()] = r
	}
}
