package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firstbreach/analyze/store"
)

// TestBadInput says of each mistake what a person is told, and that nothing was started: no run directory
// is left.
func TestBadInput(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, c := range map[string]struct {
		args   []string
		files  map[string]string
		status int
		says   []string
	}{
		"unknown flag":           {args: []string{"standalone", "--tarket=x"}, status: exitUsage, says: []string{"--tarket", "analyze --help"}},
		"API without target":     {args: []string{"standalone", "--api=openai-chat"}, status: exitUsage, says: []string{"--api", "--target URL"}},
		"target without model":   {args: []string{"standalone", "--target=http://127.0.0.1:1", "--api=openai-chat"}, status: exitUsage, says: []string{"--model"}},
		"unknown API":            {args: []string{"standalone", "--target=http://127.0.0.1:1", "--api=openai", "--model=m"}, status: exitUsage, says: []string{"openai-chat"}},
		"unreadable SLO file":    {args: []string{"standalone", "--slo=DIR/none.yaml"}, status: exitUsage, says: []string{"DIR/none.yaml", "no such file"}},
		"unreadable plan":        {args: []string{"standalone", "--plan=DIR/none.yaml"}, status: exitUsage, says: []string{"DIR/none.yaml", "no such file"}},
		"concurrency 0 and 8x":   {args: []string{"standalone", "--plan=DIR/plan.yaml"}, files: map[string]string{"plan.yaml": badPlan}, status: exitUsage, says: []string{"DIR/plan.yaml:7", "ramp.concurrency[0]", "ramp.concurrency[1]", "8x"}},
		"target of 100 %":        {args: []string{"standalone", "--slo=DIR/slo.yaml"}, files: map[string]string{"slo.yaml": badSLO}, status: exitUsage, says: []string{"DIR/slo.yaml:8", "objectives[0].target", "100%"}},
		"action without owner":   {args: []string{"standalone", "--slo=DIR/slo.yaml"}, files: map[string]string{"slo.yaml": badSLO}, status: exitUsage, says: []string{"objectives[1]", "owner"}},
		"port in use":            {args: []string{"standalone", "--loadgen.listen-address=" + taken.Addr().String()}, status: exitUsage, says: []string{"--loadgen.listen-address", "in use"}},
		"store's port in use":    {args: []string{"standalone", "--store.listen-address=" + taken.Addr().String()}, status: exitUsage, says: []string{"--store.listen-address", "in use"}},
		"unknown scenario":       {args: []string{"known-answers", "--scenario=slotbound"}, status: exitUsage, says: []string{"slotbound", "slot-bound"}},
		"no runs":                {args: []string{"known-answers", "--runs=0"}, status: exitUsage, says: []string{"--runs"}},
		"unknown verdict":        {args: []string{"standalone", "--fail-on=breech"}, status: exitUsage, says: []string{"--fail-on", "breech", "inconclusive"}},
		"report of nothing":      {args: []string{"report"}, status: exitUsage, says: []string{"--run", "--prometheus.url"}},
		"budget of no search":    {args: []string{"standalone", "--search.max=8"}, status: exitUsage, says: []string{"--search.max", "--search"}},
		"search downward":        {args: []string{"standalone", "--search", "--search.min=9", "--search.max=8"}, status: exitUsage, says: []string{"--search.max 8", "--search.min 9"}},
		"nine looks":             {args: []string{"standalone", "--search", "--search.looks=9"}, status: exitUsage, says: []string{"--search.looks 9", "1 to 5"}},
		"search too high":        {args: []string{"standalone", "--search", "--search.max=5000"}, status: exitUsage, says: []string{"--search.max 5000", "4096"}},
		"search of rates":        {args: []string{"standalone", "--search", "--plan=DIR/plan.yaml"}, files: map[string]string{"plan.yaml": ratePlan}, status: exitUsage, says: []string{"DIR/plan.yaml", "ramp.rate", "step.duration", "soak", "--search"}},
		"run ID with spaces":     {args: []string{"standalone", "--run-id=ä b"}, status: exitUsage, says: []string{"--run-id", "letters"}},
		"key that isn't there":   {args: []string{"standalone", "--target=http://127.0.0.1:1", "--api=openai-chat", "--model=m", "--api-key-env=FIRSTBREACH_NO_SUCH_KEY"}, status: exitUsage, says: []string{"FIRSTBREACH_NO_SUCH_KEY"}},
		"nobody at the target":   {args: []string{"standalone", "--target=http://127.0.0.1:1", "--api=openai-chat", "--model=m"}, status: exitUsage, says: []string{"http://127.0.0.1:1", "refused", "--target"}},
		"report of no run":       {args: []string{"report", "--run=DIR"}, status: exitUsage, says: []string{"DIR", "manifest.json", "runs/"}},
		"address without http":   {args: []string{"report", "--run-id=r", "--slo=../alerts/slo.yaml", "--prometheus.url=127.0.0.1:9090"}, status: exitUsage, says: []string{"--prometheus.url", "http://127.0.0.1:9090"}},
		"report of a file":       {args: []string{"report", "--run=main.go"}, status: exitUsage, says: []string{"main.go", "manifest.json"}},
		"compare with no run":    {args: []string{"compare", "DIR", "none", "--runs=DIR"}, status: exitUsage, says: []string{"report.json", "analyze report --run"}},
		"compare with no ID":     {args: []string{"compare", "none", "none", "--runs=DIR"}, status: exitUsage, says: []string{"none", "nor the ID of a run in DIR"}},
		"compare with itself":    {args: []string{"compare", "../docs/examples/vllm", "../docs/examples/vllm"}, status: exitUsage, says: []string{"with itself", "vtry-4b"}},
		"compare on breach":      {args: []string{"compare", "a", "b", "--fail-on=breach"}, status: exitUsage, says: []string{"--fail-on", "regression"}},
		"list of no folder":      {args: []string{"list", "DIR/none"}, status: exitUsage, says: []string{"DIR/none", "no folder"}},
		"store without data":     {args: []string{"store", "--run=DIR"}, status: exitUsage, says: []string{"DIR", "runs/"}},
		"window off every edge":  {args: []string{"window", "--slo=DIR/slo.yaml", "--prometheus.url=http://127.0.0.1:1"}, files: map[string]string{"slo.yaml": offEdgeSLO}, status: exitUsage, says: []string{"DIR/slo.yaml:7: objective ttft: threshold: 700ms is between two bucket edges of vllm:time_to_first_token_seconds", "(fix: write 500ms or 750ms"}},
		"serve off every edge":   {args: []string{"serve", "--config=DIR/serve.yaml"}, files: map[string]string{"slo.yaml": offEdgeSLO, "serve.yaml": offEdgeServe}, status: exitUsage, says: []string{"DIR/slo.yaml:7: objective ttft: threshold: 700ms is between two bucket edges of vllm:time_to_first_token_seconds", "(fix: write 500ms or 750ms"}},
		"serve that never fires": {args: []string{"serve", "--config=DIR/serve.yaml"}, files: map[string]string{"serve.yaml": strings.Replace(offEdgeServe, "30 6 * * *", "0 0 31 4 *", 1)}, status: exitUsage, says: []string{`DIR/serve.yaml:6: schedules[0].cron: "0 0 31 4 *" never fires (fix: correct the day of month or the month: that day doesn't exist)`}},
		"serve into a file":      {args: []string{"serve", "--config=DIR/serve.yaml"}, files: map[string]string{"reports": "", "serve.yaml": offEdgeServe}, status: exitUsage, says: []string{"DIR/serve.yaml:4: reports: reports can't be written to DIR/reports", "(fix: make it writable for this user, or name another folder)"}},
		"window into a file":     {args: []string{"window", "--slo=../alerts/slo.yaml", "--prometheus.url=http://127.0.0.1:1", "--out=main.go"}, status: exitUsage, says: []string{"main.go", "--out"}},
		"report into a file":     {args: []string{"report", "--run-id=r", "--slo=../alerts/slo.yaml", "--prometheus.url=http://127.0.0.1:1", "--out=main.go"}, status: exitUsage, says: []string{"main.go", "--out"}},
		"Prometheus that is off": {args: []string{"report", "--run-id=r", "--slo=../alerts/slo.yaml", "--prometheus.url=http://127.0.0.1:1"}, status: exitFailed, says: []string{"http://127.0.0.1:1", "refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			args := append([]string{}, c.args...)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "DIR", dir)
			}
			out := filepath.Join(dir, "run")
			if len(args) > 0 && args[0] == "standalone" {
				args = append(args, "--out="+out)
			}
			var stdout, stderr bytes.Buffer
			if status := run(args, &stdout, &stderr); status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			for _, want := range c.says {
				if want = strings.ReplaceAll(want, "DIR", dir); !strings.Contains(stderr.String(), want) {
					t.Errorf("does not say %q:\n%s", want, stderr.String())
				}
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("a run directory was made")
			}
		})
	}
}

