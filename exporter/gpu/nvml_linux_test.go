//go:build cgo

package gpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeLibrary is a libnvidia-ml with one GPU, as old as the macros say: a function that is left
// out is a symbol that the library lacks.
const fakeLibrary = `
#include <string.h>
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
#ifndef NO_INIT
int nvmlInit_v2(void) { return INIT; }
#endif
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int r) { return "text of the driver"; }
#ifndef OLD
int nvmlSystemGetDriverVersion(char *v, unsigned n) { strncpy(v, "610.57", n); return 0; }
int nvmlDeviceGetMemoryInfo_v2(void *d, memory_v2 *m) { m->total = 1000; m->reserved = 50; m->free = 550; m->used = 400; return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) { *mw = 123400; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj) { *mj = 5000; return 0; }
#endif
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)1; return 0; }
int nvmlDeviceGetUUID(void *d, char *u, unsigned n) { strncpy(u, "GPU-1", n); return 0; }
int nvmlDeviceGetUtilizationRates(void *d, utilization *u) { u->gpu = 42; u->memory = 7; return 0; }
int nvmlDeviceGetMemoryInfo(void *d, memory *m) { m->total = 1000; m->free = 600; m->used = 400; return 0; }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *t) { *t = 55; return 0; }
`

// childEnv has the child's library: a process is bound to the first library that it loads, and a
// missing guard would end it, so each case runs in a process of its own.
const childEnv = "FIRSTBREACH_TEST_NVML"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		readAll(newNVML(path))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// readAll prints what every call of the driver answers.
func readAll(d Driver) {
	ret := d.Init()
	fmt.Println("init", ret)
	if ret != Success {
		return
	}
	version, ret := d.Version()
	fmt.Println("version", version, ret)
	n, ret := d.Count()
	fmt.Println("count", n, ret)
	v, ret := d.Device(0)
	fmt.Println("device", ret)
	uuid, ret := v.UUID()
	fmt.Println("uuid", uuid, ret)
	_, ret = v.Name()
	fmt.Println("name", ret)
	_, ret = v.PCIBusID()
	fmt.Println("pci", ret)
	gpu, mem, ret := v.Utilization()
	fmt.Println("utilization", gpu, mem, ret)
	m, ret := v.Memory()
	fmt.Println("memory", m.Total, m.Used, m.Free, m.Reserved != nil, ret)
	mw, ret := v.Power()
	fmt.Println("power", mw, ret)
	mj, ret := v.Energy()
	fmt.Println("energy", mj, ret)
	c, ret := v.Temperature()
	fmt.Println("temperature", c, ret)
	fmt.Println("others", others(v))
	_, ret = d.Events()
	fmt.Println("events", ret)
	fmt.Println("shutdown", d.Shutdown())
}

// others calls what the library lacks in every case, and returns what didn't say so.
func others(v Device) map[string]Return {
	one := func(_ uint32, ret Return) Return { return ret }
	yes := func(_ bool, ret Return) Return { return ret }
	answers := map[string]Return{
		"encoder": one(v.EncoderUtilization()), "decoder": one(v.DecoderUtilization()),
		"jpeg": one(v.JPEGUtilization()), "ofa": one(v.OFAUtilization()),
		"clock": one(v.Clock(ClockSM)), "state": one(v.PerformanceState()),
		"limit": one(v.EnforcedPowerLimit()), "default limit": one(v.DefaultPowerLimit()),
		"fan": one(v.Fan(0)), "second fan": one(v.Fan(1)), "throughput": one(v.PCIeThroughput(true)),
		"ecc": yes(v.ECCMode()), "pending": yes(v.RetirementPending()), "mig mode": yes(v.MIGMode()),
	}
	_, answers["serial"] = v.Serial()
	_, answers["vbios"] = v.VBIOS()
	_, answers["minor"] = v.Minor()
	_, answers["samples"] = v.Samples(SampleUtilization, 0)
	_, answers["events"] = v.ClockEvents()
	_, answers["violation"] = v.Violation(0)
	_, answers["fields"] = v.Fields([]uint32{82})
	_, answers["bar1"] = v.BAR1()
	_, answers["protected"] = v.ProtectedMemory()
	_, answers["fans"] = v.Fans()
	_, answers["ecc errors"] = v.ECCErrors(true, true)
	_, answers["pages"] = v.RetiredPages(true)
	_, answers["rows"] = v.RemappedRows()
	_, answers["replays"] = v.PCIeReplays()
	_, answers["migs"] = v.MIGCount()
	_, answers["mig"] = v.MIG(0)
	_, answers["processes"] = v.Processes()
	for name, ret := range answers {
		if ret == FunctionNotFound {
			delete(answers, name)
		}
	}
	return answers
}

func TestMissingSymbols(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to build a library with")
	}
	for _, c := range []struct {
		name   string
		macros []string
		want   string
	}{
		{"complete", []string{"-DINIT=0"}, `init success
version 610.57 success
count 1 success
device success
uuid GPU-1 success
name function_not_found
pci function_not_found
utilization 42 7 success
memory 1000 400 550 true success
power 123400 success
energy 5000 success
temperature 55 success
others map[]
events function_not_found
shutdown success
`},
		{"old", []string{"-DINIT=0", "-DOLD"}, `init success
version  function_not_found
count 1 success
device success
uuid GPU-1 success
name function_not_found
pci function_not_found
utilization 42 7 success
memory 1000 400 600 false success
power 0 function_not_found
energy 0 function_not_found
temperature 55 success
others map[]
events function_not_found
shutdown success
`},
		{"no init", []string{"-DNO_INIT"}, "init function_not_found\n"},
		{"driver replaced", []string{"-DINIT=18"}, "init library_version_mismatch\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			source, library := filepath.Join(dir, "nvml.c"), filepath.Join(dir, "libnvidia-ml.so.1")
			if err := os.WriteFile(source, []byte(fakeLibrary), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"-shared", "-fPIC", "-o", library, source}, c.macros...)
			if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
				t.Skipf("gcc can't build a library here: %v: %s", err, out)
			}
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), childEnv+"="+library)
			out, err := child.CombinedOutput()
			if err != nil {
				t.Fatalf("the process ended (%v); a call was not guarded:\n%s", err, out)
			}
			// The test binary may add a line about coverage.
			if got := string(out); !strings.HasPrefix(got, c.want) {
				t.Errorf("got:\n%swant:\n%s", got, c.want)
			}
		})
	}
}

func TestNoLibrary(t *testing.T) {
	d := newNVML(filepath.Join(t.TempDir(), "libnvidia-ml.so.1"))
	for range 3 {
		if ret := d.Init(); ret != LibraryNotFound {
			t.Errorf("Init = %v", ret)
		}
	}
}
