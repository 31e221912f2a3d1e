package host

import (
	"os"
	"path/filepath"
)

// initialNamespace is the PID namespace that the kernel begins with; its number is fixed.
const initialNamespace = "pid:[4026531836]"

// Contained reports whether this process is in a PID namespace of its own and reads the /proc of
// it: what it then sees of processes, and under lxcfs of everything, is the container's.
func (r *Reader) Contained() bool { return r.ProcFS == "/proc" && namespaced(r.ProcFS) }

// namespaced reports whether the process that reads proc is in a PID namespace of its own.
func namespaced(proc string) bool {
	namespace, err := os.Readlink(filepath.Join(proc, "self/ns/pid"))
	return err == nil && namespace != initialNamespace
}
