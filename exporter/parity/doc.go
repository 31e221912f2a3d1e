// Command parity measures the exporter beside other programs on the same machine.
//
//	go run ./exporter/parity columns --url http://127.0.0.1:10510/metrics --duration 60s
//	go run ./exporter/parity cost --ours ./exporter.bin --theirs prometheus-node-exporter --duration 10m
//
// columns runs the real vmstat and iostat, scrapes the exporter whenever they print, and compares
// every column with its PromQL over the same time. cost scrapes the exporter and node_exporter once
// a second and compares what they use. Neither is part of the exporter's binary.
package main
