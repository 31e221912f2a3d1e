package wire

import "fmt"

// Request is one generation request, the same for every dialect.
type Request struct {
	Model         string
	Messages      []Message // what was said before the prompt; only chat dialects can send it
	Prompt        string
	OutputTokens  int  // the most tokens to generate; 0 leaves it to the server
	IgnoreEOS     bool // go on to OutputTokens; what Ollama has nothing for
	ContextLength int  // Ollama's num_ctx; 0 leaves it to the server. Other servers fix it at their start
	Temperature   float64
	Seed          int64
	Priority      *int // of servers that schedule by it, as vLLM can; nil: not sent
}

// Dialect is one API of one family of servers.
type Dialect interface {
	// Name is the name that a plan gives it.
	Name() string
	// Path is the path of the endpoint below the base URL.
	Path() string
	// Body is the request body, always asking for a stream and for usage where that is an option.
	Body(Request) []byte

	framing() framing
	// parse reads one object of a stream, or a whole answer, and reports whether it is JSON.
	parse(data []byte, e *event) bool
}

// framing is how a stream is cut into objects.
type framing int

const (
	framedSSE framing = iota
	framedNDJSON
)

func dialects() []Dialect {
	return []Dialect{openAIChat{}, openAICompletions{}, ollamaChat{}, ollamaGenerate{}}
}

// ByName returns the dialect with this name.
func ByName(api string) (Dialect, error) {
	names := ""
	for _, d := range dialects() {
		if d.Name() == api {
			return d, nil
		}
		names += ", " + d.Name()
	}
	return nil, fmt.Errorf("unknown api %q: use one of %s", api, names[2:])
}
