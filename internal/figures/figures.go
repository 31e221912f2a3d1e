// Package figures writes numbers for people to read.
package figures

import (
	"math"
	"strconv"
	"strings"
)

// mostDecimals is where a number that is close to nothing is cut.
const mostDecimals = 6

// Write writes a value with so many significant digits, at most six of them behind the point, and without an
// exponent: people don't read 1.2e+03. Whole numbers keep all their digits.
func Write(v float64, digits int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v+0, 'f', -1, 64)
	}
	decimals := digits - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	s := strconv.FormatFloat(v, 'f', min(max(decimals, 0), mostDecimals), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}
