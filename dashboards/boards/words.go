package boards

import "strings"

// abbreviations are written in capitals in a title.
var abbreviations = map[string]string{"kv": "KV", "gpu": "GPU", "cpu": "CPU", "itl": "ITL", "tpot": "TPOT"}

// title makes a signal's name readable: kv_cache_usage becomes KV cache usage.
func title(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words {
		if a, ok := abbreviations[w]; ok {
			words[i] = a
		} else if i == 0 {
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
