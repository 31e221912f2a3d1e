package plan

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"firstbreach/internal/strictyaml"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T, p Prompts, seed int64, run string) *PromptSet {
	t.Helper()
	s, err := p.Open(seed, run)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSyntheticPrompts(t *testing.T) {
	p := Prompts{Synthetic: &Synthetic{InputTokens: 256}}
	a, b := open(t, p, 7, "r1"), open(t, p, 7, "r1")
	if a.Len() != syntheticBodies {
		t.Errorf("%d bodies", a.Len())
	}
	seen := map[string]bool{}
	for i := range a.Len() {
		if a.Body(i) != b.Body(i) || seen[a.Body(i)] {
			t.Errorf("body %d differs between two sets of one seed, or is there twice", i)
		}
		seen[a.Body(i)] = true
		if words := len(strings.Fields(a.Body(i))); words != 256-syntheticOverhead-leadTokens+len(strings.Fields(lead)) {
			t.Errorf("body %d has %d words", i, words)
		}
	}
	if a.SHA256() != b.SHA256() || a.SHA256() == open(t, p, 8, "r1").SHA256() {
		t.Error("the digest must follow the seed and nothing else")
	}
	if a.SHA256() != open(t, p, 7, "r2").SHA256() {
		t.Error("two runs of one plan must have the same digest")
	}
}

// What a seed means must not change between releases, or old and new runs can't be compared.
func TestSyntheticPromptsAreStable(t *testing.T) {
	s := open(t, Prompts{Synthetic: &Synthetic{InputTokens: 32}}, 7, "r1")
	got := []string{s.Prompt(PhaseRamp, 1, 2, 3), s.SHA256()}
	want := []string{
		"319965398326471012 Continue this list of words: bank brown call card early car common best deal bridge city cry",
		"6dea74e6c805e5ae31e5dd19ccb9b9709220a503b3328950c977667c871a42a8",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestShortSyntheticPrompt(t *testing.T) {
	if got := open(t, Prompts{Synthetic: &Synthetic{InputTokens: 1}}, 7, "r").Body(0); len(strings.Fields(got)) != 1 {
		t.Errorf("%q", got)
	}
	for _, n := range []int{0, -1, MaxTokens + 1} {
		if _, err := (Prompts{Synthetic: &Synthetic{InputTokens: n}}).Open(7, "r"); err == nil {
			t.Errorf("%d tokens are taken", n)
		}
	}
}

// Every request has a nonce of its own and of the same length, and the bodies are those of every step.
func TestNonces(t *testing.T) {
	p := Prompts{Synthetic: &Synthetic{InputTokens: 20}}
	seen := map[string]string{}
	for _, run := range []string{"r1", "r2"} {
		for _, seed := range []int64{7, 8} {
			s := open(t, p, seed, run)
			for _, phase := range []Phase{PhaseBaseline, PhaseRamp, PhaseRecovery} {
				for round := 1; round <= 3; round++ {
					for step := 1; step <= 3; step++ {
						for n := range 20 {
							prompt := s.Prompt(phase, round, step, n)
							nonce, body, _ := strings.Cut(prompt, " ")
							at := fmt.Sprint(run, seed, phase, round, step, n)
							if seen[nonce] != "" {
								t.Fatalf("%s and %s share the nonce %s", at, seen[nonce], nonce)
							}
							seen[nonce] = at
							if len(nonce) != nonceDigits || strings.Trim(nonce, "0123456789") != "" {
								t.Fatalf("nonce %q", nonce)
							}
							if body != s.Body(n) || prompt != s.Prompt(phase, round, step, n) {
								t.Fatalf("%s: %q", at, prompt)
							}
						}
					}
				}
			}
		}
	}
}

func TestPromptFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.jsonl")
	write(t, path, `{"prompt": "héllo\n", "id": 1}`+"\r\n\n"+`{"prompt": "world"}`)
	s := open(t, Prompts{File: path}, 7, "r")
	got := []string{s.Body(0), s.Body(1), s.Body(2), s.Body(-1)}
	if diff := cmp.Diff([]string{"héllo\n", "world", "héllo\n", "world"}, got); diff != "" {
		t.Error(diff)
	}
	if s.SHA256() != open(t, Prompts{File: path}, 8, "x").SHA256() {
		t.Error("the digest of a file depends on the seed")
	}
}

// The plan that names a broken prompt file is where the fault is reported, with each broken line.
func TestBrokenPromptFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.jsonl")
	for _, c := range []struct{ text, want string }{
		{"{\"prompt\": \"a\"}\n{\"prompt\": 1}\nx\n{}\n{\"prompt\": \" \"}\n\"s\"\nnull\n{\"prompt\": \"\xff\"}\n", `plan.yaml:4: fixed.prompts.file: p.jsonl has 7 broken lines (fix: mend the lines named below)
p.jsonl:2: prompt is not a text with something in it (fix: write {"prompt": "..."})
p.jsonl:3: is not JSON: invalid character 'x' looking for beginning of value (fix: write {"prompt": "..."})
p.jsonl:4: has no prompt (fix: write {"prompt": "..."})
p.jsonl:5: prompt is not a text with something in it (fix: write {"prompt": "..."})
p.jsonl:6: is not a JSON object (fix: write {"prompt": "..."})
p.jsonl:7: has no prompt (fix: write {"prompt": "..."})
p.jsonl:8: is not UTF-8 (fix: write {"prompt": "..."})`},
		{"\n\n", `plan.yaml:4: fixed.prompts.file: p.jsonl holds no prompt (fix: write one {"prompt": "..."} a line)`},
	} {
		write(t, path, c.text)
		_, err := Parse(filepath.Join(dir, "plan.yaml"), file("fixed: {prompts: {file: p.jsonl}, output_tokens: 1}"))
		if err == nil {
			t.Fatal("a broken file is taken")
		}
		if diff := cmp.Diff(c.want, strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")); diff != "" {
			t.Error(diff)
		}
		_, err = Prompts{File: path}.Open(7, "r")
		var listed *strictyaml.Error
		if !errors.As(err, &listed) {
			t.Errorf("Open: %v", err)
		}
	}
}

func BenchmarkPrompt(b *testing.B) {
	s, err := Prompts{Synthetic: &Synthetic{InputTokens: 256}}.Open(7, "r")
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		s.Prompt(PhaseRamp, 1, 1, i)
	}
}
