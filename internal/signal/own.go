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
	LoadgenBackoffSeconds     = "loadgen_backoff_seconds_total"           // counter: slot-seconds of a closed loop spent waiting because requests failed fast, by the step's window at that time
	LoadgenOccupancySeconds   = "loadgen_request_occupancy_seconds_total" // counter: sent → connection free, all outcomes, by the request's window
	LoadgenStepStart          = "loadgen_step_start_timestamp_seconds"    // gauge {window}
	LoadgenStepEnd            = "loadgen_step_end_timestamp_seconds"      // gauge {window}
	LoadgenLateReads          = "loadgen_late_read_requests_total"        // counter {objective}: ok requests that met the threshold at the earliest possible arrival and not at the latest
	LoadgenClientLimited      = "loadgen_client_limited"                  // gauge 0/1 {reason}
	LoadgenRunInfo            = "loadgen_run_info"                        // gauge 1
)

// The step labels of the load generator's series.
const (
	LabelRun         = "run"
	LabelPhase       = "phase"
	LabelRound       = "round"
	LabelStep        = "step"
	LabelConcurrency = "concurrency" // of a closed loop
	LabelRate        = "rate"        // of an open loop, in requests per second
	LabelClass       = "class"       // where a plan has classes of requests
	LabelShard       = "shard"       // where several load generators make one run
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

// The exporter's host metrics. On Linux they are those of vmstat and iostat -x.
const (
	HostInfo            = "host_info"                    // gauge 1 {os,kernel,arch}
	HostCPUSeconds      = "host_cpu_seconds_total"       // counter {cpu,mode}; guest time is in user and nice
	HostCPUGuestSeconds = "host_cpu_guest_seconds_total" // counter {cpu,mode}: the part of user and nice spent on guests
	HostProcsRunning    = "host_procs_running"
	HostProcsBlocked    = "host_procs_blocked"
	HostInterrupts      = "host_interrupts_total"
	HostContextSwitches = "host_context_switches_total"

	HostMemoryTotal        = "host_memory_total_bytes"
	HostMemoryAvailable    = "host_memory_available_bytes"
	HostMemoryFree         = "host_memory_free_bytes"
	HostMemoryBuffers      = "host_memory_buffers_bytes"
	HostMemoryCached       = "host_memory_cached_bytes"
	HostMemorySReclaimable = "host_memory_sreclaimable_bytes"
	HostSwapTotal          = "host_memory_swap_total_bytes"
	HostSwapFree           = "host_memory_swap_free_bytes"

	HostSwapIn   = "host_swap_in_bytes_total"
	HostSwapOut  = "host_swap_out_bytes_total"
	HostPagedIn  = "host_paged_in_bytes_total"
	HostPagedOut = "host_paged_out_bytes_total"

	HostDiskReads         = "host_disk_reads_completed_total" // {device}, as all of them
	HostDiskReadBytes     = "host_disk_read_bytes_total"
	HostDiskReadsMerged   = "host_disk_reads_merged_total"
	HostDiskReadTime      = "host_disk_read_time_seconds_total"
	HostDiskWrites        = "host_disk_writes_completed_total"
	HostDiskWrittenBytes  = "host_disk_written_bytes_total"
	HostDiskWritesMerged  = "host_disk_writes_merged_total"
	HostDiskWriteTime     = "host_disk_write_time_seconds_total"
	HostDiskDiscards      = "host_disk_discards_completed_total"
	HostDiskDiscardBytes  = "host_disk_discarded_bytes_total"
	HostDiskDiscardMerged = "host_disk_discards_merged_total"
	HostDiskDiscardTime   = "host_disk_discard_time_seconds_total"
	HostDiskFlushes       = "host_disk_flush_requests_total"
	HostDiskFlushTime     = "host_disk_flush_time_seconds_total"
	HostDiskIONow         = "host_disk_io_now"
	HostDiskIOTime        = "host_disk_io_time_seconds_total"
	HostDiskIOTimeWeighed = "host_disk_io_time_weighted_seconds_total"
)

// The exporter's metrics of pressure, load and processes.
const (
	HostBootTime        = "host_boot_timestamp_seconds"
	HostLoadAverage     = "host_load_average"                    // gauge {minutes}
	HostPressureSome    = "host_pressure_waiting_seconds_total"  // counter {resource}: at least one task waited
	HostPressureFull    = "host_pressure_stalled_seconds_total"  // counter {resource}: all tasks waited
	HostProcessStart    = "host_process_start_timestamp_seconds" // {name,pid}, as all that follow
	HostProcessCPU      = "host_process_cpu_seconds_total"       // counter {name,pid,mode}
	HostProcessResident = "host_process_resident_memory_bytes"
	HostProcessVirtual  = "host_process_virtual_memory_bytes"
	HostProcessThreads  = "host_process_threads"
)

// The exporter's GPU metrics, and those about itself.
const (
	NVMLUp          = "nvml_up"
	NVMLDown        = "nvml_down_info"    // gauge 1 {reason}, only while nvml_up is 0
	NVMLErrors      = "nvml_errors_total" // counter {function,return}
	NVMLCalls       = "nvml_calls_total"
	NVMLCallSeconds = "nvml_call_seconds_total"
	NVMLSlowCalls   = "nvml_slow_calls_total" // counter {function}
	NVMLTimeouts    = "nvml_timeouts_total"
	NVMLLastSuccess = "nvml_last_success_timestamp_seconds"

	GPUInfo              = "nvidia_gpu_info"      // gauge 1 {uuid,gpu,name,pci_bus_id,driver,minor,serial,vbios}
	GPUUp                = "nvidia_gpu_up"        // {uuid}, as all that follow
	GPUDown              = "nvidia_gpu_down_info" // gauge 1 {reason}, only while nvidia_gpu_up is 0
	GPUUtilization       = "nvidia_gpu_utilization_ratio"
	GPUMemoryUtilization = "nvidia_gpu_memory_utilization_ratio" // activity of the memory bus, not how full it is
	GPUBusy              = "nvidia_gpu_busy_seconds_total"
	GPUMemoryBusy        = "nvidia_gpu_memory_busy_seconds_total"
	GPUEncoder           = "nvidia_gpu_encoder_utilization_ratio"
	GPUDecoder           = "nvidia_gpu_decoder_utilization_ratio"
	GPUJPEG              = "nvidia_gpu_jpeg_utilization_ratio"
	GPUOFA               = "nvidia_gpu_ofa_utilization_ratio"
	GPUClock             = "nvidia_gpu_clock_hertz"                  // {clock}
	GPUThrottle          = "nvidia_gpu_clock_throttle_seconds_total" // {reason}
	GPUClockEvent        = "nvidia_gpu_clock_event_active"           // 0 or 1 {reason}
	GPUPerformanceState  = "nvidia_gpu_performance_state"
	GPUMemoryUsed        = "nvidia_gpu_memory_used_bytes"
	GPUMemoryFree        = "nvidia_gpu_memory_free_bytes"
	GPUMemoryReserved    = "nvidia_gpu_memory_reserved_bytes"
	GPUMemoryTotal       = "nvidia_gpu_memory_total_bytes"
	GPUBAR1Used          = "nvidia_gpu_bar1_memory_used_bytes"
	GPUBAR1Total         = "nvidia_gpu_bar1_memory_total_bytes"
	GPUProtectedUsed     = "nvidia_gpu_protected_memory_used_bytes"
	GPUProtectedTotal    = "nvidia_gpu_protected_memory_total_bytes"
	GPUPower             = "nvidia_gpu_power_watts"
	GPUPowerLimit        = "nvidia_gpu_power_limit_watts" // {limit}
	GPUEnergy            = "nvidia_gpu_energy_joules_total"
	GPUTemperature       = "nvidia_gpu_temperature_celsius"
	GPUMemoryTemperature = "nvidia_gpu_memory_temperature_celsius"
	GPUFan               = "nvidia_gpu_fan_speed_ratio" // {fan}
	GPUECCEnabled        = "nvidia_gpu_ecc_enabled"
	GPUECCErrors         = "nvidia_gpu_ecc_errors_total" // {type,scope}
	GPURetiredPages      = "nvidia_gpu_retired_pages"    // {cause}
	GPURetirementPending = "nvidia_gpu_page_retirement_pending"
	GPURemappedRows      = "nvidia_gpu_remapped_rows" // {type}
	GPURemappingPending  = "nvidia_gpu_row_remapping_pending"
	GPURemappingFailed   = "nvidia_gpu_row_remapping_failed"
	GPURecoveryAction    = "nvidia_gpu_recovery_action"
	GPUPCIeReplays       = "nvidia_gpu_pcie_replays_total"
	GPUPCIeReceiveRate   = "nvidia_gpu_pcie_receive_bytes_per_second"
	GPUPCIeTransmitRate  = "nvidia_gpu_pcie_transmit_bytes_per_second"
	GPUPCIeReceived      = "nvidia_gpu_pcie_receive_bytes_total"
	GPUPCIeTransmitted   = "nvidia_gpu_pcie_transmit_bytes_total"
	GPUXIDEvents         = "nvidia_gpu_xid_events_total"
	GPUXIDEventsByCode   = "nvidia_gpu_xid_events_by_code_total" // {xid}
	GPUXIDLast           = "nvidia_gpu_xid_last_event_timestamp_seconds"
	GPUProcessMemory     = "nvidia_gpu_process_memory_used_bytes" // {pid,name}
	GPUMIGEnabled        = "nvidia_gpu_mig_enabled"
	GPUMIGInfo           = "nvidia_gpu_mig_info"              // gauge 1 {mig_uuid,gpu_instance_id,compute_instance_id,name}
	GPUMIGMemoryUsed     = "nvidia_gpu_mig_memory_used_bytes" // {gpu_instance_id}
	GPUMIGMemoryFree     = "nvidia_gpu_mig_memory_free_bytes"
	GPUMIGMemoryTotal    = "nvidia_gpu_mig_memory_total_bytes"

	ScrapeCollectorOK   = "exporter_collector_success"          // {collector}
	ScrapeCollectorTime = "exporter_collector_duration_seconds" // {collector}
)
