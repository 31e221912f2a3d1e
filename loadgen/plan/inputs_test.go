package plan

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLengths(t *testing.T) {
	tests := []struct {
		lengths         Lengths
		mean, deviation float64
		least, most     int
	}{
		{Lengths{Distribution: Uniform, Min: 10, Max: 20}, 15, 3.16, 10, 20},
		{Lengths{Distribution: Normal, Mean: 500, Deviation: 50, Min: 1, Max: 10000}, 500, 50, 200, 800},
		{Lengths{Distribution: Lognormal, Mean: 500, Deviation: 300, Min: 1, Max: 100000}, 500, 300, 20, 8000},
		{Lengths{Distribution: Histogram, Bins: []Bin{{100, 3}, {500, 1}}}, 200, 173.2, 100, 500},
		{Lengths{Distribution: Normal, Mean: 50, Deviation: 1000, Min: 50, Max: 50}, 50, 0, 50, 50},
	}
	for _, tc := range tests {
		t.Run(tc.lengths.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			const n = 200_000
			sum, squares := 0.0, 0.0
			for range n {
				x := tc.lengths.draw(random)
				if x < tc.least || x > tc.most {
					t.Fatalf("%d is not between %d and %d", x, tc.least, tc.most)
				}
				sum, squares = sum+float64(x), squares+float64(x)*float64(x)
			}
			mean := sum / n
			deviation := math.Sqrt(max(0, squares/n-mean*mean))
			if math.Abs(mean-tc.mean) > 0.02*tc.mean || math.Abs(deviation-tc.deviation) > 0.03*tc.deviation+0.01 {
				t.Errorf("mean %.1f, deviation %.1f; want %.1f, %.1f", mean, deviation, tc.mean, tc.deviation)
			}
		})
	}
}

// What prompts share comes before the nonce, so that a prefix cache finds it, and only that.
func TestSharedPrefix(t *testing.T) {
	s := open(t, Prompts{Synthetic: &Synthetic{InputTokens: 100, SharedTokens: 40, SharedGroups: 2}}, 7, "r")
	before := func(n int) string {
		text := s.Prompt(PhaseRamp, 1, 1, n)
		head, _, ok := strings.Cut(text, s.nonce(PhaseRamp, 1, 1, n)+" ")
		if !ok || len(strings.Fields(head)) != 40 {
			t.Fatalf("prompt %d has %d words before its nonce: %s", n, len(strings.Fields(head)), text)
		}
		return head
	}
	if before(0) != before(2) || before(1) != before(3) || before(0) == before(1) {
		t.Error("two groups must share their beginnings, and not with each other")
	}
	if s.Len() != distributedBodies || s.Body(0) == s.Body(2) {
		t.Error("prompts of one group must differ behind their beginning")
	}
}

