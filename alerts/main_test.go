package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"firstbreach/internal/generated"
	"firstbreach/internal/signal"
)

// run is one call of the command: its exit status and what it printed.
func run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = command(args, &out, &errs)
	return status, out.String(), errs.String()
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const head = "apiVersion: firstbreach/v1\nservice: SERVICE\nengine: ENGINE\nselectors: {engine: {job: serving}, host: {job: exporter}, probe: {job: probe}}\nowners: {team: {contact: '#team'}}\nobjectives:\n"

func sloFile(service, engine, objectives string) string {
	return strings.NewReplacer("SERVICE", service, "ENGINE", engine).Replace(head) + objectives
}

const success = "- {name: success, layer: user, signal: success_ratio, target: 99%, owner: team, action: Act.}\n"

// The files that lie here are what the shipped SLO file gives.
func TestShippedFilesAreCurrent(t *testing.T) {
	if status, _, stderr := run("--slo", "slo.yaml", "--out", ".", "--check", "-q"); status != generated.ExitDone {
		t.Error(stderr)
	}
}

func TestGenerateCheckAndGrowStale(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	path := write(t, dir, "slo.yaml", sloFile("chat", "vllm", success))
	args := []string{"--slo", path, "--out", out}
	if status, _, stderr := run(append(args, "--check")...); status != generated.ExitFailed || !strings.Contains(stderr, "not current") {
		t.Errorf("check before anything is there: %d %s", status, stderr)
	}
	if status, stdout, stderr := run(args...); status != generated.ExitDone || strings.Count(stdout, "\n") != 4 {
		t.Fatalf("%d %s%s", status, stdout, stderr)
	}
	first, err := os.ReadFile(filepath.Join(out, "chat.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if status, stdout, _ := run(args...); status != generated.ExitDone || !strings.Contains(stdout, "are current") {
		t.Errorf("second time: %d %s", status, stdout)
	}
	if again, _ := os.ReadFile(filepath.Join(out, "chat.rules.yml")); !bytes.Equal(first, again) {
		t.Error("the same input gave other bytes")
	}
	if status, _, stderr := run(append(args, "--check")...); status != generated.ExitDone {
		t.Errorf("check: %s", stderr)
	}

	// A renamed service: its old files go, and a file that a person wrote stays.
	mine := write(t, out, "mine.rules.yml", "groups: []\n")
	write(t, dir, "slo.yaml", sloFile("talk", "vllm", success))
	if status, _, stderr := run(append(args, "--check")...); status != generated.ExitFailed || !strings.Contains(stderr, "talk.rules.yml") || !strings.Contains(stderr, "chat.rules.yml") {
		t.Errorf("check of a stale folder: %d %s", status, stderr)
	}
	if status, _, stderr := run(args...); status != generated.ExitDone {
		t.Fatal(stderr)
	}
	if _, err := os.Stat(filepath.Join(out, "chat.rules.yml")); err == nil {
		t.Error("the old service's rules are still loaded")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error("a file of somebody else was removed")
	}
}

// Rule files and PrometheusRules in one folder: neither format takes the other's files for stale ones.
func TestFormatsShareAFolder(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "slo.yaml", sloFile("chat", "vllm", success))
	plain := []string{"--slo", path, "--out", dir, "-q"}
	object := append(plain, "--format", "kubernetes")
	for _, args := range [][]string{plain, object} {
		if status, _, stderr := run(args...); status != generated.ExitDone {
			t.Fatal(stderr)
		}
	}
	for _, args := range [][]string{plain, object} {
		if status, _, stderr := run(append(args, "--check")...); status != generated.ExitDone {
			t.Errorf("%q: %s", args, stderr)
		}
	}
	write(t, dir, "slo.yaml", sloFile("talk", "vllm", success))
	if status, _, stderr := run(append(object, "--check")...); status != generated.ExitFailed || !strings.Contains(stderr, "not current in "+dir+": talk.prometheusrule.yaml, chat.prometheusrule.yaml;") {
		t.Errorf("%d %s", status, stderr)
	}
}

