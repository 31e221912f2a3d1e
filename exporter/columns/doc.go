// Package columns says, for every column of nvidia-smi dmon, vmstat and iostat -x, which metric of
// the exporter has it and which PromQL gives it. It is data: docs/exporter-columns.md is printed
// from it, and the comparison with the real tools evaluates it. It reads nothing and knows no PromQL
// engine.
package columns
