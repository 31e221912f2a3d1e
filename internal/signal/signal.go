package signal

import "slices"

// The layers, in the order in which they are read.
const (
	LayerUser     = "user"
	LayerService  = "service"
	LayerResource = "resource"
)

// The sources of a signal: the keys of the SLO file's selectors.
const (
	SourceEngine = "engine"
	SourceHost   = "host"
	SourceGPU    = "gpu"
)

// Units of a signal, after its reading and scale are applied.
const (
	UnitSeconds           = "seconds"
	UnitRatio             = "ratio" // 0–1
	UnitBytes             = "bytes"
	UnitBytesPerSecond    = "bytes_per_second"
	UnitRequests          = "requests"
	UnitRequestsPerSecond = "requests_per_second"
	UnitTokensPerSecond   = "tokens_per_second"
	UnitPerSecond         = "per_second"
	UnitProcesses         = "processes"
	UnitWatts             = "watts"
	UnitCelsius           = "celsius"
)

// The signals. The user's objectives capacity and recovery are judgements over a finished run, not
// signals, and so are not here.
const (
	SignalTTFT         = "time_to_first_token"
	SignalDuration     = "request_duration"
	SignalTPOT         = "time_per_output_token"
	SignalICL          = "inter_chunk_latency"
	SignalSuccessRatio = "success_ratio"
	SignalTimeoutRatio = "timeout_ratio"

	SignalRequestsRunning  = "requests_running"
	SignalRequestsWaiting  = "requests_waiting"
	SignalQueueTime        = "queue_time"
	SignalKVCacheUsage     = "kv_cache_usage"
	SignalPreemptions      = "preemptions"
	SignalPromptTokens     = "prompt_tokens"
	SignalOutputTokens     = "output_tokens"
	SignalITL              = "inter_token_latency"
	SignalRequestsFinished = "requests_finished"
	SignalRejections       = "rejections"

	SignalCPUUtilization    = "cpu_utilization"
	SignalMemoryUsed        = "memory_used"
	SignalMemoryUtilization = "memory_utilization"
	SignalSwapUsed          = "swap_used"
	SignalDiskUtilization   = "disk_utilization"
	SignalDiskRead          = "disk_read_bytes"
	SignalDiskWritten       = "disk_written_bytes"
	SignalProcsBlocked      = "procs_blocked"

	SignalGPUUtilization       = "gpu_utilization"
	SignalGPUMemoryUsed        = "gpu_memory_used"
	SignalGPUMemoryUtilization = "gpu_memory_utilization"
	SignalGPUPower             = "gpu_power"
	SignalGPUTemperature       = "gpu_temperature"
)

// Signal is one logical signal, independent of who exports it.
type Signal struct {
	Name string
	// Layer is where an objective on the signal belongs. The engine's own view of a user signal
	// is a service reading beside it: see Engine.Layer.
	Layer  string
	Source string // which of the SLO file's selectors picks its series
	Unit   string
	Help   string
}

// Signals returns every signal, user first, then service, then resource.
func Signals() []Signal {
	return slices.Concat(userSignals(), serviceSignals(), hostSignals(), gpuSignals())
}

func userSignals() []Signal {
	user := func(name, unit, help string) Signal {
		return Signal{Name: name, Layer: LayerUser, Source: SourceEngine, Unit: unit, Help: help}
	}
	return []Signal{
		user(SignalTTFT, UnitSeconds, "from the request to its first text"),
		user(SignalDuration, UnitSeconds, "from the request to its last token"),
		user(SignalTPOT, UnitSeconds, "mean time between the tokens of one request after its first"),
		user(SignalICL, UnitSeconds, "gap between two chunks with text as the client sees them"),
		user(SignalSuccessRatio, UnitRatio, "share of requests that were answered in full"),
		user(SignalTimeoutRatio, UnitRatio, "share of requests that did not time out"),
	}
}

func serviceSignals() []Signal {
	service := func(name, unit, help string) Signal {
		return Signal{Name: name, Layer: LayerService, Source: SourceEngine, Unit: unit, Help: help}
	}
	return []Signal{
		service(SignalRequestsRunning, UnitRequests, "requests in the engine's running batch"),
		service(SignalRequestsWaiting, UnitRequests, "requests that the engine has accepted and not begun"),
		service(SignalQueueTime, UnitSeconds, "mean time that a request waited before the engine began it"),
		service(SignalKVCacheUsage, UnitRatio, "share of the KV cache in use"),
		service(SignalPreemptions, UnitPerSecond, "running requests put back for want of KV cache"),
		service(SignalPromptTokens, UnitTokensPerSecond, "prompt tokens taken in"),
		service(SignalOutputTokens, UnitTokensPerSecond, "tokens generated"),
		service(SignalITL, UnitSeconds, "mean time between two output steps of the engine"),
		service(SignalRequestsFinished, UnitRequestsPerSecond, "requests that the engine finished, for whatever reason"),
		service(SignalRejections, UnitRequestsPerSecond, "requests refused for want of room"),
	}
}

func hostSignals() []Signal {
	host := func(name, unit, help string) Signal {
		return Signal{Name: name, Layer: LayerResource, Source: SourceHost, Unit: unit, Help: help}
	}
	return []Signal{
		host(SignalCPUUtilization, UnitRatio, "share of all CPU time that was neither idle nor waiting for I/O"),
		host(SignalMemoryUsed, UnitBytes, "memory that could not be given to a new process: total less available"),
		host(SignalMemoryUtilization, UnitRatio, "the same as a share of all memory"),
		host(SignalSwapUsed, UnitBytes, "swap in use"),
		host(SignalDiskUtilization, UnitRatio, "share of time in which the busiest disk had I/O in flight; 1 does not mean saturated on a parallel device"),
		host(SignalDiskRead, UnitBytesPerSecond, "bytes read from all whole disks"),
		host(SignalDiskWritten, UnitBytesPerSecond, "bytes written to all whole disks"),
		host(SignalProcsBlocked, UnitProcesses, "processes blocked waiting for I/O"),
	}
}

func gpuSignals() []Signal {
	gpu := func(name, unit, help string) Signal {
		return Signal{Name: name, Layer: LayerResource, Source: SourceGPU, Unit: unit, Help: help}
	}
	return []Signal{
		gpu(SignalGPUUtilization, UnitRatio, "share of time in which a kernel ran on the busiest GPU; says nothing of how full it was"),
		gpu(SignalGPUMemoryUsed, UnitBytes, "memory in use on all GPUs"),
		gpu(SignalGPUMemoryUtilization, UnitRatio, "memory in use on the fullest GPU as a share of its memory"),
		gpu(SignalGPUPower, UnitWatts, "power drawn by all GPUs"),
		gpu(SignalGPUTemperature, UnitCelsius, "temperature of the hottest GPU"),
	}
}

// Get returns the signal of that name.
func Get(name string) (Signal, bool) {
	for _, s := range Signals() {
		if s.Name == name {
			return s, true
		}
	}
	return Signal{}, false
}

// Known reports whether there is a signal of that name.
func Known(name string) bool {
	_, ok := Get(name)
	return ok
}
