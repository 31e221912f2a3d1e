package boards

import "strings"

// title makes a signal's name readable: kv_cache_usage becomes KV cache usage.
func title(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words {
		switch {
		case w == "kv", w == "gpu", w == "cpu":
			words[i] = strings.ToUpper(w)
		case i == 0:
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, " ")
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
