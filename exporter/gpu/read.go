package gpu

import (
	"strconv"
	"time"
)

const (
	// slowEvery is how often values are read that seldom change or are dear to read.
	slowEvery = 10 * time.Second
	// costShare bounds a call's share of the time: one that took a second is not made again for
	// twenty, or for maxPause.
	costShare = 20
	maxPause  = time.Minute
	// slowCall is the length from which a call is counted as slow.
	slowCall = 100 * time.Millisecond
	// maxMIG and maxProcesses bound what one GPU can put on the page.
	maxMIG       = 64
	maxProcesses = 256
)

// reader reads one or a few values of a GPU with one function of NVML.
type reader struct {
	function string
	slow     bool
	read     func(r *reading) Return
}

// readers is everything that is read of a GPU, in order.
func readers(o Options) []reader {
	all := []reader{
		{"nvmlDeviceGetUtilizationRates", false, (*reading).utilization},
		{"nvmlDeviceGetSamples", false, (*reading).busy},
		{"nvmlDeviceGetEncoderUtilization", false, percent(EncoderUtilization, Device.EncoderUtilization)},
		{"nvmlDeviceGetDecoderUtilization", false, percent(DecoderUtilization, Device.DecoderUtilization)},
		{"nvmlDeviceGetJpgUtilization", false, percent(JPEGUtilization, Device.JPEGUtilization)},
		{"nvmlDeviceGetOfaUtilization", false, percent(OFAUtilization, Device.OFAUtilization)},
		{"nvmlDeviceGetClockInfo", false, (*reading).clocks},
		{"nvmlDeviceGetCurrentClocksEventReasons", false, (*reading).clockEvents},
		{"nvmlDeviceGetFieldValues", false, (*reading).fields},
		{"nvmlDeviceGetViolationStatus", true, (*reading).violations},
		{"nvmlDeviceGetPerformanceState", false, (*reading).performanceState},
		{"nvmlDeviceGetMemoryInfo", false, (*reading).memory},
		{"nvmlDeviceGetBAR1MemoryInfo", false, twoSizes(BAR1Used, BAR1Total, Device.BAR1)},
		{"nvmlDeviceGetConfComputeProtectedMemoryUsage", true, twoSizes(ProtectedUsed, ProtectedTotal, Device.ProtectedMemory)},
		{"nvmlDeviceGetPowerUsage", false, thousandths(PowerWatts, "", Device.Power)},
		{"nvmlDeviceGetEnforcedPowerLimit", true, thousandths(PowerLimitWatts, "enforced", Device.EnforcedPowerLimit)},
		{"nvmlDeviceGetPowerManagementDefaultLimit", true, thousandths(PowerLimitWatts, "default", Device.DefaultPowerLimit)},
		{"nvmlDeviceGetTotalEnergyConsumption", false, (*reading).energy},
		{"nvmlDeviceGetTemperatureV", false, (*reading).temperature},
		{"nvmlDeviceGetFanSpeed_v2", true, (*reading).fans},
		{"nvmlDeviceGetEccMode", true, flag(ECCEnabled, Device.ECCMode)},
		{"nvmlDeviceGetTotalEccErrors", true, (*reading).eccErrors},
		{"nvmlDeviceGetRetiredPages", true, (*reading).retiredPages},
		{"nvmlDeviceGetRetiredPagesPendingStatus", true, flag(RetirementPending, Device.RetirementPending)},
		{"nvmlDeviceGetRemappedRows", true, (*reading).remappedRows},
		{"nvmlDeviceGetPcieReplayCounter", true, (*reading).replays},
		{"nvmlDeviceGetMigMode", true, (*reading).mig},
	}
	if o.PCIeThroughput {
		all = append(all, reader{"nvmlDeviceGetPcieThroughput", true, (*reading).pcieThroughput})
	}
	if o.Processes {
		all = append(all, reader{"nvmlDeviceGetComputeRunningProcesses", true, (*reading).processes})
	}
	kept := all[:0]
	for _, r := range all {
		if !o.skips(r.function) {
			kept = append(kept, r)
		}
	}
	return kept
}

