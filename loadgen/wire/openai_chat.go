package wire

// openAIChat is POST /v1/chat/completions with stream:true: SSE.
type openAIChat struct{}

func (openAIChat) Name() string     { return "openai-chat" }
func (openAIChat) Path() string     { return "/v1/chat/completions" }
func (openAIChat) framing() framing { return framedSSE }

func (openAIChat) Body(r Request) []byte {
	body := openAIRequest(r)
	body.Messages = conversation(r)
	return marshal(body)
}

func (openAIChat) parse(data []byte, e *event) bool { return parseOpenAI(data, e) }
