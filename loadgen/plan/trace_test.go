package plan

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// traced parses a plan with a trace.
func traced(keys string, replace ...string) (*Plan, error) {
	return Parse("plan.yaml", file(append(replace, "target: {url: 'http://127.0.0.1:8000', api: openai-chat, model: m}", "trace: {"+keys+"}")...))
}

func mustTrace(t *testing.T, keys string, replace ...string) *Trace {
	t.Helper()
	p, err := traced(keys, replace...)
	if err != nil {
		t.Fatal(err)
	}
	return p.Trace
}

// The two published forms, at the times and with the lengths that they have.
func TestTraceForms(t *testing.T) {
	ms := func(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
	mooncake := mustTrace(t, "file: testdata/mooncake.jsonl")
	want := []TraceRequest{
		{0, 1310, 52, []int64{0, 1, 2}}, {0, 1475, 26, []int64{0, 3, 4}}, {ms(3052), 2287, 316, []int64{0, 1, 5, 6, 7}}, {ms(6104), 512, 1, []int64{0}},
		{ms(9157), 900, 40, []int64{8, 9}}, {ms(12209), 1310, 52, []int64{0, 1, 2}}, {ms(12209), 96, 12, []int64{10}},
	}
	if d := cmp.Diff(want, mooncake.Requests); d != "" {
		t.Error(d)
	}
	azure := mustTrace(t, "file: testdata/azure.csv")
	want = []TraceRequest{
		{0, 374, 44, nil}, {ms(4314.579), 396, 109, nil}, {ms(4541.877), 879, 55, nil}, {ms(4711.148), 91, 16, nil},
		{ms(5898.526), 91, 16, nil}, {ms(12153.943), 381, 84, nil},
	}
	if d := cmp.Diff(want, azure.Requests); d != "" {
		t.Error(d)
	}
	if !mooncake.IgnoreEOS || mooncake.MaxInFlight != DefaultInFlight || mooncake.Rate != 0.5733 || azure.Rate != 0.4937 {
		t.Errorf("%+v", mooncake)
	}
	// Within ten seconds from the beginning there are five requests of the one, within those from 4.3 s on five of the other.
	if mooncake.Busiest != 0.5733 || azure.Busiest != 0.5 {
		t.Errorf("busiest %v and %v", mooncake.Busiest, azure.Busiest)
	}
	if in, out := azure.MeanTokens(); in != 2212/6. || out != 54 || azure.Longest() != 2 || mooncake.Longest() != 2 {
		t.Errorf("on average %v and %v tokens", in, out)
	}
	if p, _ := traced("file: testdata/azure.csv"); len(p.After()) != 1 || p.Bounds(p.After()[0]).Duration != ms(12153.943) || p.Held(p.After()[0]) != p.Trace.HeldLoad || p.highest() != DefaultInFlight {
		t.Errorf("%+v", p.After())
	}
}

// The traces of 2024 have a zone in their times, and whole seconds without a fraction occur in both.
func TestAzureTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "week.csv")
	write(t, path, "\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\r\n2024-05-10 00:00:00+00:00,2162,5\r\n\r\n2024-05-10 02:00:12.5+02:00,0,0\r\n")
	got := mustTrace(t, "file: "+path)
	if d := cmp.Diff([]TraceRequest{{0, 2162, 5, nil}, {12500 * time.Millisecond, 1, 1, nil}}, got.Requests); d != "" {
		t.Error(d)
	}
}

func TestTraceIsCut(t *testing.T) {
	got := mustTrace(t, "file: testdata/mooncake.jsonl, speed: 0.5, limit: 5, max_input_tokens: 1100, max_output_tokens: 40, max_in_flight: 9, ignore_eos: false")
	want := []TraceRequest{{0, 1100, 40, []int64{0, 1, 2}}, {0, 1100, 26, []int64{0, 3, 4}}, {6104 * time.Millisecond, 1100, 40, []int64{0, 1, 5}},
		{12208 * time.Millisecond, 512, 1, []int64{0}}, {18314 * time.Millisecond, 900, 40, []int64{8, 9}}}
	if d := cmp.Diff(want, got.Requests); d != "" {
		t.Error(d)
	}
	if got.Cut != 3 || got.MaxInFlight != 9 || got.IgnoreEOS {
		t.Errorf("%+v", got)
	}
	if n := len(mustTrace(t, "file: testdata/mooncake.jsonl, max_duration: 12208ms, speed: 0.9").Requests); n != 5 {
		t.Errorf("%d requests in 12.2 s at 0.9 of the speed", n)
	}
	whole := mustTrace(t, "file: testdata/mooncake.jsonl")
	if whole.SHA256() == got.SHA256() || whole.SHA256() != mustTrace(t, "file: testdata/mooncake.jsonl, max_in_flight: 2").SHA256() {
		t.Error("the digest is not that of what is replayed")
	}
}

