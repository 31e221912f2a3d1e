package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// parts are the lines of a plan that is right; a test replaces one of them.
func file(replace ...string) []byte {
	parts := []struct{ key, line string }{
		{"apiVersion", "apiVersion: firstbreach/v1"},
		{"environment", "environment: isolated"},
		{"target", "target: {url: 'http://127.0.0.1:11434', api: ollama-chat, model: m}"},
		{"fixed", "fixed: {prompts: {synthetic: {input_tokens: 32}}, output_tokens: 16}"},
		{"ramp", "ramp: {concurrency: [1, 2]}"},
	}
	var lines []string
	for _, p := range parts {
		for _, r := range replace {
			if r == "" || strings.HasPrefix(r, p.key+":") {
				p.line = r
			}
		}
		lines = append(lines, p.line)
	}
	for _, r := range replace {
		known := false
		for _, p := range parts {
			known = known || strings.HasPrefix(r, p.key+":")
		}
		if !known {
			lines = append(lines, r)
		}
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

func TestDefaults(t *testing.T) {
	p, err := Parse("plan.yaml", file())
	if err != nil {
		t.Fatal(err)
	}
	want := &Plan{
		APIVersion: APIVersion, Environment: Isolated,
		Target: Target{URL: "http://127.0.0.1:11434", API: OllamaChat, Model: "m"},
		Fixed:  Fixed{Prompts: Prompts{Synthetic: &Synthetic{InputTokens: 32}}, OutputTokens: 16, Seed: 7},
		Rounds: 3, Baseline: Level{1}, Ramp: Ramp{Concurrency: []int{1, 2}}, Recovery: Level{1},
		Step:     Step{Requests: 100, MinDuration: 10 * time.Second, MaxDuration: 10 * time.Minute},
		Cooldown: 2 * time.Second,
		Timeouts: Timeouts{Connect: 5 * time.Second, FirstToken: 30 * time.Second, Idle: 30 * time.Second, Total: 2 * time.Minute},
		Stop:     Stop{ErrorRatio: 0.5, After: 20},
		Restore:  Restore{Timeout: time.Minute},
		Path:     "plan.yaml",
	}
	if diff := cmp.Diff(want, p, cmpopts.IgnoreFields(Plan{}, "Source")); diff != "" {
		t.Error(diff)
	}
}

func TestEveryKey(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "prompts.jsonl"), `{"prompt": "hello", "id": 1}`+"\n\n"+`{"prompt": "world"}`+"\n")
	write(t, filepath.Join(dir, "key"), " sk-1 \n")
	src := `
apiVersion: firstbreach/v1
environment: staging
target:
  url: https://llm.example/base/
  api: openai-chat
  model: "1.10"
  metrics: https://llm.example/metrics
  host_metrics: http://host:10510/metrics
  api_key: {file: key}
  headers: {x-team: chat}
fixed:
  prompts: {file: prompts.jsonl}
  output_tokens: 2
  context_length: 8192
  temperature: 0.7
  seed: -3
rounds: 5
baseline: {concurrency: 2}
ramp: {concurrency: [4, 4096]}
recovery: {concurrency: 3}
step: {duration: 1m}
cooldown: 0
timeouts: {connect: 1s, first_token: 2s, idle: 3s, total: 1h}
stop: {error_ratio: 0%, ttft_p95: 1500ms, e2e_p95: 1m, after: 5}
restore: {request: {method: PUT, url: 'http://127.0.0.1:1/reset', body: '{}'}, timeout: 5s}
`
	p, err := Parse(filepath.Join(dir, "plan.yaml"), []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	want := &Plan{
		APIVersion: APIVersion, Environment: Staging,
		Target: Target{URL: "https://llm.example/base", API: OpenAIChat, Model: "1.10", Metrics: "https://llm.example/metrics",
			HostMetrics: "http://host:10510/metrics", APIKey: Secret{File: filepath.Join(dir, "key")}, Headers: map[string]string{"X-Team": "chat"}},
		Fixed:  Fixed{Prompts: Prompts{File: filepath.Join(dir, "prompts.jsonl")}, OutputTokens: 2, ContextLength: 8192, Temperature: 0.7, Seed: -3},
		Rounds: 5, Baseline: Level{2}, Ramp: Ramp{Concurrency: []int{4, 4096}}, Recovery: Level{3},
		Step:     Step{Duration: time.Minute},
		Timeouts: Timeouts{Connect: time.Second, FirstToken: 2 * time.Second, Idle: 3 * time.Second, Total: time.Hour},
		Stop:     Stop{TTFTP95: 1500 * time.Millisecond, E2EP95: time.Minute, After: 5},
		Restore:  Restore{Request: &Request{Method: "PUT", URL: "http://127.0.0.1:1/reset", Body: "{}"}, Timeout: 5 * time.Second},
		Path:     filepath.Join(dir, "plan.yaml"), Source: []byte(src),
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	if key, err := p.Target.APIKey.Value(); err != nil || key != "sk-1" {
		t.Errorf("key %q, %v", key, err)
	}
	stages := p.Stages(2)
	if diff := cmp.Diff([]Stage{{Phase: PhaseBaseline, Round: 2, Step: 1, Concurrency: 2}, {Phase: PhaseRamp, Round: 2, Step: 1, Concurrency: 4}, {Phase: PhaseRamp, Round: 2, Step: 2, Concurrency: 4096}, {Phase: PhaseRecovery, Round: 2, Step: 1, Concurrency: 3}}, stages); diff != "" {
		t.Error(diff)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Each plan has one fault; it is named alone, with its key and a way out.
func TestFaults(t *testing.T) {
	target := func(keys string) string {
		return "target: {url: 'http://127.0.0.1:11434', api: ollama-chat, model: m, " + keys + "}"
	}
	url := func(u string) string { return "target: {url: '" + u + "', api: ollama-chat, model: m}" }
	for _, c := range []struct{ line, want string }{
		{"ramp: {concurrency: [0, 1]}", "ramp.concurrency[0]: 0 is no load (fix: write at least 1)"},
		{"ramp: {concurrency: [1, 8x]}", `ramp.concurrency[1]: "8x" is not a whole number (fix: write 8)`},
		{"ramp: {concurrency: [1, -2]}", "ramp.concurrency[1]: -2 is no load"},
		{"ramp: {concurrency: [1, 2, 2]}", "ramp.concurrency[2]: 2 comes after 2 (fix: write each level once, in rising order)"},
		{"ramp: {concurrency: [4, 2]}", "ramp.concurrency[1]: 2 comes after 4"},
		{"ramp: {concurrency: [1, 4097]}", "ramp.concurrency[1]: 4097 is more than one client may hold (fix: stay at or below 4096)"},
		{"ramp: {concurrency: []}", "ramp.concurrency: is empty"},
		{"ramp: {concurrency: 8}", "ramp.concurrency: must be a list, not a number"},
		{"ramp: {}", "ramp: names no level"},
		{"ramp: {concurrency: [1], arrivals: poisson}", "ramp.arrivals: has no meaning beside concurrency"},
		{"ramp: {rate: []}", "ramp.rate: is empty"},
		{"ramp: {rate: 5}", "ramp.rate: must be a list"},
		{"ramp: {rate: [2, 1]}", "ramp.rate[1]: 1 comes after 2 (fix: write each rate once, in rising order)"},
		{"ramp: {rate: [0.5, 0.5]}", "ramp.rate[1]: 0.5 comes after 0.5"},
		{"ramp: {rate: [0]}", "ramp.rate[0]: 0 is no load"},
		{"ramp: {rate: [-1]}", "ramp.rate[0]: -1 is no load"},
		{"ramp: {rate: [20000]}", "ramp.rate[0]: 20000 requests per second is more than one client may send"},
		{"ramp: {rate: [4/s]}", `ramp.rate[0]: "4/s" is not a number`},
		{"ramp: {rate: [1], arrivals: gamma}", `ramp.arrivals: unknown value "gamma"`},
		{"ramp: {rate: [1], max_in_flight: 0}", "ramp.max_in_flight: 0 is no load"},
		{"ramp: {rate: [1], concurrency: [1]}", "ramp.rate: stands beside concurrency"},
		{"baseline: {concurrency: 0}", "baseline.concurrency: 0 is no load"},
		{"recovery: {}", "recovery.concurrency: is missing"},
		{"rounds: 0", "rounds: 0 is not between 1 and 100"},
		{"rounds: three", `rounds: "three" is not a whole number`},
		{"step: {}", "step: has neither requests nor duration (fix: write step: {requests: 100})"},
		{"step: {min_duration: 10s}", "step: has neither requests nor duration"},
		{"step: {requests: 10, duration: 60s}", "step.duration: stands beside requests"},
		{"step: {duration: 60s, max_duration: 2m}", "step.max_duration: has no meaning beside duration"},
		{"step: {requests: 10, min_duration: 2m, max_duration: 1m}", "step.min_duration: 2m0s is longer than max_duration 1m0s (fix: swap the two)"},
		{"step: {requests: -1}", "step.requests: -1 is not between 1 and 1000000"},
		{"step: {duration: 0s}", "step.duration: must be greater than 0"},
		{"cooldown: -1s", `cooldown: "-1s" is negative`},
		{"cooldown: 2", `cooldown: "2" has no unit (fix: write the unit: 2s, 2ms or 2m)`},
		{"timeouts: {total: 0}", "timeouts.total: must be greater than 0"},
		{"timeouts: {first-token: 1s}", "timeouts.first-token: unknown key (fix: did you mean first_token?)"},
		{"stop: {error_ratio: 1.5}", "stop.error_ratio: \"1.5\" is not between 0% and 100%"},
		{"stop: {ttft_p95: 10}", `stop.ttft_p95: "10" has no unit (fix: write the unit: 10s, 10ms or 10m)`},
		{"stop: {e2e_p95: -1s}", `stop.e2e_p95: "-1s" is negative`},
		{"stop: {ttft: 1s}", "stop.ttft: unknown key"},
		{"stop: {after: 0}", "stop.after: 0 is not between 1 and 1000000"},
		{"environment: prod", `environment: unknown value "prod" (fix: write one of isolated, staging, production)`},
		{"environment: stagging", `environment: unknown value "stagging" (fix: did you mean staging?)`},
		{"environment:", "environment: has no value"},
		{"target: {url: 'http://x', api: ollama-chat}", "target.model: is missing"},
		{"target: {url: 'http://x', api: openai-chats, model: m}", `target.api: unknown value "openai-chats" (fix: did you mean openai-chat?)`},
		{"target: {api: ollama-chat, model: m}", "target.url: is missing"},
		{url("127.0.0.1:11434"), "target.url: is not a web address"},
		{url("ftp://x"), "target.url: is not a web address"},
		{url("http://:80"), "target.url: is not a web address"},
		{url("http://hunter2@x"), "target.url: holds credentials"},
		{url("http://u:hunter2@x"), "target.url: holds credentials"},
		{url("http://x/?key=hunter2"), "target.url: has a query"},
		{url("http://x/v1/chat/completions"), "target.url: holds the API's own path, which api: stands for (fix: write http://x)"},
		{url("http://x/a/api/chat/"), "target.url: holds the API's own path, which api: stands for (fix: write http://x/a)"},
		{target("metrics: 'http://hunter2@x/metrics'"), "target.metrics: holds credentials"},
		{target("host_metrics: x"), "target.host_metrics: is not a web address"},
		{target("api_key: sk-hunter2"), "target.api_key: must not be written into the plan"},
		{target("api_key: 12345"), "target.api_key: must not be written into the plan"},
		{target("api_key: {env: A, file: b}"), "target.api_key: must name exactly one of env and file"},
		{target("api_key: {}"), "target.api_key: must name exactly one of env and file"},
		{target("api_key: {env: sk-hunter2}"), "target.api_key.env: is not the name of an environment variable"},
		{target("api_key: {file: none.txt}"), "target.api_key.file: can't be read: no such file or directory"},
		{target("headers: {Authorization: Bearer hunter2}"), "target.headers.Authorization: would put a secret into the plan"},
		{target("headers: {Content-Type: x}"), "target.headers.Content-Type: is set by the client itself"},
		{target(`headers: {X-A: "a\nb"}`), "target.headers.X-A: has a control character"},
		{target("headers: {X-A: b, x-a: c}"), "target.headers.x-a: is given twice"},
		{"fixed: {prompts: {}, output_tokens: 1}", "fixed.prompts: must name exactly one of synthetic, file and sharegpt"},
		{"fixed: {prompts: {file: none.jsonl}, output_tokens: 1}", "fixed.prompts.file: none.jsonl can't be read: no such file or directory"},
		{"fixed: {prompts: {file: testdata}, output_tokens: 1}", "fixed.prompts.file: testdata is a folder"},
		{"fixed: {prompts: {synthetic: {input_tokens: 0}}, output_tokens: 1}", "fixed.prompts.synthetic.input_tokens: 0 is not between"},
		{"fixed: {prompts: {synthetic: {}}, output_tokens: 1}", "fixed.prompts.synthetic.input_tokens: is missing"},
		{"fixed: {prompts: {synthetic: {input_tokens: 9}}}", "fixed.output_tokens: is missing"},
		{"fixed: {prompts: {synthetic: {input_tokens: 9}}, output_tokens: 8, context_length: 16}", "fixed.context_length: 16 is less than 9 input and 8 output tokens"},
		{"fixed: {prompts: {synthetic: {input_tokens: 9}}, output_tokens: 8, temperature: warm}", `fixed.temperature: "warm" is not a number`},
		{"restore: {command: reboot}", "restore.command: must be a list (fix: write the program and its arguments one by one"},
		{"restore: {command: []}", "restore.command: is empty"},
		{"restore: {command: [x], request: {url: 'http://x'}}", "restore.request: stands beside command"},
		{"restore: {request: {}}", "restore.request.url: is missing"},
		{"restore: {request: {url: 'http://u:hunter2@x'}}", "restore.request.url: holds credentials"},
		{"apiVersion: firstbreach/v2", `apiVersion: unknown value "firstbreach/v2" (fix: did you mean firstbreach/v1?)`},
	} {
		_, err := Parse("plan.yaml", file(c.line))
		if err == nil {
			t.Errorf("%s is taken", c.line)
			continue
		}
		if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, "plan.yaml:") || !strings.Contains(text, c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.line, err, c.want)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: a secret is repeated: %v", c.line, err)
		}
	}
}

func TestProduction(t *testing.T) {
	if _, err := Parse("plan.yaml", file("environment: production", "ramp: {concurrency: [1, 64]}", "baseline: {concurrency: 65}")); err == nil ||
		err.Error() != "plan.yaml:6: baseline.concurrency: 65 is more than production allows (fix: stay at or below 64, or test a copy with environment: isolated)" {
		t.Errorf("baseline over the cap: %v", err)
	}
	p, err := Parse("plan.yaml", file("environment: production", "ramp: {concurrency: [1, 64]}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckEnvironment(true); err != nil {
		t.Error(err)
	}
	want := "plan.yaml: environment: production: this plan drives http://127.0.0.1:11434 up to 64 requests at once, on a target that serves users " +
		"(fix: pass --allow-production if that is meant, or test a copy with environment: isolated)"
	if err := p.CheckEnvironment(false); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	p.Environment = Staging
	if err := p.CheckEnvironment(false); err != nil {
		t.Error(err)
	}
}

// A bound that is left out gives way to the one that is written.
func TestStepBounds(t *testing.T) {
	for line, want := range map[string]Step{
		"step: {requests: 5, max_duration: 4s}":                    {Requests: 5, MinDuration: 4 * time.Second, MaxDuration: 4 * time.Second},
		"step: {requests: 5, min_duration: 1h}":                    {Requests: 5, MinDuration: time.Hour, MaxDuration: time.Hour},
		"step: {requests: 5, min_duration: 0}":                     {Requests: 5, MaxDuration: 10 * time.Minute},
		"step: {requests: 5, min_duration: 1s, max_duration: 90s}": {Requests: 5, MinDuration: time.Second, MaxDuration: 90 * time.Second},
		"step: {duration: 5s}":                                     {Duration: 5 * time.Second},
	} {
		p, err := Parse("plan.yaml", file(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if diff := cmp.Diff(want, p.Step); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
}

func TestWarnings(t *testing.T) {
	for line, want := range map[string]string{
		"rounds: 2":              "rounds: 2: no verdict can be decided with fewer than 3 rounds",
		"timeouts: {total: 10s}": "timeouts.first_token: 30s is longer than timeouts.total 10s",
		"stop: {ttft_p95: 30s}":  "stop.ttft_p95: no answer takes more than 30s, because the deadline of a request is 30s (set it lower)",
		"stop: {e2e_p95: 5m}":    "stop.e2e_p95: no answer takes more than 5m0s, because the deadline of a request is 2m0s",
		"step: {requests: 10}":   "stop.after: 20 is more than the 10 requests of a step",
		"fixed: {prompts: {synthetic: {input_tokens: 9}}, output_tokens: 1}": "time per output token is undefined",
	} {
		p, err := Parse("plan.yaml", file(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if w := p.Warnings(); len(w) == 0 || !strings.Contains(w[0], want) {
			t.Errorf("%s: warnings %q, want %s", line, w, want)
		}
	}
}

// Whatever is written, Parse answers with a plan that can be driven or with faults.
func FuzzParse(f *testing.F) {
	f.Add(string(file()))
	f.Add(string(file("step: {duration: 5s}", "restore: {command: [x]}")))
	f.Add("a: &a {<<: *a}\ntarget: *a\nramp: {concurrency: [*a, 1]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse("f.yaml", []byte(text))
		if (p == nil) == (err == nil) {
			t.Fatalf("plan %v, error %v", p, err)
		}
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("an error without a text")
			}
			return
		}
		if len(p.Ramp.Levels()) == 0 || p.highest() > MaxConcurrency || p.Rounds < 1 || (p.Step.Requests > 0) == (p.Step.Duration > 0) {
			t.Fatalf("%+v", p)
		}
	})
}
