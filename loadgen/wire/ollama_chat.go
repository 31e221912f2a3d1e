package wire

// ollamaChat is POST /api/chat: NDJSON.
type ollamaChat struct{}

type ollamaChatBody struct {
	Model    string        `json:"model"`
	Messages []Message     `json:"messages"`
	Stream   bool          `json:"stream"`
	Options  ollamaOptions `json:"options"`
}

func (ollamaChat) Name() string     { return "ollama-chat" }
func (ollamaChat) Path() string     { return "/api/chat" }
func (ollamaChat) framing() framing { return framedNDJSON }

func (ollamaChat) Body(r Request) []byte {
	return marshal(ollamaChatBody{
		Model:    r.Model,
		Messages: conversation(r),
		Stream:   true,
		Options:  ollamaRequestOptions(r),
	})
}

func (ollamaChat) parse(data []byte, e *event) bool { return parseOllama(data, e) }