// Equal numbers are equal text from the beginning on, within a run and never between two.
func TestTracePrompts(t *testing.T) {
	trace := mustTrace(t, "file: testdata/mooncake.jsonl")
	p := trace.Prompts(7, "r1")
	common := func(a, b string) (n int) {
		x, y := strings.Fields(a), strings.Fields(b)
		for n < min(len(x), len(y)) && x[n] == y[n] {
			n++
		}
		return n
	}
	for _, c := range []struct{ a, b, words int }{
		{0, 1, 1 + 512 - syntheticOverhead},                       // block 0
		{0, 2, 1 + 2*512 - syntheticOverhead},                     // blocks 0 and 1
		{0, 5, 1 + 1310 - syntheticOverhead},                      // all
		{0, 3, 1 + 512 - syntheticOverhead}, {0, 4, 1}, {4, 6, 1}, // the nonce of the run alone
	} {
		if got := common(p.Prompt(c.a), p.Prompt(c.b)); got != c.words {
			t.Errorf("requests %d and %d share %d words, want %d", c.a, c.b, got, c.words)
		}
	}
	for n, q := range trace.Requests {
		if got := len(strings.Fields(p.Prompt(n))); got != q.Input-syntheticOverhead+1 || p.OutputTokens(n) != q.Output {
			t.Errorf("request %d of %d tokens has %d words", n, q.Input, got)
		}
	}
	if common(p.Prompt(0), trace.Prompts(7, "r2").Prompt(0)) != 0 {
		t.Error("two runs begin alike")
	}
	azure := mustTrace(t, "file: testdata/azure.csv").Prompts(7, "r1")
	if common(azure.Prompt(3), azure.Prompt(4)) != 0 {
		t.Error("two requests without hash IDs begin alike")
	}
	// The nonce, five words that are six tokens, and the rest.
	if got := len(strings.Fields(azure.Prompt(0))); got != 1+5+374-syntheticOverhead-leadTokens {
		t.Errorf("a prompt of 374 tokens has %d words", got)
	}
}

