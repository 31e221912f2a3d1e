package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one fault of a file.
type Problem struct {
	File    string
	Line    int    // from 1; 0 where the fault has no line (a file that can't be read)
	Key     string // dotted, with indexes: objectives[2].target; "" for the file as a whole
	Message string // what is wrong
	Fix     string // what to write instead; "" where the message says it
}

// String is the problem on one line: file:line: key: message (fix: ...).
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.File == "" {
		b.WriteString("(no file)")
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	if p.Fix != "" {
		b.WriteString(" (fix: " + p.Fix + ")")
	}
	return oneLine.Replace(b.String())
}

// oneLine keeps a problem on its line, whatever text of the file it quotes.
var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

// Error is everything that is wrong with a file.
type Error struct {
	Problems []Problem // by line, never empty
}

// Error prints one line per problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Errorf makes an Error of one problem that has no line, such as a file that can't be read.
func Errorf(file, fix, format string, args ...any) *Error {
	return &Error{[]Problem{{File: file, Message: fmt.Sprintf(format, args...), Fix: fix}}}
}

// newError sorts the problems by line, the file's own before those of files that it names. Problems of
// one line stay in the order in which they were found.
func newError(file string, problems []Problem) *Error {
	sorted := slices.Clone(problems)
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		if own := (a.File == file); own != (b.File == file) {
			if own {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return &Error{sorted}
}

// Join puts the problems of several files, or of several readers of one file, into one *Error; it is nil
// where there are none. Any other error stands alone.
func Join(errs ...error) error {
	var all []Problem
	for _, err := range errs {
		var listed *Error
		switch {
		case errors.As(err, &listed):
			all = append(all, listed.Problems...)
		case err != nil:
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &Error{Problems: all}
}
