package verdict

import (
	"fmt"
	"strings"

	"firstbreach/internal/figures"
)

// words turns a catalogue name into plain words: time_to_first_token → time to first token.
func words(signal string) string { return strings.ReplaceAll(signal, "_", " ") }

// count writes a number of things.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// percent writes a share with up to three significant digits.
func percent(share float64) string { return figures.Write(share*100, 3) + " %" }

// inSeconds writes a time with three figures, or all of them where it is longer.
func inSeconds(s float64) string { return figures.Write(s, 3) + " s" }

// capital begins a sentence.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
