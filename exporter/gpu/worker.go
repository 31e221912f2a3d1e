package gpu

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"
)

// worker decides what is called when. It calls the driver itself never: that is the lane's, so
// that a call that hangs costs the GPU that it was for.
type worker struct {
	Options
	readers []reader
	release <-chan struct{}
	store   func(*Snapshot)

	lane  *lane
	hung  map[int]*hang // by index
	calls Calls
	begun time.Time     // of the cycle
	limit time.Duration // of a call for one GPU in this cycle

	version string
	known   map[string]GPU   // every GPU seen so far, without its values
	units   map[string]*unit // what is kept of it
	logged  map[string]bool  // one line for each kind of failure of each GPU

	events     Events
	registered map[string]bool
	xids       map[string]*xids
}

// hang is a GPU that was given up in a call that didn't return.
type hang struct {
	uuid string // "" where that wasn't known yet
	call outcome
}

// xids is what the driver has reported of one GPU.
type xids struct {
	total  uint64
	byCode map[uint64]uint64
	last   time.Time
}

// maxXIDCodes bounds the codes that are told apart; there are fewer than 200.
const maxXIDCodes = 64

func newWorker(o Options, release <-chan struct{}, store func(*Snapshot)) *worker {
	return &worker{
		Options: o, readers: readers(o), release: release, store: store,
		lane: newLane(), hung: map[int]*hang{},
		calls: Calls{Failed: map[Failure]uint64{}, Slow: map[string]uint64{}},
		known: map[string]GPU{}, units: map[string]*unit{}, logged: map[string]bool{}, xids: map[string]*xids{},
	}
}

func (w *worker) run(ctx context.Context) {
	defer func() {
		w.lane.leave()
		w.publish(&Snapshot{Reason: ReasonStopped})
	}()
	for ctx.Err() == nil {
		if w.Suspended != nil && w.Suspended() {
			w.hold(ctx, ReasonSuspended, w.Interval)
			continue
		}
		var ret Return
		if !w.drive(ctx, "nvmlInit", func() { ret = w.Driver.Init() }) {
			return
		}
		if ret == Success {
			ret = w.session(ctx)
		} else {
			w.fail("nvmlInit", "", ret)
		}
		switch {
		case ctx.Err() != nil:
			return
		case ret == LibVersionMismatch:
			// This process is bound to the library that it loaded first: only a restart helps.
			w.Logger.Error("The NVIDIA driver was replaced while this process held the old library; restart the exporter to read GPUs again")
			w.hold(ctx, ret.String(), 0)
			return
		case ret == released:
			w.hold(ctx, ReasonReleased, releaseTime)
		case ret == FunctionNotFound:
			w.hold(ctx, ReasonNoSymbols, retryAfter)
		default:
			w.hold(ctx, ret.String(), retryAfter)
		}
	}
}

// session reads the GPUs until the driver is lost, ctx ends or NVML is to be released. It ends
// NVML, unless a call hangs in it.
func (w *worker) session(ctx context.Context) (ret Return) {
	defer func() {
		if w.events != nil && len(w.hung) == 0 {
			w.drive(ctx, "nvmlEventSetFree", w.events.Close)
		}
		w.events = nil
		if len(w.hung) == 0 {
			w.drive(context.WithoutCancel(ctx), "nvmlShutdown", func() { w.Driver.Shutdown() })
		}
	}()
	if !w.drive(ctx, "nvmlSystemGetDriverVersion", func() { w.version, _ = w.Driver.Version() }) {
		return Success
	}
	w.openEvents(ctx)
	tick := time.NewTicker(w.Interval)
	defer tick.Stop()
	for {
		snap, ret := w.cycle(ctx)
		if ctx.Err() != nil || ret != Success {
			return ret
		}
		w.publish(snap)
		select {
		case <-ctx.Done():
			return Success
		case <-w.release:
			return released
		case <-tick.C:
		}
	}
}

// drive runs a call that is for no GPU in particular, and waits for it: while it hangs nothing
// can be told. It reports whether it returned before ctx ended.
func (w *worker) drive(ctx context.Context, function string, call func()) bool {
	begin := time.Now()
	ended, err := w.lane.start(call).wait(ctx, 0)
	w.calls.note(function, time.Since(begin))
	if err != nil {
		w.Logger.Error("A call to the NVIDIA driver went wrong", "function", function, "err", err)
	}
	return ended
}

