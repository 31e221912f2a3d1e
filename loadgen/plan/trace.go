package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"firstbreach/internal/level"
	"firstbreach/internal/strictyaml"
)

// PhaseTrace is the replay of a recorded load. Like the others after the rounds it comes once.
const PhaseTrace Phase = "trace"

// TraceFormat is how a trace file is written.
type TraceFormat string

// The formats.
const (
	Mooncake TraceFormat = "mooncake" // JSON Lines: timestamp (ms), input_length, output_length, hash_ids
	Azure    TraceFormat = "azure"    // CSV: TIMESTAMP,ContextTokens,GeneratedTokens
)

// Trace is a recorded load that is replayed, after the rounds: requests at the times, and of the
// lengths, that a file says. The Rate of its HeldLoad is the mean.
type Trace struct {
	HeldLoad
	File        string
	Format      TraceFormat
	Speed       float64       // 2: in half the time
	MaxDuration time.Duration // of the replay; 0: the whole file
	Limit       int           // of requests; 0: all
	MaxInput    int           // longer prompts are cut; 0: none is
	MaxOutput   int           // longer answers are cut; 0: none is
	BlockTokens int           // of a hash ID
	IgnoreEOS   bool          // answers go on to their length
	Requests    []TraceRequest
	Busiest     float64 // requests in a second, over the ten seconds in which most are due
	Cut         int     // requests that MaxInput or MaxOutput shortened
}

// TraceRequest is one request of a trace.
type TraceRequest struct {
	At            time.Duration // since the first, as it is replayed
	Input, Output int           // tokens
	Blocks        []int64       // what the prompt begins with: two that begin with the same numbers begin with the same text
}

// The bounds of a trace.
const (
	defaultBlock = 512 // tokens of a hash ID of the traces that Mooncake published
	leastSpeed   = 0.001
	mostSpeed    = 1000
	busiestOver  = 10 * time.Second
)

// Duration is how long the replay lasts: from the first request to the last.
func (t *Trace) Duration() time.Duration { return t.Requests[len(t.Requests)-1].At }

// Longest is the place of the request with the most tokens.
func (t *Trace) Longest() (n int) {
	for i, q := range t.Requests {
		if most := t.Requests[n]; q.Input+q.Output > most.Input+most.Output {
			n = i
		}
	}
	return n
}

// MeanTokens are the mean lengths of prompts and answers.
func (t *Trace) MeanTokens() (input, output float64) {
	for _, q := range t.Requests {
		input, output = input+float64(q.Input), output+float64(q.Output)
	}
	n := float64(len(t.Requests))
	return input / n, output / n
}