// unit is what is kept of one GPU from one reading to the next. At any time one reading uses it.
type unit struct {
	held                 []held // by reader
	gpuBusy, memoryBusy  busy
	received, sent       unwrap
	violated             map[uint32]bool // policies that the fields answered for
	utilization, traffic *float64        // of this reading
}

// held is what a reader has last read, and when it is due again.
type held struct {
	due       time.Time
	values    []Reading
	mig       []MIG
	processes []Process
}

// reading is one reading of one GPU under way.
type reading struct {
	device   Device
	now      time.Time
	unit     *unit
	out      held // of the reader that is reading
	function string
	failed   []failed
	calls    Calls // of this reading
}

// failed is a failed call and the GPU that it was for, "" for none.
type failed struct {
	Failure
	uuid string
}

// readAll reads the GPU with every reader that is due. It stops at an outcome that means that the
// GPU or the whole driver is gone, and returns it.
func (r *reading) readAll(all []reader) ([]held, Return) {
	if r.unit.held == nil {
		r.unit.held = make([]held, len(all))
	}
	r.unit.utilization, r.unit.traffic = nil, nil
	for i, one := range all {
		kept := &r.unit.held[i]
		if r.now.Before(kept.due) {
			continue
		}
		r.out, r.function = held{}, one.function
		begin := time.Now()
		ret := one.read(r)
		took := time.Since(begin)
		r.calls.note(one.function, took)
		if ret.gone() {
			return nil, ret
		}
		*kept = r.out
		pause := min(costShare*took, maxPause)
		if one.slow {
			pause = max(pause, slowEvery)
		}
		// A little early, so that a cycle that is late by nothing doesn't skip a whole round.
		kept.due = r.now.Add(pause - 50*time.Millisecond)
	}
	return r.unit.held, Success
}

// note counts one call.
func (c *Calls) note(function string, took time.Duration) {
	c.Total++
	c.Seconds += took.Seconds()
	if took >= slowCall {
		if c.Slow == nil {
			c.Slow = map[string]uint64{}
		}
		c.Slow[function]++
	}
}

// gone reports an outcome after which nothing that was read of the GPU is to be trusted.
func (r Return) gone() bool {
	switch r {
	case Uninitialized, DriverNotLoaded, LibVersionMismatch, GPUIsLost, GPUNotFound, ResetRequired:
		return true
	}
	return false
}

func (r *reading) put(q Quantity, v float64, labels ...string) {
	reading := Reading{Quantity: q, Value: v}
	copy(reading.Labels[:], labels)
	r.out.values = append(r.out.values, reading)
}

// check notes a failure; it reports whether the call succeeded.
func (r *reading) check(ret Return) bool {
	if ret == Success {
		return true
	}
	if !ret.unavailable() {
		r.failed = append(r.failed, failed{Failure: Failure{r.function, ret}})
	}
	return false
}

// percent reads a percentage. Some GPUs under MIG, and some drivers now and then, answer with
// numbers far over 100.
func percent(q Quantity, get func(Device) (uint32, Return)) func(*reading) Return {
	return func(r *reading) Return {
		v, ret := get(r.device)
		if r.check(ret) && r.plausible(v <= 100) {
			r.put(q, float64(v)/100)
		}
		return ret
	}
}

func (r *reading) plausible(ok bool) bool {
	if !ok {
		r.check(Invalid)
	}
	return ok
}

func thousandths(q Quantity, label string, get func(Device) (uint32, Return)) func(*reading) Return {
	return func(r *reading) Return {
		v, ret := get(r.device)
		if r.check(ret) && r.plausible(v < 1e7) { // 10 kW
			r.put(q, float64(v)/1000, label)
		}
		return ret
	}
}