func TestConversations(t *testing.T) {
	dir := t.TempDir()
	lines := filepath.Join(dir, "p.jsonl")
	put(t, lines, `{"prompt":"alone","output_tokens":9}`+"\n"+
		`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`+"\n"+
		`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"d"}]}`)
	s := open(t, Prompts{File: lines}, 7, "r")
	nonce := func(n int) string { return s.nonce(PhaseRamp, 1, 1, n) + " " }
	want := [][]Message{
		{{"user", nonce(0) + "alone"}},
		{{"system", "s"}, {"user", nonce(1) + "a"}, {"assistant", "b"}, {"user", "c"}},
		{{"system", "s"}, {"user", nonce(2) + "d"}},
	}
	var got [][]Message
	for n := range 3 {
		got = append(got, append(slices.Clone(s.Conversation(PhaseRamp, 1, 1, n)), Message{"user", s.Prompt(PhaseRamp, 1, 1, n)}))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if s.OutputTokens(0) != 9 || s.OutputTokens(1) != 0 || s.OutputTokens(3) != 9 {
		t.Error("a line's own output_tokens are not its own")
	}

	shared := filepath.Join(dir, "s.json")
	put(t, shared, `[{"id":"x","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c"}]},{"conversations":[{"from":"gpt","value":"z"}]}]`)
	s = open(t, Prompts{ShareGPT: shared}, 7, "r")
	if s.Len() != 2 || s.Body(1) != "c" || len(s.Conversation(PhaseRamp, 1, 1, 0)) != 0 {
		t.Errorf("%d prompts, the second %q", s.Len(), s.Body(1))
	}
	if d := cmp.Diff([]Message{{"user", nonce(1) + "a"}, {"assistant", "b"}}, s.Conversation(PhaseRamp, 1, 1, 1)); d != "" {
		t.Error(d)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestInputFaults(t *testing.T) {
	dir := t.TempDir()
	third := filepath.Join(dir, "third.jsonl")
	put(t, third, `{"prompt":"a"}`+"\n"+`{"prompt":"b"}`+"\n"+`{"prompt":`+"\n")
	role := filepath.Join(dir, "role.jsonl")
	put(t, role, `{"messages":[{"role":"robot","content":"x"}]}`)
	last := filepath.Join(dir, "last.jsonl")
	put(t, last, `{"messages":[{"role":"assistant","content":"x"}]}`)
	tokens := filepath.Join(dir, "tokens.jsonl")
	put(t, tokens, `{"prompt":"a","output_tokens":0}`)
	list := filepath.Join(dir, "list.json")
	put(t, list, "[\n{\"conversations\": oops}]")
	fixed := func(prompts string) string { return "fixed: {prompts: {" + prompts + "}, output_tokens: 8}" }
	for _, c := range []struct{ line, want string }{
		{fixed("file: " + third), third + ":3: is not JSON"},
		{fixed("file: " + role), `:1: message 1 has the role "robot"`},
		{fixed("file: " + last), ":1: the last message is not a user's"},
		{fixed("file: " + tokens), ":1: output_tokens is not a whole number"},
		{fixed("sharegpt: " + list), list + ":2: is not a list of conversations"},
		{fixed("sharegpt: none.json"), "fixed.prompts.sharegpt: none.json can't be read"},
		{fixed("sharegpt: a, file: b"), "must name exactly one of synthetic, file and sharegpt"},
		{fixed("synthetic: {input_tokens: {distribution: gamma}}"), "input_tokens.distribution: "},
		{fixed("synthetic: {input_tokens: {distribution: uniform, min: 9, max: 3}}"), "min: 9 is more than max 3"},
		{fixed("synthetic: {input_tokens: {distribution: normal, mean: 5, max: 30}}"), "deviation: is missing"},
		{fixed("synthetic: {input_tokens: {distribution: normal, mean: 50, deviation: 3, max: 30}}"), "mean: 50 is not between min 1 and max 30"},
		{fixed("synthetic: {input_tokens: {histogram: {128: 1, 64: 1}}}"), "64 doesn't rise"},
		{fixed("synthetic: {input_tokens: {histogram: {many: 1}}}"), "is no number of tokens"},
		{fixed("synthetic: {input_tokens: 20, shared_prefix: {tokens: 20}}"), "shared_prefix.tokens: 20 leaves nothing of 20 input tokens"},
	} {
		_, err := Parse("plan.yaml", file(c.line))
		if err == nil {
			t.Errorf("%s is taken", c.line)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.line, err, c.want)
		}
	}
}

// A conversation for an API that takes one text is refused where it is named, in a class too.
func TestConversationsNeedAChat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.jsonl")
	put(t, path, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"c"}]}`)
	target := "target: {url: 'http://h', api: openai-completions, model: m}"
	for _, line := range []string{
		"fixed: {prompts: {file: " + path + "}, output_tokens: 8}",
		"classes: [{name: a, weight: 1}, {name: b, weight: 1, prompts: {file: " + path + "}}]",
	} {
		_, err := Parse("plan.yaml", file(target, line))
		if err == nil || !strings.Contains(err.Error(), "prompts.file: holds conversations, and openai-completions takes one text") {
			t.Errorf("%s: %v", line, err)
		}
	}
}
