package strictyaml

import "strings"

// Nearest is the known word that was most likely meant by word, or "" when none is near: at most one
// edit (insert, delete, change, swap of neighbours) per three letters, case and -/_ aside.
func Nearest(word string, known []string) string {
	w := fold(word)
	if len(w) > 64 {
		return ""
	}
	best, bestDistance := "", max(1, len(w)/3)+1
	for _, k := range known {
		if d := distance(w, fold(k)); d < bestDistance && d < len(k) {
			best, bestDistance = k, d
		}
	}
	return best
}

func fold(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// distance is the optimal string alignment distance (Damerau 1964, without repeated edits of one place).
func distance(a, b string) int {
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
