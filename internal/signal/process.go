package signal

// ProcessStart is what the Prometheus client libraries, and with them most engines, export of their
// process: a gauge of unix seconds. A new value is a restart.
const ProcessStart = "process_start_time_seconds"