// TestHelp is printed once, whatever it is asked of.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"report", "--help"}, {"help"}, {}} {
		var stdout, stderr bytes.Buffer
		if status := run(args, &stdout, &stderr); status != 0 {
			t.Errorf("%q: status %d: %s", args, status, stderr.String())
		}
		if n := strings.Count(stdout.String()+stderr.String(), "usage: "); n != 1 {
			t.Errorf("%q: the usage is printed %d times", args, n)
		}
	}
}

const badPlan = `apiVersion: firstbreach/v1
environment: isolated
target: {url: "http://127.0.0.1:1", api: openai-chat, model: m}
fixed:
  prompts: {synthetic: {input_tokens: 32}}
  output_tokens: 8
ramp: {concurrency: [0, 8x]}
`

const ratePlan = `apiVersion: firstbreach/v1
environment: isolated
target: {url: "http://127.0.0.1:1", api: openai-chat, model: m}
fixed:
  prompts: {synthetic: {input_tokens: 32}}
  output_tokens: 8
ramp: {rate: [1, 2]}
soak: {rate: 1, duration: 10s}
step: {duration: 10s}
`

const badSLO = `apiVersion: firstbreach/v1
service: s
engine: vllm
window: 30d
owners:
  team: {contact: "#team"}
objectives:
- {name: a, layer: user, signal: success_ratio, target: 100%, owner: team, action: Look.}
- {name: b, layer: user, signal: timeout_ratio, target: 99%, action: Look.}
`

func TestDataDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(dir, "prometheus")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var stdout, stderr bytes.Buffer
	if status := run([]string{"store", "--run=" + dir, "--web.listen-address=127.0.0.1:0"}, &stdout, &stderr); status != exitFailed || !strings.Contains(stderr.String(), dir) {
		t.Errorf("status %d: %s", status, stderr.String())
	}
}

func TestHelpAndVersion(t *testing.T) {
	for arg, want := range map[string]string{"--help": "standalone", "--version": "analyze "} {
		var stdout, stderr bytes.Buffer
		if status := run([]string{arg}, &stdout, &stderr); status != 0 || !strings.Contains(stdout.String()+stderr.String(), want) {
			t.Errorf("%s: status %d, %q %q", arg, status, stdout.String(), stderr.String())
		}
	}
}

// offEdgeSLO has a threshold between two bucket edges of its engine; offEdgeServe watches it.
const offEdgeSLO = `apiVersion: firstbreach/v1
service: chat
engine: vllm
selectors: {engine: {job: vllm}}
owners: {platform: {contact: '#platform'}}
objectives:
- {name: ttft, layer: user, signal: time_to_first_token, p95: 700ms, owner: platform, action: Cap concurrency.}
`

const offEdgeServe = `apiVersion: firstbreach/v1
prometheus: http://127.0.0.1:1
slo: [slo.yaml]
reports: reports
schedules:
- {name: daily, cron: '30 6 * * *', window: 24h, keep: 3d}
`
