package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"firstbreach/internal/strictyaml"
)

// readShareGPT reads a file in the form of the ShareGPT data set: a list of conversations, each with
// its turns "from" human, gpt or system. Each human turn becomes one request, with the turns before it
// as they were recorded; the recorded answer is not used otherwise. Conversations without one are left out.
func readShareGPT(path string) ([]item, []strictyaml.Problem) {
	whole := func(message, fix string) []strictyaml.Problem {
		return []strictyaml.Problem{{File: path, Message: message, Fix: fix}}
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxPromptFile {
		return nil, whole(fmt.Sprintf("is larger than %d MiB", maxPromptFile>>20), "use a part of it")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, whole(fmt.Sprintf("can't be read: %v", plainCause(err)), "write the path of a ShareGPT file, relative to the plan")
	}
	var conversations []struct {
		Turns []struct {
			From  string `json:"from"`
			Value string `json:"value"`
		} `json:"conversations"`
	}
	if err := json.Unmarshal(b, &conversations); err != nil {
		line := 0
		if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
			line = 1 + strings.Count(string(b[:min(int(syntax.Offset), len(b))]), "\n")
		}
		p := whole("is not a list of conversations: "+err.Error(), `write [{"conversations": [{"from": "human", "value": "..."}]}]`)
		p[0].Line = line
		return nil, p
	}
	roles := map[string]string{"human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "assistant": "assistant", "system": "system"}
	var items []item
	for i, c := range conversations {
		var history []Message
		for _, turn := range c.Turns {
			role, ok := roles[turn.From]
			if !ok {
				return nil, whole(fmt.Sprintf("conversation %d has a turn from %q", i+1, turn.From), "write human, gpt or system")
			}
			if role == "user" && strings.TrimSpace(turn.Value) != "" {
				items = append(items, item{history: history[:len(history):len(history)], body: turn.Value})
			}
			history = append(history, Message{role, turn.Value})
		}
	}
	if len(items) == 0 {
		return nil, whole("holds no turn from human", `write [{"conversations": [{"from": "human", "value": "..."}]}]`)
	}
	return items, nil
}