// Nothing is written when anything is wrong, and everything that is wrong is said.
func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		args  []string
		want  []string
	}{
		{name: "no file", args: []string{"--slo", "DIR/none.yaml"}, want: []string{"none.yaml: can't be read: no such file"}},
		{name: "two objectives of one name", files: map[string]string{"a.yaml": sloFile("a", "vllm", success+success)},
			want: []string{"DIR/a.yaml:8: objectives[1]: the name success is used twice, first on line 7 (fix: give each objective a name of its own)"}},
		{name: "an owner without contact", files: map[string]string{"a.yaml": strings.Replace(sloFile("a", "vllm", success), "{contact: '#team'}", "{}", 1)},
			want: []string{`DIR/a.yaml:5: owners.team.contact: is missing (fix: write {contact: "#channel"})`}},
		{name: "unknown engine", files: map[string]string{"a.yaml": sloFile("a", "vlm", success)}, want: []string{`DIR/a.yaml:3: engine: unknown value "vlm" (fix: did you mean vllm?)`}},
		{name: "a threshold off every bucket, beside another fault", files: map[string]string{
			"a.yaml": sloFile("a", "vllm", success+"- {name: ttft, layer: user, signal: time_to_first_token, p95: 2s, owner: team, action: Act.}\n"),
			"b.yaml": sloFile("b", "llamacpp", success+"- {name: kv, layer: service, signal: kv_cache_usage, max: 90%, owner: team, action: Act.}\n")},
			want: []string{"DIR/a.yaml:8: objective ttft: threshold: 2s is between two bucket edges of vllm:time_to_first_token_seconds, so that no rule could answer it exactly (fix: write 1s or 2.5s, or read the objective from the probe", "DIR/b.yaml:8: objective kv: signal: llama.cpp"}},
		{name: "a receiver that isn't there", files: map[string]string{"a.yaml": strings.Replace(sloFile("a", "vllm", success), "#team", "receiver:nobody", 1)},
			want: []string{`DIR/a.yaml:5: owners.team.contact: "receiver:nobody" can't be made a receiver (fix: name the file that has receiver nobody with --alertmanager.base)`}},
		{name: "a receiver that isn't in the base file", files: map[string]string{"a.yaml": strings.Replace(sloFile("a", "vllm", success), "#team", "receiver:nobody", 1), "base.yml": "receivers: [{name: somebody}]\n"},
			args: []string{"--alertmanager.base", "DIR/base.yml"},
			want: []string{`DIR/a.yaml:5: owners.team.contact: "receiver:nobody" can't be made a receiver (fix: add receiver nobody to DIR/base.yml, or name one that is there)`}},
		{name: "an owner with two contacts", files: map[string]string{"a.yaml": sloFile("a", "vllm", success), "b.yaml": strings.Replace(sloFile("b", "vllm", success), "#team", "#other", 1)},
			want: []string{`DIR/b.yaml:5: owners.team.contact: is "#other" here and "#team" in DIR/a.yaml (fix: write the same contact in both, or give the owners different names)`}},
		{name: "one service in two files", files: map[string]string{"a.yaml": sloFile("a", "vllm", success), "b.yaml": sloFile("a", "vllm", success)},
			want: []string{"b.yaml: service: a is the service of"}},
		{name: "a base file with routes", files: map[string]string{"a.yaml": sloFile("a", "vllm", success), "base.yml": "route: {receiver: x}\n"},
			args: []string{"--alertmanager.base", "DIR/base.yml"}, want: []string{"base.yml:", "keep global: and receivers: only"}},
		{name: "a capacity that's none", files: map[string]string{"a.yaml": sloFile("a", "vllm", success), "capacity.yaml": "service: a\n"},
			want: []string{"capacity.yaml:1: concurrency: is missing"}},
		{name: "a service that can't name an object", files: map[string]string{"a.yaml": sloFile("Chat_1", "vllm", success)},
			args: []string{"--format", "kubernetes"}, want: []string{`a.yaml: service: "Chat_1" can't be in the name of a Kubernetes object`, "use lower-case letters"}},
		{name: "a format that isn't there", args: []string{"--format", "helm"}, want: []string{"one of prometheus,kubernetes, got 'helm'"}},
		{name: "a flag that isn't there", args: []string{"--colour"}, want: []string{"unknown long flag '--colour'", "alerts --help"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			args := []string{"--out", out}
			for name, text := range c.files {
				write(t, dir, name, text)
			}
			for _, name := range []string{"a.yaml", "b.yaml"} {
				if _, ok := c.files[name]; ok {
					args = append(args, "--slo", filepath.Join(dir, name))
				}
			}
			for _, a := range c.args {
				args = append(args, strings.Replace(a, "DIR", dir, 1))
			}
			status, _, stderr := run(args...)
			if status != generated.ExitUsage {
				t.Errorf("status %d, want %d", status, generated.ExitUsage)
			}
			for _, w := range c.want {
				if w = strings.ReplaceAll(w, "DIR", dir); !strings.Contains(stderr, w) {
					t.Errorf("it doesn't say %q:\n%s", w, stderr)
				}
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("something was written")
			}
		})
	}
}

