package gpu

import (
	"sync"
	"sync/atomic"
)

// fakeDriver is a driver whose answers a test sets. The zero value has no GPU.
type fakeDriver struct {
	mu        sync.Mutex
	inits     []Return // one for each Init, the last one for ever
	countRet  Return
	gpus      []*fakeGPU
	xids      []XID
	countHang chan struct{} // Count blocks until it is closed
	initCalls int
	shutdowns int
	calls     atomic.Int64
	calling   atomic.Int32
	parallel  atomic.Bool // two calls at once were seen
}

// enter notes a call; a test changes the driver with set only.
func (f *fakeDriver) enter() func() {
	f.calls.Add(1)
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

func (f *fakeDriver) Count() (int, Return) {
	leave := f.enter()
	hang := f.countHang
	leave()
	if hang != nil {
		<-hang
	}
	return len(f.gpus), f.countRet
}

// Device returns the GPU as it is now.
func (f *fakeDriver) Device(i int) (Device, Return) {
	defer f.enter()()
	f.gpus[i].seen++
	now := *f.gpus[i]
	now.driver = f
	return &now, now.handle
}

func (f *fakeDriver) Events() (Events, Return) { defer f.enter()(); return fakeEvents{f}, Success }

type fakeEvents struct{ f *fakeDriver }

func (e fakeEvents) Register(Device, string) Return { defer e.f.enter()(); return Success }
func (e fakeEvents) Close()                         { defer e.f.enter()() }
func (e fakeEvents) Next() (XID, Return) {
	defer e.f.enter()()
	if len(e.f.xids) == 0 {
		return XID{}, Timeout
	}
	x := e.f.xids[0]
	e.f.xids = e.f.xids[1:]
	return x, Success
}

// fakeGPU is one GPU. A function answers what ret says, by its name in NVML, else its value.
type fakeGPU struct {
	driver      *fakeDriver
	uuid        string
	handle      Return // of the handle
	ret         map[string]Return
	util, bus   uint32
	mem         MemoryInfo
	celsius     int32
	samples     func(since uint64) []Sample // nil: an empty buffer
	fields      map[uint32]Field
	processList []Process
	migs        []MIG // nil: MIG is off
	migRets     map[int]Return
	hang        chan struct{} // Utilization blocks until it is closed
	during      func()        // called in Utilization
	seen        int           // times that its handle was asked for
}

// get answers for a function. It doesn't lock: a reading has a copy of the GPU.
func get[T any](g *fakeGPU, function string, v T) (T, Return) {
	f := g.driver
	f.calls.Add(1)
	if f.calling.Add(1) > 1 {
		f.parallel.Store(true)
	}
	defer f.calling.Add(-1)
	if ret := g.ret[function]; ret != Success {
		var none T
		return none, ret
	}
	return v, Success
}

func (g *fakeGPU) UUID() (string, Return)     { return get(g, "nvmlDeviceGetUUID", g.uuid) }
func (g *fakeGPU) Name() (string, Return)     { return get(g, "nvmlDeviceGetName", "NVIDIA Test") }
func (g *fakeGPU) PCIBusID() (string, Return) { return get(g, "nvmlDeviceGetPciInfo", "0:"+g.uuid) }
func (g *fakeGPU) Serial() (string, Return)   { return get(g, "nvmlDeviceGetSerial", "123") }
func (g *fakeGPU) VBIOS() (string, Return)    { return get(g, "nvmlDeviceGetVbiosVersion", "96.00") }
func (g *fakeGPU) Minor() (int, Return)       { return get(g, "nvmlDeviceGetMinorNumber", 3) }

func (g *fakeGPU) Utilization() (uint32, uint32, Return) {
	if g.during != nil {
		g.during()
	}
	if g.hang != nil {
		<-g.hang
	}
	_, ret := get(g, "nvmlDeviceGetUtilizationRates", 0)
	return g.util, g.bus, ret
}

func (g *fakeGPU) Samples(kind SampleKind, since uint64) ([]Sample, Return) {
	if g.samples == nil {
		_, _ = get(g, "nvmlDeviceGetSamples", 0)
		return nil, NotFound
	}
	return get(g, "nvmlDeviceGetSamples", g.samples(since))
}

func (g *fakeGPU) EncoderUtilization() (uint32, Return) {
	return get(g, "nvmlDeviceGetEncoderUtilization", uint32(11))
}
func (g *fakeGPU) DecoderUtilization() (uint32, Return) {
	return get(g, "nvmlDeviceGetDecoderUtilization", uint32(12))
}
func (g *fakeGPU) JPEGUtilization() (uint32, Return) {
	return get(g, "nvmlDeviceGetJpgUtilization", uint32(13))
}
func (g *fakeGPU) OFAUtilization() (uint32, Return) {
	return get(g, "nvmlDeviceGetOfaUtilization", uint32(14))
}
func (g *fakeGPU) Clock(c Clock) (uint32, Return) {
	return get(g, "nvmlDeviceGetClockInfo", 1000+uint32(c))
}
func (g *fakeGPU) ClockEvents() (uint64, Return) {
	return get(g, "nvmlDeviceGetCurrentClocksEventReasons", uint64(1<<2|1<<6))
}
func (g *fakeGPU) Violation(policy uint32) (uint64, Return) {
	return get(g, "nvmlDeviceGetViolationStatus", uint64(policy)*1e9)
}
func (g *fakeGPU) PerformanceState() (uint32, Return) {
	return get(g, "nvmlDeviceGetPerformanceState", uint32(2))
}
func (g *fakeGPU) Fields(ids []uint32) ([]Field, Return) {
	fields := make([]Field, len(ids))
	for i, id := range ids {
		f, ok := g.fields[id]
		if !ok {
			f.Return = NotSupported
		}
		fields[i] = f
	}
	return get(g, "nvmlDeviceGetFieldValues", fields)
}
func (g *fakeGPU) Memory() (MemoryInfo, Return) { return get(g, "nvmlDeviceGetMemoryInfo", g.mem) }
func (g *fakeGPU) BAR1() (MemoryInfo, Return) {
	return get(g, "nvmlDeviceGetBAR1MemoryInfo", MemoryInfo{Total: 256 << 20, Used: 5 << 20})
}
func (g *fakeGPU) ProtectedMemory() (MemoryInfo, Return) {
	return get(g, "nvmlDeviceGetConfComputeProtectedMemoryUsage", MemoryInfo{Total: 1 << 30, Used: 1 << 20})
}
func (g *fakeGPU) Power() (uint32, Return) { return get(g, "nvmlDeviceGetPowerUsage", uint32(250500)) }
func (g *fakeGPU) EnforcedPowerLimit() (uint32, Return) {
	return get(g, "nvmlDeviceGetEnforcedPowerLimit", uint32(600000))
}
func (g *fakeGPU) DefaultPowerLimit() (uint32, Return) {
	return get(g, "nvmlDeviceGetPowerManagementDefaultLimit", uint32(700000))
}
func (g *fakeGPU) Energy() (uint64, Return) {
	return get(g, "nvmlDeviceGetTotalEnergyConsumption", uint64(3_000_500))
}
func (g *fakeGPU) Temperature() (int32, Return) {
	return get(g, "nvmlDeviceGetTemperatureV", g.celsius)
}
func (g *fakeGPU) Fans() (int, Return)      { return get(g, "nvmlDeviceGetNumFans", 1) }
func (g *fakeGPU) Fan(int) (uint32, Return) { return get(g, "nvmlDeviceGetFanSpeed_v2", uint32(40)) }
func (g *fakeGPU) ECCMode() (bool, Return)  { return get(g, "nvmlDeviceGetEccMode", true) }
func (g *fakeGPU) PCIeReplays() (uint64, Return) {
	return get(g, "nvmlDeviceGetPcieReplayCounter", uint64(7))
}
func (g *fakeGPU) ECCErrors(uncorrected, volatile bool) (uint64, Return) {
	n := uint64(1)
	if uncorrected {
		n += 2
	}
	if volatile {
		n += 4
	}
	return get(g, "nvmlDeviceGetTotalEccErrors", n)
}
func (g *fakeGPU) RetiredPages(double bool) (int, Return) {
	return get(g, "nvmlDeviceGetRetiredPages", map[bool]int{false: 8, true: 9}[double])
}
func (g *fakeGPU) RetirementPending() (bool, Return) {
	return get(g, "nvmlDeviceGetRetiredPagesPendingStatus", false)
}
func (g *fakeGPU) RemappedRows() (RemappedRows, Return) {
	return get(g, "nvmlDeviceGetRemappedRows", RemappedRows{Correctable: 1, Uncorrectable: 2, Pending: true})
}
func (g *fakeGPU) PCIeThroughput(transmit bool) (uint32, Return) {
	return get(g, "nvmlDeviceGetPcieThroughput", map[bool]uint32{false: 500, true: 600}[transmit])
}
func (g *fakeGPU) MIGMode() (bool, Return) { return get(g, "nvmlDeviceGetMigMode", g.migs != nil) }
func (g *fakeGPU) MIGCount() (int, Return) {
	return get(g, "nvmlDeviceGetMaxMigDeviceCount", len(g.migs))
}
func (g *fakeGPU) MIG(i int) (MIG, Return) {
	if ret := g.migRets[i]; ret != Success {
		return MIG{}, ret
	}
	return get(g, "nvmlDeviceGetMigDeviceHandleByIndex", g.migs[i])
}
func (g *fakeGPU) Processes() ([]Process, Return) {
	return get(g, "nvmlDeviceGetComputeRunningProcesses", g.processList)
}

// working is a GPU that has everything.
func working(uuid string) *fakeGPU {
	reserved := uint64(1 << 20)
	return &fakeGPU{
		uuid: uuid, util: 37, bus: 12, celsius: 61, ret: map[string]Return{},
		mem: MemoryInfo{Total: 80 << 30, Free: 20<<30 - 1<<20, Used: 60 << 30, Reserved: &reserved},
		fields: map[uint32]Field{
			fieldMemoryTemperature:  {Value: 70, Bits: 32},
			fieldPCIeReceived:       {Value: 1000, Bits: 64},
			fieldPCIeTransmitted:    {Value: 2000, Bits: 64},
			fieldRecoveryAction:     {Value: 0, Bits: 32},
			fieldViolationPower:     {Value: 1.5e9, Bits: 64},
			fieldThermalSoftware:    {Value: 2.5e9, Bits: 64},
			fieldThermalHardware:    {Value: 0, Bits: 64},
			fieldPowerBrake:         {Value: 0, Bits: 64},
			fieldViolationThermal:   {Value: 2.5e9, Bits: 64},
			fieldViolationSyncBoost: {Value: 0, Bits: 64},
		},
	}
}
