package strictyaml

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// scalar reads a plain or quoted scalar as written.
func (v Value) scalar(want string) (text string, quoted, ok bool) {
	n, ok := v.read()
	if !ok {
		return "", false, false
	}
	switch x := n.(type) {
	case *ast.StringNode:
		return x.Value, isQuoted(x), true
	case *ast.LiteralNode:
		return x.Value.Value, true, true
	case *ast.MappingNode, *ast.SequenceNode:
		v.Reject("must be "+want+", not "+describe(n), "")
		return "", false, false
	}
	return n.GetToken().Value, false, true
}

func isQuoted(n *ast.StringNode) bool {
	t := n.GetToken().Type
	return t == token.SingleQuoteType || t == token.DoubleQuoteType
}

// Scalar is a scalar's text as written, number or not.
func (v Value) Scalar() (string, bool) {
	text, _, ok := v.scalar("one value")
	return text, ok
}

// Text reads text. A plain number or boolean is refused instead of converted: whoever wrote
// "owner: 007" or "model: 1.10" would get something else back.
func (v Value) Text() (string, bool) {
	n, ok := v.read()
	if !ok {
		return "", false
	}
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		text, _, ok := v.scalar("text")
		return text, ok
	case *ast.MappingNode, *ast.SequenceNode:
		v.Reject("must be text, not "+describe(n), "")
		return "", false
	}
	v.Reject("must be text, not "+describe(n), "put it in quotes: "+strconv.Quote(shorten(n.GetToken().Value)))
	return "", false
}

// NonEmpty reads text that has at least one character which isn't white space, trimmed.
func (v Value) NonEmpty() (string, bool) {
	text, ok := v.Text()
	if !ok {
		return "", false
	}
	if text = strings.TrimSpace(text); text == "" {
		v.Reject("is empty", "write a text, or remove the key")
		return "", false
	}
	return text, true
}

// OneOf reads one of a few words.
func (v Value) OneOf(words ...string) (string, bool) {
	text, ok := v.Text()
	if !ok {
		return "", false
	}
	if slices.Contains(words, text) {
		return text, true
	}
	fix := "write one of " + strings.Join(words, ", ")
	if near := Nearest(text, words); near != "" {
		fix = "did you mean " + near + "?"
	}
	v.Reject("unknown value "+quote(text), fix)
	return "", false
}

// Int reads a whole number.
func (v Value) Int() (int, bool) {
	n, ok := v.Int64()
	if ok && int64(int(n)) != n {
		v.Reject(fmt.Sprintf("%d is too large", n), "")
		return 0, false
	}
	return int(n), ok
}

var wholeNumber = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)
var leadingNumber = regexp.MustCompile(`^[-+]?[0-9]+`)

// Int64 reads a whole number in decimal notation.
func (v Value) Int64() (int64, bool) {
	text, quoted, ok := v.scalar("a whole number")
	if !ok {
		return 0, false
	}
	if quoted || !wholeNumber.MatchString(text) {
		fix := "write a number such as 8"
		if digits := leadingNumber.FindString(strings.TrimSpace(text)); digits != "" {
			fix = "write " + trimZeros(digits)
			if quoted {
				fix += " without quotes"
			}
		}
		v.Reject(quote(text)+" is not a whole number", fix)
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		v.Reject(quote(text)+" is too large", "")
		return 0, false
	}
	return n, true
}

func trimZeros(digits string) string {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return "a smaller number"
	}
	return strconv.FormatInt(n, 10)
}

// Float reads a plain finite number.
func (v Value) Float() (float64, bool) {
	text, quoted, ok := v.scalar("a number")
	if !ok {
		return 0, false
	}
	f, err := parseDecimal(text)
	if quoted || err != nil {
		v.Reject(quote(text)+" is not a number", "write a number such as 0.2, without unit and quotes")
		return 0, false
	}
	return f, true
}

// Share reads a share as a ratio 0–1: 50% or 0.5.
func (v Value) Share() (float64, bool) {
	text, _, ok := v.scalar("a share such as 50%")
	if !ok {
		return 0, false
	}
	number, percent := strings.CutSuffix(text, "%")
	f, err := parseDecimal(strings.TrimSpace(number))
	if err != nil {
		v.Reject(quote(text)+" is not a share", "write a percentage such as 50%")
		return 0, false
	}
	if percent {
		f /= 100
	}
	if f < 0 || f > 1 {
		v.Reject(quote(text)+" is not between 0% and 100%", "write a percentage such as 50%")
		return 0, false
	}
	return f, true
}

// Measure reads a number with an optional unit, both as written: 95%, 8GiB, 300 ms, 4. The unit is
// the caller's to judge.
func (v Value) Measure() (number float64, unit string, ok bool) {
	text, _, ok := v.scalar("a number")
	if !ok {
		return 0, "", false
	}
	trimmed := strings.TrimSpace(text)
	end := len(measureNumber.FindString(trimmed))
	f, err := parseDecimal(trimmed[:end])
	if err != nil {
		v.Reject(quote(text)+" is not a number", "write a number, with its unit if it has one")
		return 0, "", false
	}
	return f, strings.TrimSpace(trimmed[end:]), true
}

var measureNumber = regexp.MustCompile(`^[-+]?[0-9]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?`)
var decimal = regexp.MustCompile(`^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$`)

// parseDecimal parses a finite decimal number, and nothing else that strconv takes (hex, inf, underscores).
func parseDecimal(text string) (float64, error) {
	if !decimal.MatchString(text) {
		return 0, fmt.Errorf("%s is not a number", quote(text))
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%s is too large", quote(text))
	}
	return f, nil
}

// Duration reads a time span that isn't negative: 750ms, 1.5s, 2m, 1h30m, 30d. Zero needs no unit.
func (v Value) Duration() (time.Duration, bool) {
	text, _, ok := v.scalar("a duration such as 750ms, 30s or 2m")
	if !ok {
		return 0, false
	}
	d, err := ParseDuration(text)
	if err != nil {
		v.Reject(err.Error(), durationFix(text))
		return 0, false
	}
	return d, true
}

// PositiveDuration is Duration without zero.
func (v Value) PositiveDuration() (time.Duration, bool) {
	d, ok := v.Duration()
	if ok && d == 0 {
		v.Reject("must be greater than 0", "write a duration such as 30s")
		return 0, false
	}
	return d, ok
}

// quote puts text of the file into a message, at a bounded length.
func quote(text string) string { return strconv.Quote(shorten(text)) }

func shorten(text string) string {
	const most = 60
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}
