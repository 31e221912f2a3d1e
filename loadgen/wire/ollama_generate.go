package wire

// ollamaGenerate is POST /api/generate: NDJSON.
type ollamaGenerate struct{}

type ollamaGenerateBody struct {
	Model   string        `json:"model"`
	Prompt  string        `json:"prompt"`
	Stream  bool          `json:"stream"`
	Options ollamaOptions `json:"options"`
}

func (ollamaGenerate) Name() string     { return "ollama-generate" }
func (ollamaGenerate) Path() string     { return "/api/generate" }
func (ollamaGenerate) framing() framing { return framedNDJSON }

func (ollamaGenerate) Body(r Request) []byte {
	return marshal(ollamaGenerateBody{Model: r.Model, Prompt: r.Prompt, Stream: true, Options: ollamaRequestOptions(r)})
}

func (ollamaGenerate) parse(data []byte, e *event) bool { return parseOllama(data, e) }
