// Package gpu reads NVIDIA GPUs through NVML: a worker samples them in the background, and whoever
// asks gets the last snapshot, so that neither the number of scrapers nor a slow driver changes
// how often the driver is called.
//
// NVML is reached only with cgo on Linux. Elsewhere the package builds all the same and its
// snapshot says that the GPU part is not built in. It knows nothing of Prometheus.
package gpu
