package rules

import (
	"math/big"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// The severities: a page wakes somebody, a ticket waits for the morning.
const (
	Page   = "critical"
	Ticket = "warning"
)

// decimal prints a ratio as people write it: at most six digits behind the point, none of them idle.
func decimal(r *big.Rat) string {
	text := r.FloatString(6)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// float is the number nearest to the ratio, for an expression.
func float(r *big.Rat) float64 { f, _ := r.Float64(); return f }

// span prints a window as PromQL does: 5m, 1h, 3d.
func span(d time.Duration) string { return model.Duration(d).String() }
