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
	"strings"
	"unicode/utf8"

	"firstbreach/internal/strictyaml"
)

const (
	syntheticBodies = 16        // distinct bodies of a synthetic set
	maxPromptLine   = 16 << 20  // bytes of one line of a prompt file
	maxPromptFile   = 256 << 20 // bytes of all prompts of a file
	maxBroken       = 20        // broken lines that are named before reading stops
)

// PromptSet is the set of prompt bodies of a run. The same bodies in the same order are sent in every
// step, so that steps differ in their load and in nothing else; each prompt begins with a nonce of
// its own, so that no prefix cache makes a later step look faster than the first.
type PromptSet struct {
	bodies []string
	seed   int64
	run    string
}

// Open makes the prompt set: synthetic bodies from the seed, or those of the file. run is the run's
// ID; it goes into the nonces only, because two runs of one plan against one server must not meet in
// its cache either. Given the same arguments and file, the set is the same, to the byte.
func (p Prompts) Open(seed int64, run string) (*PromptSet, error) {
	set := &PromptSet{seed: seed, run: run}
	switch {
	case p.Synthetic != nil && p.File == "":
		if n := p.Synthetic.InputTokens; n < 1 || n > MaxTokens {
			return nil, fmt.Errorf("fixed.prompts: %d input tokens is not between 1 and %d", n, MaxTokens)
		}
		for i := range syntheticBodies {
			set.bodies = append(set.bodies, syntheticBody(seed, i, p.Synthetic.InputTokens))
		}
	case p.Synthetic == nil && p.File != "":
		bodies, problems := readPromptFile(p.File)
		if len(problems) > 0 {
			return nil, &strictyaml.Error{Problems: problems}
		}
		set.bodies = bodies
	default:
		return nil, errors.New("fixed.prompts: name exactly one of synthetic and file")
	}
	return set, nil
}

// Len is the number of distinct bodies.
func (s *PromptSet) Len() int { return len(s.bodies) }

// Body is the i-th body; past the last one the set begins again.
func (s *PromptSet) Body(i int) string {
	n := len(s.bodies)
	return s.bodies[(i%n+n)%n]
}

// Prompt is the text of request n of a step: a nonce, a space and the n-th body. n counts the
// requests of the step over all its slots.
func (s *PromptSet) Prompt(phase Phase, round, step, n int) string {
	return s.nonce(phase, round, step, n) + " " + s.Body(n)
}

// SHA256 is the hex digest over the bodies without their nonces: two runs with the same digest sent
// the same work.
func (s *PromptSet) SHA256() string {
	h := sha256.New()
	for _, b := range s.bodies {
		writeField(h, b)
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

// readPromptFile reads a JSON Lines file with a "prompt" text in each line; other fields are left to
// whoever wrote them, blank lines are skipped. A problem without a line is about the whole file.
func readPromptFile(path string) ([]string, []strictyaml.Problem) {
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
	var bodies []string
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
func promptOf(line []byte) (body, wrong string) {
	var object map[string]json.RawMessage
	if !utf8.Valid(line) {
		return "", "is not UTF-8"
	}
	if err := json.Unmarshal(line, &object); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return "", "is not JSON: " + err.Error()
		}
		return "", "is not a JSON object"
	}
	raw, ok := object["prompt"]
	if !ok {
		return "", "has no prompt"
	}
	if err := json.Unmarshal(raw, &body); err != nil || strings.TrimSpace(body) == "" {
		return "", "prompt is not a text with something in it"
	}
	return body, ""
}
