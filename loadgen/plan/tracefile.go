package plan

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"firstbreach/internal/strictyaml"
)

// recorded is one line of a trace file. What a line says of time counts from an origin of its own.
type recorded struct {
	at            time.Duration
	input, output int
	blocks        []int64
}

// wrong says what is wrong with a line, and what to write; the zero one that nothing is.
type wrong struct{ what, fix string }

// tracer reads the lines of one format.
type tracer interface {
	// line reads one line. It is false for one that is no request, such as the names of columns.
	line(text string) (recorded, bool, wrong)
}

// read fills Requests from the file, up to the limits. context is the longest prompt and answer
// together, 0 where nobody said. A problem without a line is about the whole file.
func (t *Trace) read(context int) []strictyaml.Problem {
	whole := func(message, fix string) []strictyaml.Problem {
		return []strictyaml.Problem{{File: t.File, Message: message, Fix: fix}}
	}
	const name = "write the path of a trace file, relative to the plan"
	f, err := os.Open(t.File)
	if err != nil {
		return whole(fmt.Sprintf("can't be read: %v", plainCause(err)), name)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return whole("is a folder", name)
	}
	r := traceReader{trace: t, context: context, form: mooncakeLines{t.BlockTokens}}
	if t.Format == Azure {
		r.form = &azureLines{}
	}
	var problems []strictyaml.Problem
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, 64<<10), maxPromptLine)
	number := 0
	for !r.enough && lines.Scan() && len(problems) < maxBroken {
		number++
		if w := r.take(strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))); w.what != "" {
			problems = append(problems, strictyaml.Problem{File: t.File, Line: number, Message: w.what, Fix: w.fix})
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		problems = append(problems, strictyaml.Problem{File: t.File, Line: number + 1, Message: fmt.Sprintf("is longer than %d MiB", maxPromptLine>>20), Fix: "write one request a line"})
	case err != nil:
		return whole(fmt.Sprintf("can't be read: %v", plainCause(err)), name)
	case len(t.Requests) == 0 && len(problems) == 0:
		return whole("holds no request", "write one a line")
	}
	return problems
}

// traceReader puts lines into a trace.
type traceReader struct {
	trace   *Trace
	context int
	form    tracer
	begun   bool          // there was a request
	origin  time.Duration // of the first
	last    time.Duration // of the one before
	enough  bool          // a limit of the trace is reached
}

// take reads one line; blank ones are skipped.
func (r *traceReader) take(text string) wrong {
	if text == "" {
		return wrong{}
	}
	line, is, w := r.form.line(text)
	switch {
	case w.what != "" || !is:
		return w
	case !r.begun:
		r.begun, r.origin = true, line.at
	case line.at < r.last:
		return wrong{fmt.Sprintf("comes %v before the line above it", r.last-line.at), "sort the trace by its times"}
	}
	r.last = line.at
	t := r.trace
	at := time.Duration(float64(line.at-r.origin) / t.Speed)
	switch {
	case t.MaxDuration > 0 && at > t.MaxDuration, t.Limit > 0 && len(t.Requests) == t.Limit:
		r.enough = true
		return wrong{}
	case len(t.Requests) == MaxRequests:
		r.enough = true
		return wrong{fmt.Sprintf("is request %d, and one step may have %d", MaxRequests+1, MaxRequests), "write trace.limit or trace.max_duration"}
	}
	q := t.request(at, line)
	if sum := q.Input + q.Output; r.context > 0 && sum > r.context {
		return wrong{fmt.Sprintf("%d input and %d output tokens are more than fixed.context_length %d", q.Input, q.Output, r.context),
			"raise it, or write trace.max_input_tokens and trace.max_output_tokens"}
	}
	t.Requests = append(t.Requests, q)
	return wrong{}
}

// request is a line as it is replayed: cut to the greatest lengths, and nothing of it without a token.
func (t *Trace) request(at time.Duration, line recorded) TraceRequest {
	q := TraceRequest{At: at, Input: max(line.input, 1), Output: max(line.output, 1), Blocks: line.blocks}
	cut := false
	if t.MaxInput > 0 && q.Input > t.MaxInput {
		q.Input, cut = t.MaxInput, true
		if len(q.Blocks) > 0 {
			q.Blocks = slices.Clip(q.Blocks[:(q.Input+t.BlockTokens-1)/t.BlockTokens])
		}
	}
	if t.MaxOutput > 0 && q.Output > t.MaxOutput {
		q.Output, cut = t.MaxOutput, true
	}
	if cut {
		t.Cut++
	}
	return q
}

// tokens says what is wrong with a length.
func tokens(name string, n int) wrong {
	switch {
	case n < 0:
		return wrong{fmt.Sprintf("%s is %d, and a length can't be negative", name, n), "write the number of tokens"}
	case n > MaxTokens:
		return wrong{fmt.Sprintf("%s is %d, more than %d", name, n, MaxTokens), "write the number of tokens"}
	}
	return wrong{}
}