// A folder that can't be written is said, and is no fault of the SLO file.
func TestFolderThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "slo.yaml", sloFile("chat", "vllm", success))
	out := write(t, dir, "out", "a file where a folder should be")
	if status, _, stderr := run("--slo", path, "--out", out, "-q"); status != generated.ExitFailed ||
		!strings.Contains(stderr, "the folder can't be written: mkdir "+out+": not a directory (fix: make it writable for this user, or name another with --out)") {
		t.Errorf("%d %s", status, stderr)
	}
}

// The rules of every engine pass the checks and the generated tests of a real promtool, and the
// routing those of a real amtool.
func TestWithRealTools(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool here")
	}
	dir := t.TempDir()
	var args []string
	for _, engine := range signal.Names() {
		objectives := success
		if engine != signal.LlamaCPP && engine != signal.TGI {
			edge := "10s"
			if engine == signal.Triton {
				edge = "5s"
			}
			objectives += "- {name: ttft, layer: user, signal: time_to_first_token, p90: " + edge + ", owner: team, action: 'Look at {{ it }}: \"now\" # please', runbook: 'https://r.example.com/{{x}}'}\n"
		}
		if engine == signal.Probe {
			objectives += "- {name: timeouts, layer: user, signal: timeout_ratio, target: 99%, owner: team, action: Act.}\n"
			objectives += "- {name: recovery, layer: user, signal: recovery, within: 2m, owner: team, action: Act.}\n"
		}
		args = append(args, "--slo", write(t, dir, engine+".yaml", sloFile(engine, engine, objectives)))
	}
	if status, _, stderr := run(append(args, "--out", dir, "-q", "--dashboard.url", "http://g:3000", "--report.url", "http://a:10512")...); status != generated.ExitDone {
		t.Fatal(stderr)
	}
	for _, engine := range signal.Names() {
		checks := [][]string{{"check", "rules", engine + ".rules.yml"}}
		switch engine { // one of each way to count; a month's window makes promtool slow
		case signal.VLLM, signal.OTel, signal.Probe, signal.TGI:
			checks = append(checks, []string{"test", "rules", engine + ".rules_test.yml"})
		}
		for _, check := range checks {
			cmd := exec.Command(promtool, check...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("promtool %v: %v\n%s", check, err, out)
			}
		}
	}
	amtool, err := exec.LookPath("amtool")
	if err != nil {
		t.Log("no amtool here")
		return
	}
	if out, err := exec.Command(amtool, "check-config", filepath.Join(dir, "alertmanager.yml")).CombinedOutput(); err != nil {
		t.Errorf("amtool: %v\n%s", err, out)
	}
}
