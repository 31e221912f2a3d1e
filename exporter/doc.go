// Command exporter serves /metrics of the machine it runs on: its processors, memory, paging and
// disks, and its NVIDIA GPUs where it has some.
package main
