package slo

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"firstbreach/internal/signal"
	"firstbreach/internal/strictyaml"
)

// gaugeSignals are the service and resource signals of the catalogue: what max and min may bound.
func gaugeSignals() []signal.Signal {
	return slices.DeleteFunc(signal.Signals(), func(s signal.Signal) bool { return s.Layer == string(User) })
}

// readBound reads max or min in the signal's unit. want is "" for the value of a PromQL expression,
// which may have any unit: a written one is turned into its base unit, as metric names have it.
func readBound(v strictyaml.Value, want string) *float64 {
	number, written, ok := v.Measure()
	if !ok {
		return nil
	}
	multiply, divide, unit, ok := scale(written)
	if !ok {
		v.Reject(fmt.Sprintf("unknown unit %q", written), "write "+sample(want))
		return nil
	}
	if want != "" && unit != "" && !fits(unit, want) {
		v.Reject(fmt.Sprintf("%q is not a unit of this signal", written), "write "+sample(want))
		return nil
	}
	number = number * multiply / divide
	if want == signal.UnitRatio && (number < 0 || number > 1) {
		fix := "write " + sample(want)
		if unit == "" && number > 1 && number <= 100 {
			fix = fmt.Sprintf("write %g%%", number)
		}
		v.Reject(fmt.Sprintf("%g is not a ratio between 0 and 1", number), fix)
		return nil
	}
	if want == signal.UnitSeconds && unit == "" && number != 0 {
		v.Reject("a time needs a unit", "write "+sample(want))
		return nil
	}
	if want != "" && want != signal.UnitCelsius && number < 0 {
		v.Reject("is negative, which this signal never is", "write "+sample(want))
		return nil
	}
	return &number
}

// fits reports whether a written unit can stand for the signal's.
func fits(written, want string) bool {
	switch want {
	case signal.UnitBytesPerSecond:
		return written == want || written == signal.UnitBytes
	case signal.UnitTokensPerSecond, signal.UnitRequestsPerSecond:
		return written == signal.UnitPerSecond
	}
	return written == want
}

// scale turns a written unit into the base unit: multiply by the one, then divide by the other, so
// that 7% is the float nearest to 0.07. unit is "" where none is written.
func scale(written string) (multiply, divide float64, unit string, ok bool) {
	base, perSecond := strings.CutSuffix(written, "/s")
	base = strings.TrimSpace(base)
	if size, ok := byteUnit(base); ok {
		if perSecond {
			return size, 1, signal.UnitBytesPerSecond, true
		}
		return size, 1, signal.UnitBytes, true
	}
	if perSecond {
		return 1, 1, signal.UnitPerSecond, base == ""
	}
	switch written {
	case "":
		return 1, 1, "", true
	case "%":
		return 1, 100, signal.UnitRatio, true
	case "W":
		return 1, 1, signal.UnitWatts, true
	case "kW":
		return 1000, 1, signal.UnitWatts, true
	case "°C", "C":
		return 1, 1, signal.UnitCelsius, true
	}
	if d, err := strictyaml.ParseDuration("1" + written); err == nil {
		return float64(d), float64(time.Second), signal.UnitSeconds, true
	}
	return 0, 0, "", false
}

func byteUnit(name string) (float64, bool) {
	switch name {
	case "B":
		return 1, true
	case "kB", "KB":
		return 1e3, true
	case "MB":
		return 1e6, true
	case "GB":
		return 1e9, true
	case "TB":
		return 1e12, true
	case "KiB", "Ki":
		return 1 << 10, true
	case "MiB", "Mi":
		return 1 << 20, true
	case "GiB", "Gi":
		return 1 << 30, true
	case "TiB", "Ti":
		return 1 << 40, true
	}
	return 0, false
}

func sample(unit string) string {
	switch unit {
	case signal.UnitRatio:
		return "a percentage such as 95%"
	case signal.UnitBytes:
		return "a size such as 8GiB"
	case signal.UnitBytesPerSecond:
		return "a rate such as 200MB/s"
	case signal.UnitSeconds:
		return "a time such as 300ms or 2s"
	case signal.UnitWatts:
		return "a power such as 300W"
	case signal.UnitCelsius:
		return "a temperature such as 85°C"
	case signal.UnitPerSecond, signal.UnitTokensPerSecond, signal.UnitRequestsPerSecond:
		return "a rate such as 5/s"
	case "":
		return "a number such as 0.2, or one with %, ms, s, GiB or W"
	}
	return "a number such as 4"
}
