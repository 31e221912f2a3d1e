package verdict

import (
	"fmt"
	"strconv"
	"strings"
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
func percent(share float64) string {
	return strconv.FormatFloat(share*100, 'g', 3, 64) + " %"
}

// list writes numbers as people do: 1, 2 and 4.
func list(ns []int) string {
	s := make([]string, len(ns))
	for i, n := range ns {
		s[i] = strconv.Itoa(n)
	}
	if len(s) < 2 {
		return strings.Join(s, "")
	}
	return strings.Join(s[:len(s)-1], ", ") + " and " + s[len(s)-1]
}
