package plan

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"firstbreach/internal/strictyaml"
)

const (
	syntheticBodies   = 16        // distinct bodies of a synthetic set
	distributedBodies = 256       // where their lengths differ or groups share a beginning
	maxPromptLine     = 16 << 20  // bytes of one line of a prompt file
	maxPromptFile     = 256 << 20 // bytes of all prompts of a file
	maxBroken         = 20        // broken lines that are named before reading stops
)

// PromptSet is the set of prompt bodies of a run. The same bodies in the same order are sent in every
// step, so that steps differ in their load and in nothing else; each prompt begins with a nonce of
// its own, so that no prefix cache makes a later step look faster than the first.
type PromptSet struct {
	items []item
	seed  int64
	run   string
}

// item is the work of one request.
type item struct {
	history      []Message // turns before
	prefix       string    // what other prompts begin with too; the nonce comes after it
	body         string
	outputTokens int // 0: as the plan says
}

// Open makes the prompt set: synthetic bodies from the seed, or those of the file. run is the run's
// ID; it goes into the nonces only, because two runs of one plan against one server must not meet in
// its cache either. Given the same arguments and file, the set is the same, to the byte.
func (p Prompts) Open(seed int64, run string) (*PromptSet, error) {
	set := &PromptSet{seed: seed, run: run}
	var problems []strictyaml.Problem
	switch {
	case p.Synthetic != nil && p.File == "" && p.ShareGPT == "":
		if n := p.Synthetic.InputTokens; n < 1 || n > MaxTokens {
			return nil, fmt.Errorf("fixed.prompts: %d input tokens is not between 1 and %d", n, MaxTokens)
		}
		set.items = p.Synthetic.items(seed)
	case p.Synthetic == nil && p.File != "" && p.ShareGPT == "":
		set.items, problems = readPromptFile(p.File)
	case p.Synthetic == nil && p.File == "" && p.ShareGPT != "":
		set.items, problems = readShareGPT(p.ShareGPT)
	default:
		return nil, errors.New("fixed.prompts: name exactly one of synthetic, file and sharegpt")
	}
	if len(problems) > 0 {
		return nil, &strictyaml.Error{Problems: problems}
	}
	return set, nil
}

// Len is the number of distinct bodies.
func (s *PromptSet) Len() int { return len(s.items) }

func (s *PromptSet) item(i int) item {
	n := len(s.items)
	return s.items[(i%n+n)%n]
}

// Conversation is what is said before the prompt of request n of a step; nil for a prompt that stands
// alone. The nonce is in its first turn that isn't a system's, and Prompt has none then.
func (s *PromptSet) Conversation(phase Phase, round, step, n int) []Message {
	it := s.item(n)
	for i, turn := range it.history {
		if turn.Role != "system" {
			turns := slices.Clone(it.history)
			turns[i].Content = s.nonce(phase, round, step, n) + " " + turn.Content
			return turns
		}
	}
	return it.history
}

// OutputTokens is the length of the answer to request n of a step where its line says one; else 0.
func (s *PromptSet) OutputTokens(n int) int { return s.item(n).outputTokens }

// Body is the i-th body; past the last one the set begins again.
func (s *PromptSet) Body(i int) string {
	it := s.item(i)
	return it.prefix + it.body
}

// Prompt is the text of request n of a step: a nonce, a space and the n-th body; what it shares with
// others comes before the nonce. n counts the requests of the step over all its slots.
func (s *PromptSet) Prompt(phase Phase, round, step, n int) string {
	it := s.item(n)
	for _, turn := range it.history {
		if turn.Role != "system" {
			return it.body // the nonce is in the conversation
		}
	}
	return it.prefix + s.nonce(phase, round, step, n) + " " + it.body
}

