package gpu

import "strconv"

// Return is the outcome of an NVML call, with NVML's own numbers.
type Return int

// The outcomes that are told apart here.
const (
	Success                Return = 0
	Uninitialized          Return = 1
	InvalidArgument        Return = 2
	NotSupported           Return = 3
	NoPermission           Return = 4
	NotFound               Return = 6
	InsufficientSize       Return = 7
	DriverNotLoaded        Return = 9
	Timeout                Return = 10
	LibraryNotFound        Return = 12
	FunctionNotFound       Return = 13
	GPUIsLost              Return = 15
	ResetRequired          Return = 16
	LibVersionMismatch     Return = 18
	NoData                 Return = 21
	ArgumentVersionUnknown Return = 25
	GPUNotFound            Return = 28
	Unknown                Return = 999

	// Invalid is ours: the call succeeded with a value that cannot be.
	Invalid Return = -1
	// released is ours as well: NVML was let go of on demand.
	released Return = -2
)

// String returns a name that is always the same, fit for a label. NVML's own text comes from the
// driver's library and changes with it.
func (r Return) String() string {
	switch r {
	case Success:
		return "success"
	case Uninitialized:
		return "uninitialized"
	case InvalidArgument:
		return "invalid_argument"
	case NotSupported:
		return "not_supported"
	case NoPermission:
		return "no_permission"
	case NotFound:
		return "not_found"
	case InsufficientSize:
		return "insufficient_size"
	case DriverNotLoaded:
		return "driver_not_loaded"
	case Timeout:
		return "timeout"
	case LibraryNotFound:
		return "library_not_found"
	case FunctionNotFound:
		return "function_not_found"
	case GPUIsLost:
		return "gpu_is_lost"
	case ResetRequired:
		return "reset_required"
	case LibVersionMismatch:
		return "library_version_mismatch"
	case NoData:
		return "no_data"
	case ArgumentVersionUnknown:
		return "argument_version_mismatch"
	case GPUNotFound:
		return "gpu_not_found"
	case Unknown:
		return "unknown"
	case Invalid:
		return "invalid_value"
	case released:
		return ReasonReleased
	}
	return "code_" + strconv.Itoa(int(r))
}

// unavailable reports an outcome that means "this GPU, driver or moment has no such value", which
// is no error.
func (r Return) unavailable() bool {
	switch r {
	case NotSupported, FunctionNotFound, NotFound, NoData:
		return true
	}
	return false
}