func flag(q Quantity, get func(Device) (bool, Return)) func(*reading) Return {
	return func(r *reading) Return {
		v, ret := get(r.device)
		if r.check(ret) {
			r.put(q, number(v))
		}
		return ret
	}
}

func number(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

func twoSizes(used, total Quantity, get func(Device) (MemoryInfo, Return)) func(*reading) Return {
	return func(r *reading) Return {
		m, ret := get(r.device)
		if r.check(ret) && r.plausible(m.Used <= m.Total) {
			r.put(used, float64(m.Used))
			r.put(total, float64(m.Total))
		}
		return ret
	}
}

func (r *reading) utilization() Return {
	gpu, memory, ret := r.device.Utilization()
	if r.check(ret) && r.plausible(gpu <= 100 && memory <= 100) {
		busy, traffic := float64(gpu)/100, float64(memory)/100
		r.unit.utilization, r.unit.traffic = &busy, &traffic
		r.put(Utilization, busy)
		r.put(MemoryUtilization, traffic)
	}
	return ret
}

func (r *reading) busy() Return {
	for _, k := range []struct {
		kind     SampleKind
		quantity Quantity
		busy     *busy
		ratio    *float64
	}{
		{SampleUtilization, BusySeconds, &r.unit.gpuBusy, r.unit.utilization},
		{SampleMemoryUtilization, MemoryBusySeconds, &r.unit.memoryBusy, r.unit.traffic},
	} {
		samples, ret := r.device.Samples(k.kind, k.busy.seen)
		if ret.gone() {
			return ret
		}
		if !r.check(ret) {
			samples = nil // an idle GPU's buffer is empty: not found
		} else if samples == nil {
			samples = []Sample{}
		}
		if samples == nil && k.ratio == nil {
			k.busy.until = time.Time{} // neither is known: the time till it is counts as nothing
			continue
		}
		for range k.busy.add(r.now, samples, k.ratio) {
			r.check(Invalid)
		}
		r.put(k.quantity, k.busy.seconds)
	}
	return Success
}

func (r *reading) clocks() Return {
	for c, name := range []string{"graphics", "sm", "memory", "video"} {
		v, ret := r.device.Clock(Clock(c))
		if ret.gone() {
			return ret
		}
		if r.check(ret) && r.plausible(v < 1e5) { // 100 GHz
			r.put(ClockHertz, float64(v)*1e6, name)
		}
	}
	return Success
}

// clockReasons are the bits of the mask of what holds the clocks down.
var clockReasons = [...]string{"gpu_idle", "application_clocks", "sw_power_cap", "hw_slowdown", "sync_boost",
	"sw_thermal", "hw_thermal", "hw_power_brake", "display_clocks", "board_limit", "reliability"}

func (r *reading) clockEvents() Return {
	mask, ret := r.device.ClockEvents()
	if r.check(ret) {
		for bit, name := range clockReasons {
			r.put(ClockEvent, float64(mask>>bit&1), name)
		}
	}
	return ret
}

// throttle is what has held the clocks down: the field that counts it, in nanoseconds, and the
// policy of the older call.
type throttle struct {
	field  uint32
	policy uint32
	reason string
}

const noPolicy = 1 << 31

// throttles has no thermal policy beside the two thermal fields that replace it: they would count
// the same time twice. Older drivers have only the policy, under its own name.
var throttles = [...]throttle{
	{fieldViolationPower, 0, "sw_power_cap"},
	{fieldThermalSoftware, noPolicy, "sw_thermal"},
	{fieldThermalHardware, noPolicy, "hw_thermal"},
	{fieldPowerBrake, noPolicy, "hw_power_brake"},
	{fieldViolationThermal, 1, "thermal"},
	{fieldViolationSyncBoost, 2, "sync_boost"},
	{fieldViolationBoardLimit, 3, "board_limit"},
	{fieldViolationLowUse, 4, "low_utilization"},
	{fieldViolationReliable, 5, "reliability"},
}

func (r *reading) fields() Return {
	ids := []uint32{fieldMemoryTemperature, fieldPCIeReceived, fieldPCIeTransmitted, fieldRecoveryAction}
	for _, t := range throttles {
		ids = append(ids, t.field)
	}
	answers, ret := r.device.Fields(ids)
	r.unit.violated = map[uint32]bool{}
	if !r.check(ret) || len(answers) != len(ids) {
		return ret
	}
	for _, f := range answers {
		if f.Return.gone() {
			return f.Return
		}
	}
	if f := answers[0]; r.check(f.Return) && r.plausible(f.Value < 200) {
		r.put(MemoryCelsius, float64(f.Value))
	}
	if f := answers[1]; r.check(f.Return) {
		r.put(PCIeReceived, r.unit.received.add(f.Value, f.Bits))
	}
	if f := answers[2]; r.check(f.Return) {
		r.put(PCIeTransmitted, r.unit.sent.add(f.Value, f.Bits))
	}
	if f := answers[3]; r.check(f.Return) && r.plausible(f.Value < 100) {
		r.put(RecoveryAction, float64(f.Value))
	}
	thermal := false
	for i, t := range throttles {
		f := answers[4+i]
		if t.reason == "thermal" && thermal {
			r.unit.violated[t.policy] = true
			continue
		}
		if r.check(f.Return) {
			r.put(ThrottleSeconds, float64(f.Value)/1e9, t.reason)
			r.unit.violated[t.policy] = true
			thermal = thermal || t.reason == "sw_thermal"
		}
	}
	return Success
}

// violations asks for the policies that the fields didn't answer for.
func (r *reading) violations() Return {
	for _, t := range throttles {
		if t.policy == noPolicy || r.unit.violated[t.policy] {
			continue
		}
		ns, ret := r.device.Violation(t.policy)
		if ret.gone() {
			return ret
		}
		if r.check(ret) {
			r.put(ThrottleSeconds, float64(ns)/1e9, t.reason)
		}
	}
	return Success
}

func (r *reading) performanceState() Return {
	p, ret := r.device.PerformanceState()
	if r.check(ret) && p <= 15 { // 32 is "unknown"
		r.put(PerformanceState, float64(p))
	}
	return ret
}

func (r *reading) memory() Return {
	m, ret := r.device.Memory()
	if r.check(ret) && r.plausible(m.Total > 0 && m.Used <= m.Total && m.Free <= m.Total) {
		r.put(MemoryUsed, float64(m.Used))
		r.put(MemoryFree, float64(m.Free))
		r.put(MemoryTotal, float64(m.Total))
		if m.Reserved != nil {
			r.put(MemoryReserved, float64(*m.Reserved))
		}
	}
	return ret
}

func (r *reading) energy() Return {
	mj, ret := r.device.Energy()
	if r.check(ret) {
		r.put(EnergyJoules, float64(mj)/1000)
	}
	return ret
}

func (r *reading) temperature() Return {
	c, ret := r.device.Temperature()
	if r.check(ret) && r.plausible(c > -100 && c < 200) {
		r.put(Celsius, float64(c))
	}
	return ret
}

func (r *reading) fans() Return {
	n, ret := r.device.Fans()
	if !r.check(ret) || !r.plausible(n >= 0 && n <= 16) {
		return ret
	}
	for i := range n {
		v, ret := r.device.Fan(i)
		if ret.gone() {
			return ret
		}
		if r.check(ret) && r.plausible(v <= 200) { // of the nominal speed, which can be passed
			r.put(FanSpeed, float64(v)/100, strconv.Itoa(i))
		}
	}
	return Success
}

func (r *reading) eccErrors() Return {
	for _, uncorrected := range []bool{false, true} {
		for _, volatile := range []bool{false, true} {
			n, ret := r.device.ECCErrors(uncorrected, volatile)
			if ret.gone() {
				return ret
			}
			if r.check(ret) && r.plausible(n < 1<<53) {
				r.put(ECCErrors, float64(n), choose(uncorrected, "uncorrected", "corrected"), choose(volatile, "volatile", "aggregate"))
			}
		}
	}
	return Success
}

func choose(which bool, yes, no string) string {
	if which {
		return yes
	}
	return no
}

func (r *reading) retiredPages() Return {
	for _, double := range []bool{false, true} {
		n, ret := r.device.RetiredPages(double)
		if ret.gone() {
			return ret
		}
		if r.check(ret) {
			r.put(RetiredPages, float64(n), choose(double, "double_bit", "single_bit"))
		}
	}
	return Success
}

func (r *reading) remappedRows() Return {
	rows, ret := r.device.RemappedRows()
	if r.check(ret) {
		r.put(RowsRemapped, float64(rows.Correctable), "correctable")
		r.put(RowsRemapped, float64(rows.Uncorrectable), "uncorrectable")
		r.put(RemappingPending, number(rows.Pending))
		r.put(RemappingFailed, number(rows.Failed))
	}
	return ret
}

func (r *reading) replays() Return {
	n, ret := r.device.PCIeReplays()
	if r.check(ret) && r.plausible(n < 1<<53) {
		r.put(PCIeReplays, float64(n))
	}
	return ret
}

func (r *reading) pcieThroughput() Return {
	for _, transmit := range []bool{false, true} {
		kb, ret := r.device.PCIeThroughput(transmit)
		if ret.gone() {
			return ret
		}
		if r.check(ret) {
			q := PCIeReceiveRate
			if transmit {
				q = PCIeTransmitRate
			}
			r.put(q, float64(kb)*1000)
		}
	}
	return Success
}

// mig reads whether the GPU is cut up, and into what. Instances come and go while it reads: a
// place without one answers that it isn't found.
func (r *reading) mig() Return {
	on, ret := r.device.MIGMode()
	if !r.check(ret) {
		return ret
	}
	r.put(MIGEnabled, number(on))
	if !on {
		return Success
	}
	n, ret := r.device.MIGCount()
	if !r.check(ret) {
		return ret
	}
	seen := map[string]bool{}
	for i := range min(n, maxMIG) {
		m, ret := r.device.MIG(i)
		if ret == InvalidArgument || ret == GPUNotFound {
			continue // its instance is just being taken away
		}
		if ret.gone() {
			return ret
		}
		if !r.check(ret) || m.UUID == "" || seen[m.UUID] {
			continue
		}
		seen[m.UUID] = true
		if m.Memory != nil && !r.plausible(m.Memory.Used <= m.Memory.Total) {
			m.Memory = nil
		}
		r.out.mig = append(r.out.mig, m)
	}
	return Success
}

// processes drops what can't be: in some versions of the driver the layout of the answer differs
// from its header.
func (r *reading) processes() Return {
	all, ret := r.device.Processes()
	if !r.check(ret) {
		return ret
	}
	var total uint64
	if m, ret := r.device.Memory(); ret == Success {
		total = m.Total
	}
	seen := map[uint32]int{}
	for _, p := range all {
		const notAvailable = ^uint64(0)
		if p.Used == notAvailable {
			continue // as on Windows and in some containers: not told
		}
		if !r.plausible(p.PID != 0 && p.PID < 1<<22 && p.Used <= total) {
			continue
		}
		if i, ok := seen[p.PID]; ok { // it computes and draws: one process with one memory
			r.out.processes[i].Used = max(r.out.processes[i].Used, p.Used)
			continue
		}
		if len(r.out.processes) == maxProcesses {
			break
		}
		seen[p.PID] = len(r.out.processes)
		r.out.processes = append(r.out.processes, p)
	}
	return Success
}
