package analysis

import (
	"fmt"
	"slices"
	"strings"

	"firstbreach/analyze/compare"
	"firstbreach/analyze/verdict"
	"firstbreach/analyze/window"
)

// The exit statuses of a verdict that --fail-on names.
const (
	ExitBreach       = 10
	ExitRegression   = 15 // of a comparison
	ExitInconclusive = 20
	ExitInvalid      = 30 // invalid or no data
)

// FailOn is the set of verdicts that make a pipeline fail.
type FailOn []string

// ParseFailOn reads a list such as "breach,invalid".
func ParseFailOn(text string) (FailOn, error) {
	return parseFailOn(text, "breach", "inconclusive", "invalid")
}

// ParseFailOnCompared reads a list for a command that compares runs, such as "regression,invalid".
func ParseFailOnCompared(text string) (FailOn, error) {
	return parseFailOn(text, "regression", "inconclusive", "invalid")
}

// ParseFailOnWindow reads a list for a stretch of production, such as "breach,no_data".
func ParseFailOnWindow(text string) (FailOn, error) {
	return parseFailOn(text, string(window.Breach), string(window.Undecided), string(window.NoData))
}

func parseFailOn(text string, known ...string) (FailOn, error) {
	var set FailOn
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		switch {
		case word == "":
		case !slices.Contains(known, word):
			return nil, fmt.Errorf("--fail-on: %q is no verdict; write a list of %s", word, strings.Join(known, ", "))
		default:
			set = append(set, word)
		}
	}
	return set, nil
}

// Exit is the exit status for a verdict: 0 unless the set names it.
func (f FailOn) Exit(s verdict.State) int {
	switch {
	case s == verdict.Breach && slices.Contains(f, "breach"):
		return ExitBreach
	case s == verdict.Inconclusive && slices.Contains(f, "inconclusive"):
		return ExitInconclusive
	case (s == verdict.Invalid || s == verdict.NoData) && slices.Contains(f, "invalid"):
		return ExitInvalid
	}
	return 0
}

// ExitCompared is the exit status for a comparison: a run that can't be compared is as invalid.
func (f FailOn) ExitCompared(o compare.Outcome) int {
	switch {
	case o == compare.Regression && slices.Contains(f, "regression"):
		return ExitRegression
	case o == compare.Inconclusive && slices.Contains(f, "inconclusive"):
		return ExitInconclusive
	case o == compare.NotComparable && slices.Contains(f, "invalid"):
		return ExitInvalid
	}
	return 0
}

// ExitWindow is the exit status for a stretch of production.
func (f FailOn) ExitWindow(s window.State) int {
	if !slices.Contains(f, string(s)) {
		return 0
	}
	return map[window.State]int{window.Breach: ExitBreach, window.Undecided: ExitInconclusive, window.NoData: ExitInvalid}[s]
}
