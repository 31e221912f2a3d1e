package sim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// call is what the engine has to know of a request, whatever the API.
type call struct {
	model   string
	prompt  int  // tokens: words, as split by white space
	limit   int  // tokens of the answer
	limited bool // the request named the limit
	stream  bool
	usage   bool // OpenAI: a usage chunk ends the stream
}

// answer is what a dialect has to know to write one.
type answer struct {
	call
	number  int
	model   string // as JSON
	created time.Time
	natural bool
	stamp   bool
	sent    int64 // CLOCK_MONOTONIC of the write under way
}

// dialect is the wire form of one API. The methods that take buf append to it.
type dialect interface {
	// read takes a request body apart.
	read(body []byte) (call, error)
	// media is the Content-Type of a streamed answer.
	media() string
	// early reports whether HeadersAuto means at once.
	early() bool
	// token is the event of the token with this index, from 0, with what comes before the first.
	token(buf []byte, a *answer, index int) []byte
	// finish is everything after the last token.
	finish(buf []byte, a *answer, p Progress) []byte
	// unfinished ends a stream with its terminal marker but no finish reason.
	unfinished(buf []byte, a *answer) []byte
	// failed ends a stream with an error event.
	failed(buf []byte, t trouble) []byte
	// whole is the body of an answer that is not streamed.
	whole(a *answer, p Progress) []byte
	// refusal is the body of an error status.
	refusal(t trouble) []byte
}

// trouble is an error as a server tells it.
type trouble struct {
	status  int
	message string
	kind    string // OpenAI's "type"
	param   string
}

// countWords is the simulated tokenizer: a token is a run of characters between white space.
func countWords(text string) int { return len(strings.Fields(text)) }

// text is message content: a string, or a list of parts of which those with a text count.
type text struct{ words int }

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		t.words = countWords(s)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return fmt.Errorf("content is neither a string nor a list of parts")
	}
	for _, p := range parts {
		t.words += countWords(p.Text)
	}
	return nil
}

// message is one message of a chat, in both APIs.
type message struct {
	Content text `json:"content"`
}

func wordsOf(messages []message) int {
	n := 0
	for _, m := range messages {
		n += m.Content.words
	}
	return n
}

// word returns the text of a token: always the same for a request number and an index, never empty,
// and plain enough to stand in JSON as it is.
func word(number, index int) string {
	words := [...]string{
		"alder", "birch", "cedar", "dogwood", "elm", "fir", "gum", "hazel", "ironwood", "juniper", "kapok",
		"larch", "maple", "nutmeg", "oak", "pine", "quince", "rowan", "spruce", "teak", "umbrella", "viburnum", "willow",
	}
	return words[(number*7+index)%len(words)]
}

// appendText appends the token's text, with a space before every one but the first.
func appendText(buf []byte, number, index int) []byte {
	if index > 0 {
		buf = append(buf, ' ')
	}
	return append(buf, word(number, index)...)
}

// appendStamp appends the send stamp as a further member of an object.
func appendStamp(buf []byte, a *answer) []byte {
	if !a.stamp {
		return buf
	}
	buf = append(buf, `,"sim_sent_ns":`...)
	return strconv.AppendInt(buf, a.sent, 10)
}