// attempt runs a call for one GPU, and gives the GPU up when it doesn't return in time.
func (w *worker) attempt(ctx context.Context, index int, uuid string, call func()) bool {
	job := w.lane.start(call)
	ended, err := job.wait(ctx, w.limit)
	if ended || ctx.Err() != nil {
		if err != nil {
			w.Logger.Error("Reading a GPU went wrong", "gpu", uuid, "index", index, "err", err)
		}
		return ended && err == nil
	}
	w.calls.Timeouts++
	w.Logger.Warn("A GPU does not answer; it is left out until it does", "gpu", uuid, "index", index, "timeout", w.limit)
	w.limit = w.Timeout / maxHung
	w.hung[index] = &hang{uuid: uuid, call: job}
	w.lane.leave()
	w.lane = newLane()
	return false
}

// cycle reads every GPU once.
func (w *worker) cycle(ctx context.Context) (*Snapshot, Return) {
	w.begun, w.limit = time.Now(), w.Timeout
	var count int
	var ret Return
	if !w.drive(ctx, "nvmlDeviceGetCount", func() { count, ret = w.Driver.Count() }) {
		return nil, Success
	}
	if ret != Success {
		w.fail("nvmlDeviceGetCount", "", ret)
		return nil, ret
	}
	w.drainEvents(ctx)
	var gpus []GPU
	seen := map[string]bool{}
	outcomes := map[Return]int{} // of the GPUs that can't even be told
	for i := range min(count, maxGPUs) {
		g, ret := w.one(ctx, i, seen)
		if ret == Uninitialized || ret == DriverNotLoaded || ret == LibVersionMismatch {
			return nil, ret
		}
		if g.UUID == "" {
			outcomes[ret]++
			continue
		}
		seen[g.UUID] = true
		gpus = append(gpus, g)
	}
	gpus = append(gpus, w.missing(seen, outcomes)...)
	slices.SortStableFunc(gpus, func(a, b GPU) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID))
	})
	return w.verdict(gpus, count, outcomes), Success
}

// verdict says whether NVML as a whole works: with no GPU at all, or with none that can be told
// for one and the same reason, it doesn't.
func (w *worker) verdict(gpus []GPU, count int, outcomes map[Return]int) *Snapshot {
	snap := &Snapshot{Up: true, GPUs: gpus}
	switch {
	case count == 0:
		snap.Up, snap.Reason = false, ReasonNoGPU
	case len(outcomes) == 1:
		for ret, n := range outcomes {
			if n == count && ret != Success {
				snap.Up, snap.Reason = false, ret.String()
			}
		}
	}
	if snap.Up {
		w.calls.Success = w.begun
	}
	return snap
}

// missing are the GPUs that were there before.
func (w *worker) missing(seen map[string]bool, outcomes map[Return]int) []GPU {
	reason := GPUIsLost
	for ret := range outcomes {
		if ret != Success {
			reason = ret
		}
	}
	var gpus []GPU
	for uuid, g := range w.known {
		if !seen[uuid] {
			g.Reason = reason.String()
			gpus = append(gpus, g)
		}
	}
	return gpus
}

// one reads one GPU; it returns one without a UUID when it can't be told which it is.
func (w *worker) one(ctx context.Context, index int, seen map[string]bool) (GPU, Return) {
	if h := w.hung[index]; h != nil {
		if !h.call.returned() {
			return w.down(h.uuid, ReasonHung), Success
		}
		delete(w.hung, index)
	}
	if len(w.hung) >= maxHung {
		return GPU{}, Timeout
	}
	var d Device
	var uuid string
	var ret Return
	function := "nvmlDeviceGetHandleByIndex"
	if !w.attempt(ctx, index, w.at(index), func() {
		if d, ret = w.Driver.Device(index); ret == Success {
			function = "nvmlDeviceGetUUID"
			uuid, ret = d.UUID()
		}
	}) {
		if h := w.hung[index]; h != nil {
			h.uuid = w.at(index)
			return w.down(h.uuid, ReasonHung), Timeout
		}
		return GPU{}, Timeout
	}
	w.calls.Total += 2
	if ret != Success {
		w.fail(function, "", ret)
		return GPU{}, ret
	}
	// Without a UUID there is no identity to export; a second GPU with the same one would make two
	// identical series. One that hangs at another index is left alone.
	if uuid == "" || seen[uuid] || w.hangs(uuid) || len(w.known) >= maxGPUs && w.known[uuid].UUID == "" {
		return GPU{}, Success
	}
	return w.read(ctx, index, uuid, d)
}

