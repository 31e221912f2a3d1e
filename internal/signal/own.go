package signal

// The load generator's own metrics. Every series of a run carries the step labels below.
const (
	LoadgenRequests           = "loadgen_requests_total"                  // counter {outcome}
	LoadgenTimeouts           = "loadgen_timeouts_total"                  // counter {kind}
	LoadgenGoodRequests       = "loadgen_good_requests_total"             // counter: met every user objective at once
	LoadgenUndefined          = "loadgen_undefined_requests_total"        // counter {objective}: ok requests whose value is undefined
	LoadgenTTFT               = "loadgen_time_to_first_token_seconds"     // histogram, ok requests
	LoadgenDuration           = "loadgen_request_duration_seconds"        // histogram, ok requests
	LoadgenTPOT               = "loadgen_time_per_output_token_seconds"   // histogram, ok requests
	LoadgenICL                = "loadgen_inter_chunk_latency_seconds"     // histogram, ok requests
	LoadgenQueueWait          = "loadgen_queue_wait_seconds"              // histogram {source}
	LoadgenRejectionDuration  = "loadgen_rejection_duration_seconds"      // histogram
	LoadgenDispatchDelay      = "loadgen_dispatch_delay_seconds"          // histogram
	LoadgenPromptTokens       = "loadgen_prompt_tokens_total"             // counter
	LoadgenCachedPromptTokens = "loadgen_cached_prompt_tokens_total"      // counter
	LoadgenOutputTokens       = "loadgen_output_tokens_total"             // counter
	LoadgenInFlight           = "loadgen_in_flight_requests"              // gauge; no window label
	LoadgenInFlightSeconds    = "loadgen_in_flight_request_seconds_total" // counter: time integral of the gauge, by the step's window at that time
	LoadgenOccupancySeconds   = "loadgen_request_occupancy_seconds_total" // counter: sent → connection free, all outcomes, by the request's window
	LoadgenStepStart          = "loadgen_step_start_timestamp_seconds"    // gauge {window}
	LoadgenStepEnd            = "loadgen_step_end_timestamp_seconds"      // gauge {window}
	LoadgenClientLimited      = "loadgen_client_limited"                  // gauge 0/1 {reason}
	LoadgenRunInfo            = "loadgen_run_info"                        // gauge 1
)

// The step labels of the load generator's series.
const (
	LabelRun         = "run"
	LabelPhase       = "phase"
	LabelRound       = "round"
	LabelStep        = "step"
	LabelConcurrency = "concurrency"
	LabelWindow      = "window"
	LabelOutcome     = "outcome"
	LabelKind        = "kind"
	LabelObjective   = "objective"
	LabelSource      = "source"
	LabelReason      = "reason"
	// LabelRole is set by the scrape configuration, never by an exporter.
	LabelRole = "role"
)

// Values of the role label.
const (
	RoleClient = "client" // the machine that sends the load
	RoleTarget = "target" // the machine that serves
)

// The exporter's metrics.
const (
	HostCPUSeconds        = "host_cpu_seconds_total" // counter {cpu,mode}
	HostProcsRunning      = "host_procs_running"
	HostProcsBlocked      = "host_procs_blocked"
	HostMemoryTotal       = "host_memory_total_bytes"
	HostMemoryAvailable   = "host_memory_available_bytes"
	HostMemoryFree        = "host_memory_free_bytes"
	HostMemoryBuffers     = "host_memory_buffers_bytes"
	HostMemoryCached      = "host_memory_cached_bytes"
	HostSwapTotal         = "host_memory_swap_total_bytes"
	HostSwapFree          = "host_memory_swap_free_bytes"
	HostSwapIn            = "host_swap_in_bytes_total"
	HostSwapOut           = "host_swap_out_bytes_total"
	HostDiskReads         = "host_disk_reads_completed_total" // {device}
	HostDiskReadBytes     = "host_disk_read_bytes_total"
	HostDiskWrites        = "host_disk_writes_completed_total"
	HostDiskWrittenBytes  = "host_disk_written_bytes_total"
	HostDiskIOTime        = "host_disk_io_time_seconds_total"
	HostDiskIOTimeWeighed = "host_disk_io_time_weighted_seconds_total"

	NVMLUp              = "nvml_up"
	GPUInfo             = "nvidia_gpu_info"
	GPUUp               = "nvidia_gpu_up" // {uuid}
	GPUUtilization      = "nvidia_gpu_utilization_ratio"
	GPUMemoryUsed       = "nvidia_gpu_memory_used_bytes"
	GPUMemoryTotal      = "nvidia_gpu_memory_total_bytes"
	GPUPower            = "nvidia_gpu_power_watts"
	GPUTemperature      = "nvidia_gpu_temperature_celsius"
	ScrapeCollectorOK   = "exporter_collector_success"
	ScrapeCollectorTime = "exporter_collector_duration_seconds"
)
