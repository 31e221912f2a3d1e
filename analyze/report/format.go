package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/figures"
)

// noData stands where a value is missing; the reason follows below the table.
const noData = "no data"

// round keeps six significant digits: more than any reader uses, and few enough that the last bit
// of another processor's arithmetic doesn't show.
func round(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return 0
	}
	return r
}

// number rounds a value; what is no number is null.
func number(v *float64) *float64 {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	r := round(*v)
	return &r
}

func pair(v *[2]float64) *[2]float64 {
	if v == nil || number(&v[0]) == nil || number(&v[1]) == nil {
		return nil
	}
	return &[2]float64{round(v[0]), round(v[1])}
}

// instant turns unix seconds into a time, to the millisecond.
func instant(s *float64) *time.Time {
	if s == nil || math.IsNaN(*s) || math.IsInf(*s, 0) {
		return nil
	}
	t := time.UnixMilli(int64(math.Round(*s * 1000))).UTC()
	return &t
}

// clock writes a time to the second.
func clock(t *time.Time) string {
	if t == nil {
		return "at an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// significant writes a value with three significant digits, without an exponent.
func significant(v float64) string { return figures.Write(v, 3) }

// seconds writes a duration.
func seconds(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0 s"
	case a < 1e-3:
		return significant(v*1e6) + " µs"
	case a < 1:
		return significant(v*1e3) + " ms"
	case a < 600:
		return significant(v) + " s"
	default:
		return significant(v/60) + " min"
	}
}

// percent writes a share.
func percent(v float64) string { return significant(v*100) + " %" }

// interval writes a confidence interval of a share.
func interval(ci *[2]float64) string {
	if ci == nil {
		return noData
	}
	return significant(ci[0]*100) + "–" + percent(ci[1])
}

// size writes a number of bytes in binary units.
func size(v float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for math.Abs(v) >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	return significant(v) + " " + units[i]
}

// value writes a value in its unit.
func value(v float64, unit string) string {
	switch unit {
	case "seconds":
		return seconds(v)
	case "ratio":
		return percent(v)
	case "bytes":
		return size(v)
	case "bytes_per_second":
		return size(v) + "/s"
	case "requests_per_second", "tokens_per_second", "per_second":
		return significant(v) + "/s"
	case "watts":
		return significant(v) + " W"
	case "celsius":
		return significant(v) + " °C"
	}
	return significant(v)
}

// optional writes a value that may be missing.
func optional(v *float64, write func(float64) string) string {
	if v == nil {
		return noData
	}
	return write(*v)
}

// triple writes three quantiles; a dash for those that are missing.
func triple(q Quantiles) string {
	if q == (Quantiles{}) {
		return noData
	}
	part := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return seconds(*v)
	}
	return part(q.P50) + " / " + part(q.P95) + " / " + part(q.P99)
}

// short writes a reading: its mean, and its maximum where that differs.
func (r Reading) short() string {
	if r.Mean == nil {
		return noData
	}
	s := value(*r.Mean, r.Unit)
	if r.Max != nil {
		if most := value(*r.Max, r.Unit); most != s {
			s += " (" + most + ")"
		}
	}
	return s
}

// plain turns a catalogue name into words.
func plain(name string) string {
	if name == "littles_law" {
		return "Little's law"
	}
	return strings.ReplaceAll(name, "_", " ")
}

// capital begins a text with a capital letter.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

// verdictWord is a state in words.
func verdictWord(s verdict.State) string { return plain(string(s)) }

// counted writes a number of things.
func counted(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%s %ss", grouped(n), thing)
}

// grouped writes a whole number with thousands apart.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	if n < 0 {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// objectiveText says in words what an objective demands.
func objectiveText(o verdict.Objective) string {
	target := o.TargetText
	if target == "" {
		target = o.Target
	}
	switch o.Kind {
	case "latency":
		return fmt.Sprintf("%s of requests with %s ≤ %s", target, latencyName(o.Signal), seconds(o.Threshold))
	case "success":
		return target + " of requests answered in full"
	case "timeouts":
		return target + " of requests without a timeout"
	case "capacity":
		return fmt.Sprintf("no breach at or below concurrency %d", o.MinConcurrency)
	case "recovery":
		return "back to the baseline within " + seconds(o.Within)
	}
	name := plain(o.Signal)
	if name == "" {
		name = "its expression"
	}
	switch {
	case o.Max != nil:
		return fmt.Sprintf("%s at most %s", name, limit(o, *o.Max))
	case o.Min != nil:
		return fmt.Sprintf("%s at least %s", name, limit(o, *o.Min))
	}
	return name
}

// limit writes the limit of a gauge objective; a ratio as a percentage.
func limit(o verdict.Objective, v float64) string {
	if strings.HasSuffix(o.Signal, "_utilization") || strings.HasSuffix(o.Signal, "_usage") || strings.HasSuffix(o.Signal, "_ratio") {
		return percent(v)
	}
	return significant(v)
}

// latencyName is the short name of a latency signal.
func latencyName(signal string) string {
	switch signal {
	case "time_to_first_token":
		return "TTFT"
	case "request_duration":
		return "E2E"
	case "time_per_output_token":
		return "TPOT"
	}
	return plain(signal)
}