// at returns the UUID that the GPU at the index had last, or "".
func (w *worker) at(index int) string {
	for uuid, g := range w.known {
		if g.Index == index {
			return uuid
		}
	}
	return ""
}

func (w *worker) hangs(uuid string) bool {
	for _, h := range w.hung {
		if h.uuid == uuid {
			return true
		}
	}
	return false
}

func (w *worker) down(uuid, reason string) GPU {
	g := w.known[uuid]
	g.Reason = reason
	return g
}

// read reads one GPU whose UUID is known.
func (w *worker) read(ctx context.Context, index int, uuid string, d Device) (GPU, Return) {
	u := w.units[uuid]
	if u == nil {
		u = &unit{}
		w.units[uuid] = u
	}
	r := &reading{device: d, now: w.begun, unit: u}
	var values []held
	var ret Return
	g, known := w.known[uuid]
	g.UUID, g.Index = uuid, index
	// The call has a GPU of its own: it may be left behind.
	found, register, events := g, !w.registered[uuid], w.events
	if !w.attempt(ctx, index, uuid, func() {
		if !known {
			found.identify(d)
		}
		if register && events != nil {
			events.Register(d, uuid)
		}
		values, ret = r.readAll(w.readers)
	}) {
		w.known[uuid] = g
		if w.hung[index] == nil {
			return w.down(uuid, Unknown.String()), Success
		}
		return w.down(uuid, ReasonHung), Success
	}
	w.registered[uuid] = true
	w.known[uuid] = found
	w.count(r, uuid)
	switch {
	case ret == Uninitialized || ret == DriverNotLoaded || ret == LibVersionMismatch:
		return found, ret
	case ret != Success:
		u.held = nil
		return w.down(uuid, ret.String()), Success
	}
	found.Up = true
	for _, h := range values {
		found.Readings = append(found.Readings, h.values...)
		found.MIG = append(found.MIG, h.mig...)
		found.Processes = append(found.Processes, h.processes...)
	}
	found.Readings = append(found.Readings, w.xidReadings(uuid)...)
	return found, Success
}

// identify reads what a GPU is. What it doesn't tell stays empty.
func (g *GPU) identify(d Device) {
	g.Name, _ = d.Name()
	g.PCIBusID, _ = d.PCIBusID()
	g.Serial, _ = d.Serial()
	g.VBIOS, _ = d.VBIOS()
	if minor, ret := d.Minor(); ret == Success {
		g.Minor = strconv.Itoa(minor)
	}
}

// count takes over what a reading counted.
func (w *worker) count(r *reading, uuid string) {
	w.calls.Total += r.calls.Total
	w.calls.Seconds += r.calls.Seconds
	for function, n := range r.calls.Slow {
		w.calls.Slow[function] += n
	}
	for _, f := range r.failed {
		w.fail(f.Function, uuid, f.Return)
	}
}

// hold says that NVML is down, and why, until the time is over (0: never) or ctx ends.
func (w *worker) hold(ctx context.Context, reason string, limit time.Duration) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	// Often enough not to be stale, and no oftener: most machines without a GPU stay so.
	tick := time.NewTicker(max(w.Interval, staleAfter/2))
	defer tick.Stop()
	for {
		var gpus []GPU
		for _, uuid := range slices.Sorted(maps.Keys(w.known)) {
			gpus = append(gpus, w.down(uuid, reason))
		}
		w.publish(&Snapshot{Reason: reason, GPUs: gpus})
		select {
		case <-ctx.Done():
			return
		case <-w.release: // it is released
		case <-tick.C:
		}
	}
}

func (w *worker) publish(s *Snapshot) {
	s.Taken = time.Now()
	s.Driver = w.version
	s.Calls = w.calls
	s.Calls.Failed, s.Calls.Slow = maps.Clone(w.calls.Failed), maps.Clone(w.calls.Slow)
	w.store(s)
}

// fail counts a failed call, and logs it the first time. A machine without a driver is no failure.
func (w *worker) fail(function, uuid string, ret Return) {
	if ret.unavailable() && function != "nvmlInit" {
		return
	}
	if ret != LibraryNotFound {
		w.calls.Failed[Failure{function, ret}]++
	}
	key := function + uuid + ret.String()
	if w.logged[key] {
		return
	}
	w.logged[key] = true
	if ret == LibraryNotFound {
		w.Logger.Info("No NVIDIA driver on this machine: GPUs are not read", "reason", ret.String())
		return
	}
	w.Logger.Warn("A call to the NVIDIA driver failed; further failures of the kind are only counted",
		"function", function, "gpu", uuid, "return", ret.String())
}
