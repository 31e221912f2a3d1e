//go:build cgo

package gpu

import (
	"encoding/binary"
	"math"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const libraryName = "libnvidia-ml.so.1"

// driver is the real NVML. go-nvml links lazily: to call a function that the installed library
// lacks ends the process in the dynamic linker, and no recover can catch it. So each call asks
// for its symbol first.
type driver struct {
	path string
	lib  nvml.Interface

	mu      sync.Mutex // a call that was left behind may return at any time
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
	d.mu.Lock()
	d.symbols = map[string]bool{}
	d.mu.Unlock()
	return Return(d.lib.Init())
}

func (d *driver) Shutdown() Return { return Return(d.lib.Shutdown()) }

// has reports whether the library has one of the symbols: go-nvml calls the newest that it has.
func (d *driver) has(symbols ...string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
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

// call calls get if the library has one of the symbols that it may lead to.
func call[T any](d *driver, get func() (T, nvml.Return), symbols ...string) (T, Return) {
	if !d.has(symbols...) {
		var none T
		return none, FunctionNotFound
	}
	v, ret := get()
	return v, Return(ret)
}

// versions are the names of a function of which there are newer versions.
func versions(name string, newest ...string) []string {
	all := []string{name}
	for _, v := range newest {
		all = append(all, name+v)
	}
	return all
}

func (d *driver) Version() (string, Return) {
	return call(d, d.lib.SystemGetDriverVersion, "nvmlSystemGetDriverVersion")
}

func (d *driver) Count() (int, Return) {
	return call(d, d.lib.DeviceGetCount, versions("nvmlDeviceGetCount", "_v2")...)
}

func (d *driver) Device(index int) (Device, Return) {
	handle, ret := call(d, func() (nvml.Device, nvml.Return) { return d.lib.DeviceGetHandleByIndex(index) },
		versions("nvmlDeviceGetHandleByIndex", "_v2")...)
	return device{driver: d, handle: handle}, ret
}

// Events opens a set of events.
func (d *driver) Events() (Events, Return) {
	if !d.has("nvmlEventSetFree") || !d.has("nvmlDeviceRegisterEvents") || !d.has(versions("nvmlEventSetWait", "_v2")...) {
		return nil, FunctionNotFound
	}
	set, ret := call(d, d.lib.EventSetCreate, "nvmlEventSetCreate")
	if ret != Success {
		return nil, ret
	}
	return &events{set: set, uuids: map[nvml.Device]string{}}, Success
}

type events struct {
	set   nvml.EventSet
	mu    sync.Mutex
	uuids map[nvml.Device]string
}

func (e *events) Register(d Device, uuid string) Return {
	handle := d.(device).handle
	e.mu.Lock()
	e.uuids[handle] = uuid
	e.mu.Unlock()
	return Return(handle.RegisterEvents(nvml.EventTypeXidCriticalError, e.set))
}

// Next takes one event that waits already.
func (e *events) Next() (XID, Return) {
	const noWait = 0 // ms
	data, ret := e.set.Wait(noWait)
	if ret != nvml.SUCCESS {
		return XID{}, Return(ret)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return XID{UUID: e.uuids[data.Device], Code: data.EventData}, Success
}

func (e *events) Close() { e.set.Free() }

// device is one GPU of the real NVML.
type device struct {
	driver *driver
	handle nvml.Device
}

func (v device) UUID() (string, Return) {
	return call(v.driver, v.handle.GetUUID, "nvmlDeviceGetUUID")
}

func (v device) Name() (string, Return) {
	return call(v.driver, v.handle.GetName, "nvmlDeviceGetName")
}

func (v device) Serial() (string, Return) {
	return call(v.driver, v.handle.GetSerial, "nvmlDeviceGetSerial")
}

func (v device) VBIOS() (string, Return) {
	return call(v.driver, v.handle.GetVbiosVersion, "nvmlDeviceGetVbiosVersion")
}

func (v device) Minor() (int, Return) {
	return call(v.driver, v.handle.GetMinorNumber, "nvmlDeviceGetMinorNumber")
}

func (v device) PCIBusID() (string, Return) {
	pci, ret := call(v.driver, v.handle.GetPciInfo, versions("nvmlDeviceGetPciInfo", "_v2", "_v3")...)
	if ret != Success {
		return "", ret
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
	u, ret := call(v.driver, v.handle.GetUtilizationRates, "nvmlDeviceGetUtilizationRates")
	return u.Gpu, u.Memory, ret
}

func (v device) Samples(kind SampleKind, since uint64) ([]Sample, Return) {
	if !v.driver.has("nvmlDeviceGetSamples") {
		return nil, FunctionNotFound
	}
	valueType, raw, ret := v.handle.GetSamples(nvml.SamplingType(kind), since)
	if ret != nvml.SUCCESS {
		return nil, Return(ret)
	}
	samples := make([]Sample, len(raw))
	for i, s := range raw {
		samples[i] = Sample{Time: s.TimeStamp, Value: sampleValue(valueType, s.SampleValue)}
	}
	return samples, Success
}

// sampleValue reads the union that NVML returns.
func sampleValue(t nvml.ValueType, raw [8]byte) float64 {
	bits := binary.NativeEndian.Uint64(raw[:])
	low := binary.NativeEndian.Uint32(raw[:4])
	switch t {
	case nvml.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(bits)
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(low)
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(low))
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return float64(binary.NativeEndian.Uint16(raw[:2]))
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(bits))
	}
	return float64(bits)
}

// ratio calls a getter whose second value is how long it sampled for, in µs.
func (v device) ratio(get func() (uint32, uint32, nvml.Return), symbol string) (uint32, Return) {
	return call(v.driver, func() (uint32, nvml.Return) { percent, _, ret := get(); return percent, ret }, symbol)
}

func (v device) EncoderUtilization() (uint32, Return) {
	return v.ratio(v.handle.GetEncoderUtilization, "nvmlDeviceGetEncoderUtilization")
}

func (v device) DecoderUtilization() (uint32, Return) {
	return v.ratio(v.handle.GetDecoderUtilization, "nvmlDeviceGetDecoderUtilization")
}

func (v device) JPEGUtilization() (uint32, Return) {
	return v.ratio(v.handle.GetJpgUtilization, "nvmlDeviceGetJpgUtilization")
}

func (v device) OFAUtilization() (uint32, Return) {
	return v.ratio(v.handle.GetOfaUtilization, "nvmlDeviceGetOfaUtilization")
}

func (v device) Clock(c Clock) (uint32, Return) {
	return call(v.driver, func() (uint32, nvml.Return) { return v.handle.GetClockInfo(nvml.ClockType(c)) }, "nvmlDeviceGetClockInfo")
}

// ClockEvents prefers the newer name of the same call.
func (v device) ClockEvents() (uint64, Return) {
	if v.driver.has("nvmlDeviceGetCurrentClocksEventReasons") {
		mask, ret := v.handle.GetCurrentClocksEventReasons()
		return mask, Return(ret)
	}
	return call(v.driver, v.handle.GetCurrentClocksThrottleReasons, "nvmlDeviceGetCurrentClocksThrottleReasons")
}

func (v device) Violation(policy uint32) (uint64, Return) {
	t, ret := call(v.driver, func() (nvml.ViolationTime, nvml.Return) {
		return v.handle.GetViolationStatus(nvml.PerfPolicyType(policy))
	}, "nvmlDeviceGetViolationStatus")
	return t.ViolationTime, ret
}

func (v device) PerformanceState() (uint32, Return) {
	p, ret := call(v.driver, v.handle.GetPerformanceState, "nvmlDeviceGetPerformanceState")
	return uint32(p), ret
}

func (v device) Fields(ids []uint32) ([]Field, Return) {
	if !v.driver.has("nvmlDeviceGetFieldValues") {
		return nil, FunctionNotFound
	}
	raw := make([]nvml.FieldValue, len(ids))
	for i, id := range ids {
		raw[i].FieldId = id
	}
	if ret := v.handle.GetFieldValues(raw); ret != nvml.SUCCESS {
		return nil, Return(ret)
	}
	fields := make([]Field, len(raw))
	for i, f := range raw {
		value := sampleValue(nvml.ValueType(f.ValueType), f.Value)
		fields[i] = Field{Return: Return(f.NvmlReturn), Value: uint64(max(0, value)), Bits: 64}
		switch nvml.ValueType(f.ValueType) {
		case nvml.VALUE_TYPE_UNSIGNED_INT:
			fields[i].Bits = 32
		case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
			fields[i].Value = binary.NativeEndian.Uint64(f.Value[:]) // exact, unlike a float
		}
	}
	return fields, Success
}

// Memory prefers the call that tells reserved memory apart (driver 510 and later).
func (v device) Memory() (MemoryInfo, Return) {
	if v.driver.has("nvmlDeviceGetMemoryInfo_v2") {
		if m, ret := v.handle.GetMemoryInfo_v2(); ret == nvml.SUCCESS {
			return MemoryInfo{Total: m.Total, Free: m.Free, Used: m.Used, Reserved: &m.Reserved}, Success
		}
	}
	m, ret := call(v.driver, v.handle.GetMemoryInfo, "nvmlDeviceGetMemoryInfo")
	return MemoryInfo{Total: m.Total, Free: m.Free, Used: m.Used}, ret
}

func (v device) BAR1() (MemoryInfo, Return) {
	m, ret := call(v.driver, v.handle.GetBAR1MemoryInfo, "nvmlDeviceGetBAR1MemoryInfo")
	return MemoryInfo{Total: m.Bar1Total, Free: m.Bar1Free, Used: m.Bar1Used}, ret
}

func (v device) ProtectedMemory() (MemoryInfo, Return) {
	m, ret := call(v.driver, v.handle.GetConfComputeProtectedMemoryUsage, "nvmlDeviceGetConfComputeProtectedMemoryUsage")
	return MemoryInfo{Total: m.Total, Free: m.Free, Used: m.Used}, ret
}

func (v device) Power() (uint32, Return) {
	return call(v.driver, v.handle.GetPowerUsage, "nvmlDeviceGetPowerUsage")
}

func (v device) EnforcedPowerLimit() (uint32, Return) {
	return call(v.driver, v.handle.GetEnforcedPowerLimit, "nvmlDeviceGetEnforcedPowerLimit")
}

func (v device) DefaultPowerLimit() (uint32, Return) {
	return call(v.driver, v.handle.GetPowerManagementDefaultLimit, "nvmlDeviceGetPowerManagementDefaultLimit")
}

func (v device) Energy() (uint64, Return) {
	return call(v.driver, v.handle.GetTotalEnergyConsumption, "nvmlDeviceGetTotalEnergyConsumption")
}

// Temperature prefers the call that is not deprecated.
func (v device) Temperature() (int32, Return) {
	if v.driver.has("nvmlDeviceGetTemperatureV") {
		if t, ret := v.handle.GetTemperatureV().V1(); ret == nvml.SUCCESS {
			return t.Temperature, Success
		}
	}
	t, ret := call(v.driver, func() (uint32, nvml.Return) { return v.handle.GetTemperature(nvml.TEMPERATURE_GPU) },
		"nvmlDeviceGetTemperature")
	return int32(min(t, math.MaxInt32)), ret
}

// Fans answers one fan for a library that knows of no more.
func (v device) Fans() (int, Return) {
	if !v.driver.has("nvmlDeviceGetNumFans") && v.driver.has("nvmlDeviceGetFanSpeed") {
		return 1, Success
	}
	return call(v.driver, v.handle.GetNumFans, "nvmlDeviceGetNumFans")
}

func (v device) Fan(i int) (uint32, Return) {
	if v.driver.has("nvmlDeviceGetFanSpeed_v2") {
		percent, ret := v.handle.GetFanSpeed_v2(i)
		return percent, Return(ret)
	}
	if i > 0 {
		return 0, FunctionNotFound
	}
	return call(v.driver, v.handle.GetFanSpeed, "nvmlDeviceGetFanSpeed")
}

func (v device) ECCMode() (bool, Return) {
	return call(v.driver, func() (bool, nvml.Return) {
		now, _, ret := v.handle.GetEccMode()
		return now == nvml.FEATURE_ENABLED, ret
	}, "nvmlDeviceGetEccMode")
}

func (v device) ECCErrors(uncorrected, volatile bool) (uint64, Return) {
	kind, counter := nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC
	if uncorrected {
		kind = nvml.MEMORY_ERROR_TYPE_UNCORRECTED
	}
	if volatile {
		counter = nvml.VOLATILE_ECC
	}
	return call(v.driver, func() (uint64, nvml.Return) { return v.handle.GetTotalEccErrors(kind, counter) }, "nvmlDeviceGetTotalEccErrors")
}

func (v device) RetiredPages(doubleBit bool) (int, Return) {
	cause := nvml.PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS
	if doubleBit {
		cause = nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR
	}
	pages, ret := call(v.driver, func() ([]uint64, nvml.Return) { return v.handle.GetRetiredPages(cause) }, "nvmlDeviceGetRetiredPages")
	return len(pages), ret
}

func (v device) RetirementPending() (bool, Return) {
	state, ret := call(v.driver, v.handle.GetRetiredPagesPendingStatus, "nvmlDeviceGetRetiredPagesPendingStatus")
	return state == nvml.FEATURE_ENABLED, ret
}

func (v device) RemappedRows() (RemappedRows, Return) {
	return call(v.driver, func() (rows RemappedRows, ret nvml.Return) {
		rows.Correctable, rows.Uncorrectable, rows.Pending, rows.Failed, ret = v.handle.GetRemappedRows()
		return rows, ret
	}, "nvmlDeviceGetRemappedRows")
}

func (v device) PCIeReplays() (uint64, Return) {
	n, ret := call(v.driver, v.handle.GetPcieReplayCounter, "nvmlDeviceGetPcieReplayCounter")
	return uint64(n), ret
}

func (v device) PCIeThroughput(transmit bool) (uint32, Return) {
	counter := nvml.PCIE_UTIL_RX_BYTES
	if transmit {
		counter = nvml.PCIE_UTIL_TX_BYTES
	}
	return call(v.driver, func() (uint32, nvml.Return) { return v.handle.GetPcieThroughput(counter) }, "nvmlDeviceGetPcieThroughput")
}

func (v device) MIGMode() (bool, Return) {
	return call(v.driver, func() (bool, nvml.Return) {
		now, _, ret := v.handle.GetMigMode()
		return now == nvml.DEVICE_MIG_ENABLE, ret
	}, "nvmlDeviceGetMigMode")
}

func (v device) MIGCount() (int, Return) {
	return call(v.driver, v.handle.GetMaxMigDeviceCount, "nvmlDeviceGetMaxMigDeviceCount")
}

// MIG reads one instance. Without its numbers it has no identity.
func (v device) MIG(i int) (MIG, Return) {
	handle, ret := call(v.driver, func() (nvml.Device, nvml.Return) { return v.handle.GetMigDeviceHandleByIndex(i) },
		"nvmlDeviceGetMigDeviceHandleByIndex")
	if ret != Success {
		return MIG{}, ret
	}
	instance := device{driver: v.driver, handle: handle}
	var m MIG
	if m.UUID, ret = instance.UUID(); ret != Success {
		return MIG{}, ret
	}
	if m.GPUInstance, ret = call(v.driver, handle.GetGpuInstanceId, "nvmlDeviceGetGpuInstanceId"); ret != Success {
		return MIG{}, ret
	}
	if m.ComputeInstance, ret = call(v.driver, handle.GetComputeInstanceId, "nvmlDeviceGetComputeInstanceId"); ret != Success {
		return MIG{}, ret
	}
	m.Name, _ = instance.Name()
	if memory, ret := instance.Memory(); ret == Success {
		m.Memory = &memory
	}
	return m, Success
}

func (v device) Processes() ([]Process, Return) {
	computing, ret := call(v.driver, v.handle.GetComputeRunningProcesses, versions("nvmlDeviceGetComputeRunningProcesses", "_v2", "_v3")...)
	if ret != Success {
		return nil, ret
	}
	var all []Process
	for _, p := range computing {
		all = append(all, Process{PID: p.Pid, Used: p.UsedGpuMemory})
	}
	drawing, ret := call(v.driver, v.handle.GetGraphicsRunningProcesses, versions("nvmlDeviceGetGraphicsRunningProcesses", "_v2", "_v3")...)
	if ret == Success {
		for _, p := range drawing {
			all = append(all, Process{PID: p.Pid, Used: p.UsedGpuMemory, Graphics: true})
		}
	}
	return all, Success
}
