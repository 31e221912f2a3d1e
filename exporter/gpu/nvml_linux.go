//go:build cgo

package gpu

import (
	"math"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const libraryName = "libnvidia-ml.so.1"

// driver is the real NVML. go-nvml links lazily: to call a function that the installed library
// lacks ends the process in the dynamic linker, and no recover can catch it. So each call asks
// for its symbol first.
type driver struct {
	path    string
	lib     nvml.Interface
	symbols map[string]bool
}

func newNVML(path string) Driver {
	if path == "" {
		path = libraryName
	}
	return &driver{path: path, lib: nvml.New(nvml.WithLibraryPath(path))}
}

// Init loads the library and initializes it. go-nvml does both in one call, so whether there is
// an init function at all is looked up before, in a handle of its own.
func (d *driver) Init() Return {
	library := dl.New(d.path, dl.RTLD_LAZY)
	if err := library.Open(); err != nil {
		return LibraryNotFound
	}
	old, v2 := library.Lookup("nvmlInit"), library.Lookup("nvmlInit_v2")
	shutdown := library.Lookup("nvmlShutdown")
	if err := library.Close(); err != nil {
		return Unknown
	}
	if old != nil && v2 != nil || shutdown != nil {
		return FunctionNotFound
	}
	d.symbols = map[string]bool{}
	return Return(d.lib.Init())
}

func (d *driver) Shutdown() Return { return Return(d.lib.Shutdown()) }

// has reports whether the library has one of the symbols: go-nvml calls the newest that it has.
func (d *driver) has(symbols ...string) bool {
	for _, s := range symbols {
		found, asked := d.symbols[s]
		if !asked {
			found = d.lib.Extensions().LookupSymbol(s) == nil
			d.symbols[s] = found
		}
		if found {
			return true
		}
	}
	return false
}

func (d *driver) Version() (string, Return) {
	if !d.has("nvmlSystemGetDriverVersion") {
		return "", FunctionNotFound
	}
	v, ret := d.lib.SystemGetDriverVersion()
	return v, Return(ret)
}

func (d *driver) Count() (int, Return) {
	if !d.has("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount") {
		return 0, FunctionNotFound
	}
	n, ret := d.lib.DeviceGetCount()
	return n, Return(ret)
}

func (d *driver) Device(index int) (Device, Return) {
	if !d.has("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex") {
		return nil, FunctionNotFound
	}
	handle, ret := d.lib.DeviceGetHandleByIndex(index)
	return device{driver: d, handle: handle}, Return(ret)
}

type device struct {
	driver *driver
	handle nvml.Device
}

func (v device) UUID() (string, Return) {
	if !v.driver.has("nvmlDeviceGetUUID") {
		return "", FunctionNotFound
	}
	uuid, ret := v.handle.GetUUID()
	return uuid, Return(ret)
}

func (v device) Name() (string, Return) {
	if !v.driver.has("nvmlDeviceGetName") {
		return "", FunctionNotFound
	}
	name, ret := v.handle.GetName()
	return name, Return(ret)
}

func (v device) PCIBusID() (string, Return) {
	if !v.driver.has("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo") {
		return "", FunctionNotFound
	}
	pci, ret := v.handle.GetPciInfo()
	if ret != nvml.SUCCESS {
		return "", Return(ret)
	}
	var id strings.Builder
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		id.WriteByte(byte(c))
	}
	return strings.ToLower(id.String()), Success
}

func (v device) Utilization() (gpu, memory uint32, ret Return) {
	if !v.driver.has("nvmlDeviceGetUtilizationRates") {
		return 0, 0, FunctionNotFound
	}
	u, r := v.handle.GetUtilizationRates()
	return u.Gpu, u.Memory, Return(r)
}

// Memory prefers the call that tells reserved memory apart (driver 510 and later).
func (v device) Memory() (MemoryInfo, Return) {
	if v.driver.has("nvmlDeviceGetMemoryInfo_v2") {
		if m, ret := v.handle.GetMemoryInfo_v2(); ret == nvml.SUCCESS {
			return MemoryInfo{Total: m.Total, Free: m.Free, Used: m.Used, Reserved: &m.Reserved}, Success
		}
	}
	if !v.driver.has("nvmlDeviceGetMemoryInfo") {
		return MemoryInfo{}, FunctionNotFound
	}
	m, ret := v.handle.GetMemoryInfo()
	return MemoryInfo{Total: m.Total, Free: m.Free, Used: m.Used}, Return(ret)
}

func (v device) Power() (uint32, Return) {
	if !v.driver.has("nvmlDeviceGetPowerUsage") {
		return 0, FunctionNotFound
	}
	mw, ret := v.handle.GetPowerUsage()
	return mw, Return(ret)
}

func (v device) Energy() (uint64, Return) {
	if !v.driver.has("nvmlDeviceGetTotalEnergyConsumption") {
		return 0, FunctionNotFound
	}
	mj, ret := v.handle.GetTotalEnergyConsumption()
	return mj, Return(ret)
}

// Temperature prefers the call that is not deprecated.
func (v device) Temperature() (int32, Return) {
	if v.driver.has("nvmlDeviceGetTemperatureV") {
		if t, ret := v.handle.GetTemperatureV().V1(); ret == nvml.SUCCESS {
			return t.Temperature, Success
		}
	}
	if !v.driver.has("nvmlDeviceGetTemperature") {
		return 0, FunctionNotFound
	}
	t, ret := v.handle.GetTemperature(nvml.TEMPERATURE_GPU)
	return int32(min(t, math.MaxInt32)), Return(ret)
}