// SHA256 is the hex digest over the bodies without their nonces: two runs with the same digest sent
// the same work.
func (s *PromptSet) SHA256() string {
	h := sha256.New()
	for _, it := range s.items {
		writeField(h, it.prefix+it.body)
		for _, turn := range it.history {
			writeField(h, turn.Role)
			writeField(h, turn.Content)
		}
		if it.outputTokens > 0 {
			writeField(h, fmt.Sprint("output_tokens ", it.outputTokens))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// nonceDigits is the length of a nonce. Two of a million nonces are equal with a probability of
// about 5e-7.
const nonceDigits = 18

// nonce tells one request's prompt from every other's. It is made of decimal digits because the
// tokenizers in use split digits one by one or in threes: every nonce then costs the same number of
// tokens, which hexadecimal or words would not.
func (s *PromptSet) nonce(phase Phase, round, step, n int) string {
	h := sha256.New()
	writeField(h, "nonce")
	writeField(h, s.run)
	writeField(h, string(phase))
	for _, v := range []int64{s.seed, int64(round), int64(step), int64(n)} {
		binary.Write(h, binary.BigEndian, v)
	}
	const modulus = 1e18 // 10^nonceDigits
	return fmt.Sprintf("%0*d", nonceDigits, binary.BigEndian.Uint64(h.Sum(nil))%modulus)
}

// writeField writes a text with its length before it, so that no two lists of texts look alike.
func writeField(w io.Writer, text string) {
	binary.Write(w, binary.BigEndian, uint64(len(text)))
	io.WriteString(w, text)
}

// syntheticOverhead is about what a prompt has in tokens beside its words: the nonce and a chat
// template's frame.
const syntheticOverhead = 14

// lead asks for a long answer: a model that stops after three words would make the load of a step
// depend on its mood.
const lead = "Continue this list of words:"
const leadTokens = 6

// items makes the prompts of a synthetic set.
func (y Synthetic) items(seed int64) []item {
	bodies := syntheticBodies
	if y.Lengths != nil || y.SharedGroups > 1 {
		bodies = distributedBodies
	}
	random := rand.New(rand.NewPCG(uint64(seed), 1<<32))
	items := make([]item, bodies)
	for i := range items {
		tokens := y.InputTokens
		if y.Lengths != nil {
			tokens = y.Lengths.draw(random)
		}
		if y.SharedTokens > 0 {
			group := i % y.SharedGroups
			items[i].prefix = words(rand.NewPCG(uint64(seed), uint64(2<<32+group)), min(y.SharedTokens, tokens-1)) + "\n"
			tokens -= y.SharedTokens
		}
		items[i].body = syntheticBody(seed, i, tokens)
	}
	return items
}

// words are n of the list, drawn at random.
func words(random *rand.PCG, n int) string {
	list := wordList()
	drawn := make([]string, max(n, 0))
	for i := range drawn {
		drawn[i] = list[random.Uint64()%uint64(len(list))]
	}
	return strings.Join(drawn, " ")
}

// syntheticBody makes one body from common short words, which are about one token each for the
// tokenizers in use.
func syntheticBody(seed int64, index, tokens int) string {
	random := rand.NewPCG(uint64(seed), uint64(index))
	words, n := wordList(), tokens-syntheticOverhead
	var b strings.Builder
	if n > 2*leadTokens {
		b.WriteString(lead)
		n -= leadTokens
	}
	for range max(n, 1) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[random.Uint64()%uint64(len(words))])
	}
	return b.String()
}

// readPromptFile reads a JSON Lines file with a "prompt" text or "messages" in each line, and the
// "output_tokens" of its answer where that is there; other fields are left to
// whoever wrote them, blank lines are skipped. A problem without a line is about the whole file.
func readPromptFile(path string) ([]item, []strictyaml.Problem) {
	whole := func(message, fix string) []strictyaml.Problem {
		return []strictyaml.Problem{{File: path, Message: message, Fix: fix}}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, whole(fmt.Sprintf("can't be read: %v", plainCause(err)), "write the path of a JSON Lines file, relative to the plan")
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, whole("is a folder", "write the path of a JSON Lines file")
	}
	var bodies []item
	var problems []strictyaml.Problem
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, 64<<10), maxPromptLine)
	size, number := 0, 0
	for lines.Scan() && len(problems) < maxBroken {
		number++
		if size += len(lines.Bytes()); size > maxPromptFile {
			return nil, whole(fmt.Sprintf("is larger than %d MiB", maxPromptFile>>20), "use a part of it")
		}
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		body, wrong := promptOf(lines.Bytes())
		if wrong != "" {
			problems = append(problems, strictyaml.Problem{File: path, Line: number, Message: wrong, Fix: `write {"prompt": "..."}`})
			continue
		}
		bodies = append(bodies, body)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		problems = append(problems, strictyaml.Problem{File: path, Line: number + 1, Message: fmt.Sprintf("is longer than %d MiB", maxPromptLine>>20), Fix: "write one JSON object a line"})
	case err != nil:
		return nil, whole(fmt.Sprintf("can't be read: %v", plainCause(err)), "write the path of a JSON Lines file")
	case len(bodies) == 0 && len(problems) == 0:
		return nil, whole("holds no prompt", `write one {"prompt": "..."} a line`)
	}
	return bodies, problems
}

// promptOf reads one line; wrong says what is wrong with it.
func promptOf(line []byte) (it item, wrong string) {
	var object map[string]json.RawMessage
	if !utf8.Valid(line) {
		return it, "is not UTF-8"
	}
	if err := json.Unmarshal(line, &object); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return it, "is not JSON: " + err.Error()
		}
		return it, "is not a JSON object"
	}
	if raw, ok := object["output_tokens"]; ok {
		if err := json.Unmarshal(raw, &it.outputTokens); err != nil || it.outputTokens < 1 || it.outputTokens > MaxTokens {
			return it, fmt.Sprintf("output_tokens is not a whole number from 1 to %d", MaxTokens)
		}
	}
	raw, single := object["prompt"]
	turns, several := object["messages"]
	switch {
	case single && several:
		return it, "has both prompt and messages"
	case several:
		return it, it.converse(turns)
	case !single:
		return it, "has no prompt"
	}
	if err := json.Unmarshal(raw, &it.body); err != nil || strings.TrimSpace(it.body) == "" {
		return it, "prompt is not a text with something in it"
	}
	return it, ""
}

// converse reads the turns of a conversation, the last of which is the prompt.
func (it *item) converse(raw json.RawMessage) (wrong string) {
	var turns []Message
	if err := json.Unmarshal(raw, &turns); err != nil || len(turns) == 0 {
		return "messages is not a list of {role, content}, both texts"
	}
	for i, turn := range turns {
		switch {
		case turn.Role != "system" && turn.Role != "user" && turn.Role != "assistant":
			return fmt.Sprintf("message %d has the role %q, which is not system, user or assistant", i+1, turn.Role)
		case strings.TrimSpace(turn.Content) == "":
			return fmt.Sprintf("message %d is empty", i+1)
		}
	}
	last := turns[len(turns)-1]
	if last.Role != "user" {
		return "the last message is not a user's"
	}
	it.history, it.body = turns[:len(turns)-1], last.Content
	return ""
}