// SHA256 is the hex digest over what is replayed: two replays with the same one sent the same work at
// the same times.
func (t *Trace) SHA256() string {
	h := sha256.New()
	for _, q := range t.Requests {
		for _, v := range []int64{int64(q.At), int64(q.Input), int64(q.Output), int64(len(q.Blocks))} {
			binary.Write(h, binary.BigEndian, v)
		}
		binary.Write(h, binary.BigEndian, q.Blocks)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// rates computes the mean and the busiest rate, the mean to four digits because it is a label.
func (t *Trace) rates() (mean, busiest float64) {
	mean, _ = strconv.ParseFloat(strconv.FormatFloat(float64(len(t.Requests))/t.Duration().Seconds(), 'g', 4, 64), 64)
	first, most := 0, 0
	for i, q := range t.Requests {
		for q.At-t.Requests[first].At >= busiestOver {
			first++
		}
		most = max(most, i-first+1)
	}
	return mean, math.Max(mean, float64(most)/busiestOver.Seconds())
}

// TracePrompts makes the prompts of a trace, each when it is needed: all of them would fill gigabytes.
type TracePrompts struct {
	trace *Trace
	set   PromptSet // for the nonces
}

// Prompts makes the prompts of a trace. Given the same arguments they are the same, to the byte.
func (t *Trace) Prompts(seed int64, run string) *TracePrompts {
	return &TracePrompts{t, PromptSet{seed: seed, run: run}}
}

// Prompt is the text of the n-th request. One with blocks has, after a nonce that all of the run share,
// a text for each block, so that a prefix cache finds what it would have found when the trace was
// recorded, and nothing of another run. One without begins with a nonce of its own.
func (p *TracePrompts) Prompt(n int) string {
	q := p.trace.Requests[n]
	if len(q.Blocks) == 0 {
		return p.set.nonce(PhaseTrace, 1, 1, n) + " " + syntheticBody(p.set.seed, n, q.Input)
	}
	parts := []string{p.set.nonce(PhaseTrace, 1, 1, -1)}
	left := q.Input
	for i, block := range q.Blocks {
		tokens := min(left, p.trace.BlockTokens)
		left -= tokens
		if i == 0 { // the nonce and a chat template's frame
			tokens = max(tokens-syntheticOverhead, 1)
		}
		parts = append(parts, words(rand.NewPCG(uint64(p.set.seed)^3<<60, uint64(block)), tokens))
	}
	return strings.Join(parts, " ")
}

// OutputTokens is the length of the answer to the n-th request.
func (p *TracePrompts) OutputTokens(n int) int { return p.trace.Requests[n].Output }

// trace reads the phase and its file.
func (r *reader) trace(v strictyaml.Value) {
	if !v.Present() {
		return
	}
	m := v.Map("file", "format", "speed", "max_duration", "limit", "max_in_flight", "max_input_tokens", "max_output_tokens", "block_tokens", "ignore_eos")
	if !v.IsMap() {
		return
	}
	api := r.plan.Target.API
	t := &Trace{Speed: 1, BlockTokens: defaultBlock, IgnoreEOS: api == OpenAIChat || api == OpenAICompletions}
	file := m.Get("file")
	name, ok := "", file.Require("name the trace, such as file: mooncake_trace.jsonl")
	if ok {
		name, ok = file.NonEmpty()
	}
	t.File = r.path(name)
	ok = r.traceFormat(m.Get("format"), t) && ok
	if s, given := m.Get("speed").Float(); given {
		if t.Speed = s; s < leastSpeed || s > mostSpeed {
			m.Get("speed").Reject(fmt.Sprintf("%g is not between %g and %d", s, leastSpeed, mostSpeed), "write 1 for the speed at which it was recorded, 2 for twice that")
			ok = false
		}
	}
	if d, given := m.Get("max_duration").PositiveDuration(); given {
		t.MaxDuration = d
	}
	readInt(m.Get("limit"), &t.Limit, 2, MaxRequests)
	r.maxInFlight(m.Get("max_in_flight"), &t.MaxInFlight)
	readInt(m.Get("max_input_tokens"), &t.MaxInput, 1, MaxTokens)
	readInt(m.Get("max_output_tokens"), &t.MaxOutput, 1, MaxTokens)
	readInt(m.Get("block_tokens"), &t.BlockTokens, 1, MaxTokens)
	readBool(m.Get("ignore_eos"), &t.IgnoreEOS)
	if ok && r.traceFile(file, t) && r.traceLoad(v, t) {
		r.plan.Trace = t
	}
}

// traceFormat reads the format, or takes it from the ending of the file's name.
func (r *reader) traceFormat(v strictyaml.Value, t *Trace) bool {
	if v.Present() {
		word, ok := v.OneOf(string(Mooncake), string(Azure))
		t.Format = TraceFormat(word)
		return ok
	}
	switch strings.ToLower(filepath.Ext(t.File)) {
	case ".jsonl":
		t.Format = Mooncake
	case ".csv":
		t.Format = Azure
	default:
		return v.Require("write format: mooncake for JSON Lines, format: azure for CSV")
	}
	return true
}

// traceFile reads the file and says what is wrong with it.
func (r *reader) traceFile(v strictyaml.Value, t *Trace) bool {
	problems := t.read(r.plan.Fixed.ContextLength)
	switch {
	case len(problems) == 0:
		return true
	case problems[0].Line == 0:
		v.Reject(fmt.Sprintf("%s %s", t.File, problems[0].Message), problems[0].Fix)
	default:
		v.Reject(fmt.Sprintf("%s has %s", t.File, count(len(problems), "broken line")), "mend the lines named below")
		r.doc.Add(problems...)
	}
	return false
}

// traceLoad computes the rates and holds them against the bounds of every other load.
func (r *reader) traceLoad(v strictyaml.Value, t *Trace) bool {
	n, d := len(t.Requests), t.Duration()
	if d < minPhase {
		v.Reject(fmt.Sprintf("replays %s in %v: too short to tell anything", count(n, "request"), d.Round(time.Millisecond)),
			fmt.Sprintf("take a longer part of the file, or lower speed, so that it lasts at least %v", minPhase))
		return false
	}
	t.Rate, t.Busiest = t.rates()
	if t.Busiest > r.plan.Environment.maxRate() {
		v.Reject(fmt.Sprintf("has %s requests per second in its busiest %v, more than %s", level.FormatRate(t.Busiest), busiestOver, r.allowed()),
			fmt.Sprintf("lower speed, which is %g", t.Speed))
		return false
	}
	return true
}
