//go:build !(cgo && linux)

package gpu

// newNVML returns nil: NVML can't be reached from this build.
func newNVML(string) Driver { return nil }
