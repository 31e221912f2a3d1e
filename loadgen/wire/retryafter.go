package wire

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds the hint; a server that asks for more than a week means "never".
const maxRetryAfter = 7 * 24 * time.Hour

// retryAfter reads a server's hint when to come back: retry-after-ms before Retry-After, which is
// seconds (fractions are sent, though not allowed) or a date, counted from the response's own Date
// so that the clocks of the two machines don't matter. It returns nil where there is no usable hint.
func retryAfter(h http.Header, now time.Time) *time.Duration {
	if d := parseNumber(h.Get("Retry-After-Ms"), time.Millisecond); d != nil {
		return d
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if d := parseNumber(value, time.Second); d != nil {
		return d
	}
	when, err := http.ParseTime(value)
	if err != nil {
		return nil
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	d := min(max(when.Sub(now), 0), maxRetryAfter)
	return &d
}

func parseNumber(value string, unit time.Duration) *time.Duration {
	v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || v < 0 || math.IsNaN(v) {
		return nil
	}
	d := maxRetryAfter
	if f := v * float64(unit); f < float64(maxRetryAfter) {
		d = time.Duration(f)
	}
	return &d
}
