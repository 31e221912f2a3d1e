package wire

// openAICompletions is POST /v1/completions with stream:true: SSE.
type openAICompletions struct{}

func (openAICompletions) Name() string     { return "openai-completions" }
func (openAICompletions) Path() string     { return "/v1/completions" }
func (openAICompletions) framing() framing { return framedSSE }

func (openAICompletions) Body(r Request) []byte {
	body := openAIRequest(r)
	body.Prompt = r.Prompt
	return marshal(body)
}

func (openAICompletions) parse(data []byte, e *event) bool { return parseOpenAI(data, e) }