func TestTraceFaults(t *testing.T) {
	dir := t.TempDir()
	line := func(ms, in, out int) string {
		return fmt.Sprintf(`{"timestamp": %d, "input_length": %d, "output_length": %d}`, ms, in, out)
	}
	good := line(0, 10, 10) + "\n" + line(20000, 10, 10) + "\n"
	azure := azureHeader + "\n2023-11-16 18:15:46.68,374,44\n"
	for name, c := range map[string]struct{ format, text, keys, want string }{
		"broken":       {"jsonl", good + "{\"timestamp\": 3", "", `trace.jsonl:3: is not a JSON object: unexpected end of JSON input (fix: write {"timestamp": 0,`},
		"out of order": {"jsonl", good + line(19000, 10, 10), "", "trace.jsonl:3: comes 1s before the line above it (fix: sort the trace by its times)"},
		"negative":     {"jsonl", line(0, 10, 10) + "\n" + line(5, -3, 10), "", "trace.jsonl:2: input_length is -3, and a length can't be negative (fix: write the number of tokens)"},
		"no length":    {"jsonl", `{"timestamp": 0, "input_length": 4}`, "", "trace.jsonl:1: has no output_length"},
		"no number":    {"jsonl", `{"timestamp": 0, "input_length": "4", "output_length": 3}`, "", "trace.jsonl:1: input_length must be a whole number, not a string"},
		"fraction":     {"jsonl", `{"timestamp": 0, "input_length": 4.5, "output_length": 3}`, "", "trace.jsonl:1: input_length must be a whole number, not a number 4.5"},
		"time":         {"jsonl", line(-4, 10, 10), "", "trace.jsonl:1: timestamp -4 is no number of milliseconds since the beginning"},
		"too long":     {"jsonl", line(0, 10, MaxTokens+1), "", fmt.Sprintf("trace.jsonl:1: output_length is %d, more than %d", MaxTokens+1, MaxTokens)},
		"blocks": {"jsonl", `{"timestamp": 0, "input_length": 1310, "output_length": 3, "hash_ids": [1, 2]}`, "",
			"trace.jsonl:1: has 2 hash IDs for 1310 input tokens, which are 3 blocks of 512 (fix: write in trace.block_tokens"},
		"blocks of a size": {"jsonl", `{"timestamp": 0, "input_length": 1310, "output_length": 3, "hash_ids": [1, 2, 3]}`, "block_tokens: 64", "which are 21 blocks of 64"},
		"empty":            {"jsonl", "\n\n", "", "trace.file: " + dir + "/trace.jsonl holds no request (fix: write one a line)"},
		"short":            {"jsonl", line(0, 10, 10) + "\n" + line(2000, 10, 10), "", "trace: replays 2 requests in 2s: too short to tell anything (fix: take a longer part of the file, or lower speed, so that it lasts at least 10s)"},
		"fast":             {"jsonl", good, "speed: 10", "trace: replays 2 requests in 2s"},
		"speed":            {"jsonl", good, "speed: 0", "trace.speed: 0 is not between 0.001 and 1000"},
		"format":           {"txt", good, "", "trace.format: is missing (fix: write format: mooncake for JSON Lines, format: azure for CSV)"},
		"other format":     {"jsonl", good, "format: burstgpt", `trace.format: unknown value "burstgpt"`},
		"unknown key":      {"jsonl", good, "rate: 3", "trace.rate: unknown key"},
		"columns":          {"csv", "TIMESTAMP,Prompt\n", "", "trace.csv:1: names no column ContextTokens (fix: begin the file with TIMESTAMP,ContextTokens,GeneratedTokens)"},
		"azure broken":     {"csv", azure + "2023-11-16 18:15:47,374\n", "", "trace.csv:3: has 2 columns, and the first line 3"},
		"azure number":     {"csv", azure + "2023-11-16 18:15:47,many,3\n", "", `trace.csv:3: ContextTokens is not a whole number: "many"`},
		"azure negative":   {"csv", azure + "2023-11-16 18:15:47,3,-1\n", "", "trace.csv:3: GeneratedTokens is -1, and a length can't be negative"},
		"azure time":       {"csv", azure + "yesterday,3,1\n", "", `trace.csv:3: TIMESTAMP is no time: "yesterday" (fix: write it as 2023-11-16 18:15:46.6805900)`},
		"azure order":      {"csv", azure + "2023-11-16 18:15:45.68,3,1\n", "", "trace.csv:3: comes 1s before the line above it"},
	} {
		path := filepath.Join(dir, "trace."+c.format)
		write(t, path, c.text)
		keys := "file: " + path
		if c.keys != "" {
			keys += ", " + c.keys
		}
		if _, err := traced(keys); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
	}
	write(t, filepath.Join(dir, "trace.jsonl"), good)
	if _, err := traced("file: " + dir + "/none.jsonl"); err == nil || !strings.HasSuffix(err.Error(),
		"trace.file: "+dir+"/none.jsonl can't be read: no such file or directory (fix: write the path of a trace file, relative to the plan)") {
		t.Errorf("no file: %v", err)
	}
	if _, err := traced("speed: 2"); err == nil || !strings.Contains(err.Error(), "trace.file: is missing") {
		t.Errorf("no name: %v", err)
	}
	if _, err := traced("file: testdata/mooncake.jsonl", "fixed: {prompts: {synthetic: {input_tokens: 32}}, output_tokens: 16, context_length: 2048}"); err == nil ||
		!strings.Contains(err.Error(), "testdata/mooncake.jsonl:3: 2287 input and 316 output tokens are more than fixed.context_length 2048 (fix: raise it") {
		t.Errorf("longer than the context: %v", err)
	}
	var crowd strings.Builder
	for range 600 {
		crowd.WriteString(line(0, 5, 5) + "\n")
	}
	write(t, filepath.Join(dir, "crowd.jsonl"), crowd.String()+line(10000, 5, 5))
	if _, err := traced("file: "+dir+"/crowd.jsonl", "environment: production"); err == nil || !strings.Contains(err.Error(),
		"trace: has 60.1 requests per second in its busiest 10s, more than production allows (fix: lower speed, which is 1)") {
		t.Errorf("a crowd in production: %v", err)
	}
}