// mooncakeLines reads the traces of Mooncake (https://github.com/kvcache-ai/Mooncake), which others
// write too, with other sizes of a block.
type mooncakeLines struct{ block int }

const mooncakeFix = `write {"timestamp": 0, "input_length": 6755, "output_length": 500, "hash_ids": [0, 1]}`

func (m mooncakeLines) line(text string) (recorded, bool, wrong) {
	var q struct {
		Timestamp *float64 `json:"timestamp"` // milliseconds
		Input     *int     `json:"input_length"`
		Output    *int     `json:"output_length"`
		HashIDs   []int64  `json:"hash_ids"`
	}
	err := json.Unmarshal([]byte(text), &q)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return recorded{}, false, wrong{fmt.Sprintf("%s must be a whole number, not a %s", kind.Field, kind.Value), mooncakeFix}
	case err != nil:
		return recorded{}, false, wrong{"is not a JSON object: " + err.Error(), mooncakeFix}
	}
	for _, field := range []struct {
		name    string
		missing bool
	}{{"timestamp", q.Timestamp == nil}, {"input_length", q.Input == nil}, {"output_length", q.Output == nil}} {
		if field.missing {
			return recorded{}, false, wrong{"has no " + field.name, mooncakeFix}
		}
	}
	// A double holds a millisecond exactly for 285,000 years; a duration of nanoseconds for 292.
	if *q.Timestamp < 0 || *q.Timestamp > 9e12 {
		return recorded{}, false, wrong{fmt.Sprintf("timestamp %g is no number of milliseconds since the beginning", *q.Timestamp), mooncakeFix}
	}
	for _, w := range []wrong{tokens("input_length", *q.Input), tokens("output_length", *q.Output)} {
		if w.what != "" {
			return recorded{}, false, w
		}
	}
	if need := (*q.Input + m.block - 1) / m.block; len(q.HashIDs) > 0 && len(q.HashIDs) != need {
		return recorded{}, false, wrong{fmt.Sprintf("has %s for %d input tokens, which are %s of %d", count(len(q.HashIDs), "hash ID"), *q.Input, count(need, "block"), m.block),
			"write in trace.block_tokens how many tokens a hash ID of this trace stands for, or leave hash_ids out"}
	}
	return recorded{time.Duration(*q.Timestamp * float64(time.Millisecond)), *q.Input, *q.Output, q.HashIDs}, true, wrong{}
}

// azureLines reads the traces of Azure (https://github.com/Azure/AzurePublicDataset): of 2023, without a
// zone in their times, and of 2024, with one.
type azureLines struct {
	column map[string]int // by name in small letters; nil before the first line
}

const azureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens"

func (a *azureLines) line(text string) (recorded, bool, wrong) {
	fields := strings.Split(text, ",")
	for i := range fields {
		fields[i] = strings.Trim(strings.TrimSpace(fields[i]), `"`)
	}
	if a.column == nil {
		column := map[string]int{}
		for i, name := range fields {
			column[strings.ToLower(name)] = i
		}
		for _, name := range strings.Split(azureHeader, ",") {
			if _, ok := column[strings.ToLower(name)]; !ok {
				return recorded{}, false, wrong{"names no column " + name, "begin the file with " + azureHeader}
			}
		}
		a.column = column
		return recorded{}, false, wrong{}
	}
	if len(fields) != len(a.column) {
		return recorded{}, false, wrong{fmt.Sprintf("has %s, and the first line %d", count(len(fields), "column"), len(a.column)), "write one request a line"}
	}
	at, w := azureTime(fields[a.column["timestamp"]])
	if w.what != "" {
		return recorded{}, false, w
	}
	q := recorded{at: at}
	for _, f := range []struct {
		name string
		into *int
	}{{"ContextTokens", &q.input}, {"GeneratedTokens", &q.output}} {
		text := fields[a.column[strings.ToLower(f.name)]]
		n, err := strconv.Atoi(text)
		if err != nil {
			return recorded{}, false, wrong{fmt.Sprintf("%s is not a whole number: %q", f.name, text), "write the number of tokens"}
		}
		if w := tokens(f.name, n); w.what != "" {
			return recorded{}, false, w
		}
		*f.into = n
	}
	return q, true, wrong{}
}

// azureTime reads a time as either year's traces have it.
func azureTime(text string) (time.Duration, wrong) {
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil { // with or without a fraction of the second
			return time.Duration(t.UnixNano()), wrong{}
		}
	}
	return 0, wrong{fmt.Sprintf("TIMESTAMP is no time: %q", text), "write it as 2023-11-16 18:15:46.6805900"}
}
