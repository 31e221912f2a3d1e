// Package host reads what the machine is doing: CPU time, memory, paging and disks, as plain
// values. On Linux it reads /proc and /sys, elsewhere what gopsutil can tell.
//
// It keeps no state between two reads and knows nothing of Prometheus.
package host
