package slo

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// Target is the smallest good share of requests, as the exact decimal that was written. It is never
// kept as a float: 1 − 0.999 in binary is not 0.001, and a verdict, an alert and a dashboard must
// agree on the last request. Equal targets are == each other. The zero Target means that there is none.
type Target struct {
	percent string // canonical decimal between 0 and 100, without sign: "95", "99.9"
}

var percentage = regexp.MustCompile(`^([0-9]{1,3})(?:\.([0-9]{1,12}))?\s*%$`)

// ParseTarget parses a percentage between 0% and 100%, both excluded: "95%", "99.9 %".
func ParseTarget(text string) (Target, error) {
	text = strings.TrimSpace(text)
	m := percentage.FindStringSubmatch(text)
	if m == nil {
		return Target{}, fmt.Errorf("%q is not a percentage such as 95%% or 99.9%%", text)
	}
	whole, fraction := strings.TrimLeft(m[1], "0"), strings.TrimRight(m[2], "0")
	if whole == "" {
		whole = "0"
	}
	t := Target{whole}
	if fraction != "" {
		t.percent += "." + fraction
	}
	switch r := t.Rat(); {
	case r.Sign() == 0:
		return Target{}, errors.New("0% is met by requests that all fail")
	case r.Cmp(big.NewRat(1, 1)) == 0:
		return Target{}, errors.New("100% leaves no error budget: one bad request in any number would be a breach for good, and no number of requests could show that it is kept")
	case r.Cmp(big.NewRat(1, 1)) > 0:
		return Target{}, fmt.Errorf("%s is more than 100%%", text)
	}
	return t, nil
}

// IsZero reports whether there is no target.
func (t Target) IsZero() bool { return t.percent == "" }

// Equal reports whether two targets are the same share.
func (t Target) Equal(u Target) bool { return t == u }

// Text is the target as a percentage: "95%". "" when there is none.
func (t Target) Text() string {
	if t.IsZero() {
		return ""
	}
	return t.percent + "%"
}

// String is Text.
func (t Target) String() string { return t.Text() }

// Ratio is the target as the decimal text of a ratio: "0.95". "" when there is none.
func (t Target) Ratio() string { return shiftTwo(t.percent) }

// BadRatio is the allowed share of bad requests, 1 − target, as decimal text: "0.05". It is the error
// budget. "" when there is no target.
func (t Target) BadRatio() string {
	if t.IsZero() {
		return ""
	}
	bad := new(big.Rat).Sub(big.NewRat(1, 1), t.Rat())
	digits := 0
	if _, fraction, ok := strings.Cut(t.Ratio(), "."); ok {
		digits = len(fraction)
	}
	return bad.FloatString(digits)
}

// Float is the target's ratio as the nearest float64, for pictures and for statistics that are
// approximate anyway. To judge counts use Met.
func (t Target) Float() float64 {
	f, _ := t.Rat().Float64()
	return f
}

// Met reports whether good of total requests are at least the target, exactly. Of no requests nothing
// is known, so it is false then; it is also false without a target.
func (t Target) Met(good, total int64) bool {
	if t.IsZero() || total <= 0 {
		return false
	}
	return big.NewRat(good, total).Cmp(t.Rat()) >= 0
}

// MaxBad is the greatest number of bad requests among total with which the target is met: the whole
// part of total × (1 − target).
func (t Target) MaxBad(total int64) int64 {
	if t.IsZero() || total <= 0 {
		return 0
	}
	allowed := new(big.Rat).Sub(big.NewRat(1, 1), t.Rat())
	allowed.Mul(allowed, new(big.Rat).SetInt64(total))
	return new(big.Int).Quo(allowed.Num(), allowed.Denom()).Int64()
}

// Rat is the target as an exact ratio; 0 when there is none.
func (t Target) Rat() *big.Rat {
	r := new(big.Rat)
	if !t.IsZero() {
		r.SetString(t.Ratio()) // shiftTwo yields nothing else than a decimal
	}
	return r
}

// shiftTwo divides a decimal text by 100.
func shiftTwo(percent string) string {
	if percent == "" {
		return ""
	}
	whole, fraction, _ := strings.Cut(percent, ".")
	if len(whole) < 3 {
		whole = strings.Repeat("0", 3-len(whole)) + whole
	}
	cut := len(whole) - 2
	digits := strings.TrimRight(whole[cut:]+fraction, "0")
	if digits == "" {
		return whole[:cut]
	}
	return whole[:cut] + "." + digits
}
