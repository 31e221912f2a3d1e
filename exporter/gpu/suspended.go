package gpu

import (
	"os"
	"path/filepath"
	"strings"
)

// Suspended reports whether one of the NVIDIA GPUs below the /sys directory is in runtime
// suspend, from which NVML would wake it.
func Suspended(sysfs string) bool {
	devices, err := filepath.Glob(filepath.Join(sysfs, "bus/pci/devices/*/vendor"))
	if err != nil {
		return false
	}
	for _, vendor := range devices {
		dir := filepath.Dir(vendor)
		if line(vendor) == "0x10de" && strings.HasPrefix(line(filepath.Join(dir, "class")), "0x03") &&
			line(filepath.Join(dir, "power/runtime_status")) == "suspended" {
			return true
		}
	}
	return false
}

func line(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
