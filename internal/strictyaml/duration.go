package strictyaml

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// unit is the length of a unit. A day has 24 hours and a week 7 days, as in Prometheus.
func unit(name string) (time.Duration, bool) {
	switch name {
	case "ns":
		return time.Nanosecond, true
	case "us", "µs", "μs":
		return time.Microsecond, true
	case "ms":
		return time.Millisecond, true
	case "s":
		return time.Second, true
	case "m":
		return time.Minute, true
	case "h":
		return time.Hour, true
	case "d":
		return 24 * time.Hour, true
	case "w":
		return 7 * 24 * time.Hour, true
	}
	return 0, false
}

var durationPart = regexp.MustCompile(`^\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([a-zA-Zµμ]*)`)

// ParseDuration parses a duration as people write it: 750ms, 1.5s, 2 m, 1h30m, 30d. It is exact:
// a fraction of a nanosecond is an error, not rounded. Zero needs no unit.
func ParseDuration(text string) (time.Duration, error) {
	rest := strings.TrimSpace(text)
	if rest == "0" {
		return 0, nil
	}
	if strings.HasPrefix(rest, "-") {
		return 0, fmt.Errorf("%s is negative", quote(text))
	}
	total := new(big.Rat)
	for first := true; rest != "" || first; first = false {
		part := durationPart.FindStringSubmatch(rest)
		if part == nil {
			return 0, fmt.Errorf("%s is not a duration", quote(text))
		}
		if part[2] == "" {
			return 0, fmt.Errorf("%s has no unit", quote(text))
		}
		u, ok := unit(part[2])
		if !ok {
			return 0, fmt.Errorf("%s has an unknown unit", quote(text))
		}
		if len(part[1]) > 40 {
			return 0, fmt.Errorf("%s is too long a number", quote(text))
		}
		number, ok := new(big.Rat).SetString(part[1])
		if !ok {
			return 0, fmt.Errorf("%s is not a duration", quote(text))
		}
		total.Add(total, number.Mul(number, new(big.Rat).SetInt64(int64(u))))
		rest = rest[len(part[0]):]
	}
	if !total.IsInt() {
		return 0, fmt.Errorf("%s is finer than a nanosecond", quote(text))
	}
	if total.Num().Cmp(big.NewInt(math.MaxInt64)) > 0 {
		return 0, fmt.Errorf("%s is too long", quote(text))
	}
	return time.Duration(total.Num().Int64()), nil
}

// durationFix suggests what was most likely meant.
func durationFix(text string) string {
	t := strings.TrimSpace(text)
	if _, err := ParseDuration(t + "s"); err == nil {
		return fmt.Sprintf("write the unit: %ss, %sms or %sm", t, t, t)
	}
	if lower := strings.ToLower(t); lower != t {
		if _, err := ParseDuration(lower); err == nil {
			return "write " + lower
		}
	}
	if part := durationPart.FindStringSubmatch(t); part != nil && len(part[0]) == len(t) {
		if short := shortUnit(strings.ToLower(part[2])); short != "" {
			return "write " + part[1] + short
		}
	}
	return "write a number with ms, s, m, h or d, such as 750ms, 30s or 2m"
}

// shortUnit is the unit meant by a longer name of it.
func shortUnit(name string) string {
	switch strings.TrimSuffix(name, "s") {
	case "msec", "milli", "millisecond", "milli_second":
		return "ms"
	case "sec", "second":
		return "s"
	case "min", "minute":
		return "m"
	case "hr", "hour":
		return "h"
	case "day":
		return "d"
	case "week":
		return "w"
	}
	return ""
}
