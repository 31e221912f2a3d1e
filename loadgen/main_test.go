package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"firstbreach/loadgen/record"
)

// asProgram makes the test binary behave as the program itself, so that a test can kill it.
const asProgram = "FIRSTBREACH_TEST_AS_LOADGEN"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// endpoint is an OpenAI server that answers in a moment, and counts.
type endpoint struct {
	*httptest.Server
	met             atomic.Bool // the one request that comes before a run; in no count
	begun, finished atomic.Int64
	slow            atomic.Bool // answers don't end
	resets          atomic.Int64
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reset", func(http.ResponseWriter, *http.Request) { e.resets.Add(1) })
	mux.HandleFunc("POST /v1/chat/completions", e.chat)
	e.Server = httptest.NewServer(mux)
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) chat(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	first := e.met.CompareAndSwap(false, true)
	if !first {
		e.begun.Add(1)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, word := range []string{"one", " two", " three"} {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(3 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
	if e.slow.Load() && !first {
		<-r.Context().Done()
		return
	}
	fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"+
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3,\"total_tokens\":12}}\n\ndata: [DONE]\n\n")
	if !first {
		e.finished.Add(1)
	}
}

// files writes a plan for the endpoint and an SLO file, and returns the arguments that name them.
func files(t *testing.T, e *endpoint, change func(plan string) string) (args []string, dir string) {
	t.Helper()
	base := t.TempDir()
	plan := fmt.Sprintf(`apiVersion: firstbreach/v1
environment: isolated
target: {url: %q, api: openai-chat, model: m}
fixed: {prompts: {synthetic: {input_tokens: 32}}, output_tokens: 3}
rounds: 3
baseline: {concurrency: 1}
ramp: {concurrency: [1, 2]}
recovery: {concurrency: 1}
step: {requests: 20, min_duration: 100ms, max_duration: 1m}
cooldown: 0s
restore: {request: {method: POST, url: %q}}
`, e.URL, e.URL+"/reset")
	if change != nil {
		plan = change(plan)
	}
	slo := `apiVersion: firstbreach/v1
service: test
engine: vllm
owners: {us: {contact: "#us"}}
objectives:
- {name: ttft, layer: user, signal: time_to_first_token, threshold: 500ms, target: 95%, owner: us, action: look}
`
	for name, text := range map[string]string{"plan.yaml": plan, "slo.yaml": slo} {
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir = filepath.Join(base, "run")
	return []string{
		"run", "--plan", filepath.Join(base, "plan.yaml"), "--slo", filepath.Join(base, "slo.yaml"), "--out", dir, "--run-id", "r1",
		"--web.listen-address", "127.0.0.1:0", "--scrape.wait", "0s", "--scrape.final-wait", "20s",
	}, dir
}

// with sets a flag that may be there already.
func with(args []string, flag, value string) []string {
	if i := slices.Index(args, flag); i >= 0 {
		return slices.Concat(args[:i], []string{flag, value}, args[i+2:])
	}
	return append(args, flag, value)
}

// program is the program as a process of its own.
type program struct {
	*exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer // what it said
}

func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *program) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func launch(t *testing.T, args ...string) *program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{Cmd: exec.CommandContext(t.Context(), exe, args...)}
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stdout, p.Stderr = p, p
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		if t.Failed() {
			t.Log(p.said())
		}
	})
	return p
}

// exit waits for the program and returns its status.
func (p *program) exit(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

var metricsURL = regexp.MustCompile(`metrics at (http://\S+)`)

// scrape scrapes the program's page as often as a very quick Prometheus, until the test ends. What it
// returns gives the last page.
func (p *program) scrape(t *testing.T) (last func() string) {
	t.Helper()
	until(t, "the page is served", func() bool { return metricsURL.MatchString(p.said()) })
	url := metricsURL.FindStringSubmatch(p.said())[1]
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var page atomic.Value
	page.Store("")
	client := &http.Client{}
	wg.Go(func() {
		for ctx.Err() == nil {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", "1")
			if res, err := client.Do(req); err == nil {
				if b, err := io.ReadAll(res.Body); err == nil && len(b) > 0 {
					page.Store(string(b))
				}
				res.Body.Close()
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait(); client.CloseIdleConnections() })
	return func() string { return page.Load().(string) }
}

func read(t *testing.T, dir string) (record.Manifest, []record.Entry) {
	t.Helper()
	m, err := record.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := record.ReadLedger(filepath.Join(dir, record.LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	return m, entries
}

// counted is the number of finished requests by the manifest.
func counted(m record.Manifest) (n int) {
	for _, s := range m.Steps {
		for _, t := range s.Totals {
			for _, c := range t.Outcomes {
				n += c
			}
		}
	}
	return n
}

func TestRun(t *testing.T) {
	e := newEndpoint(t)
	args, dir := files(t, e, nil)
	p := launch(t, with(args, "--scrape.wait", "20s")...)
	p.scrape(t)
	if status := p.exit(t); status != 0 {
		t.Fatalf("exit status %d: %s", status, p.said())
	}
	m, entries := read(t, dir)
	if m.State != record.Complete || m.FinalScrape != "confirmed" || len(m.Steps) != 12 || m.Restore != "done" {
		t.Errorf("the run is %s, final scrape %s, %d steps, restore %s", m.State, m.FinalScrape, len(m.Steps), m.Restore)
	}
	if n := int(e.finished.Load()); len(entries) != n || counted(m) != n {
		t.Errorf("%d requests finished; the ledger has %d, the manifest %d", n, len(entries), counted(m))
	}
	if e.resets.Load() != 1 {
		t.Errorf("the target was put back %d times", e.resets.Load())
	}
	for _, want := range []string{
		"preflight: ttft (95%): 59 requests without a miss decide it, the plan measures 3 rounds x 20 = 60 at each level: enough",
		"round 3/3  recovery  step 4/4  concurrency 1  ",
		"run r1 is complete (final values: confirmed)",
	} {
		if !strings.Contains(p.said(), want) {
			t.Errorf("it didn't say %q:\n%s", want, p.said())
		}
	}
}

// kill -9 in the middle of a step leaves a ledger to the last finished request and a manifest
// that says that the run isn't over.
func TestKilled(t *testing.T) {
	e := newEndpoint(t)
	args, dir := files(t, e, func(plan string) string {
		return strings.Replace(plan, "requests: 20", "requests: 100000", 1)
	})
	p := launch(t, args...)
	until(t, "some requests have finished", func() bool { return e.finished.Load() > 50 })
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.exit(t)
	time.Sleep(50 * time.Millisecond) // the last handler may be about to count
	m, entries := read(t, dir)
	// One slot: what the client has not yet noted is at most the request that was just ending.
	if n := int(e.finished.Load()); len(entries) < n-1 || len(entries) > n {
		t.Errorf("%d requests finished, the ledger has %d", n, len(entries))
	}
	if m.State != record.Running || len(m.Steps) != 1 || m.Steps[0].EndedAt != nil {
		t.Errorf("the manifest says %s, %d steps, ended at %v", m.State, len(m.Steps), m.Steps[0].EndedAt)
	}
}

func TestCtrlC(t *testing.T) {
	t.Run("once: what is in flight ends, and all is kept", func(t *testing.T) {
		e := newEndpoint(t)
		args, dir := files(t, e, func(plan string) string {
			return strings.Replace(plan, "requests: 20", "requests: 100000", 1)
		})
		p := launch(t, args...)
		p.scrape(t)
		until(t, "some requests have finished", func() bool { return e.finished.Load() > 50 })
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if status := p.exit(t); status != exitFailed {
			t.Errorf("exit status %d: %s", status, p.said())
		}
		m, entries := read(t, dir)
		if m.State != record.Interrupted || m.FinalScrape != "confirmed" ||
			m.Reason != "interrupted by interrupt in round 1, baseline step 1, concurrency 1" || m.Steps[0].Stopped != "interrupted" {
			t.Errorf("the manifest says %s, %q, step %q, final scrape %q", m.State, m.Reason, m.Steps[0].Stopped, m.FinalScrape)
		}
		if n := int(e.finished.Load()); len(entries) != n || counted(m) != n {
			t.Errorf("%d requests finished; the ledger has %d, the manifest %d", n, len(entries), counted(m))
		}
		if e.resets.Load() != 1 {
			t.Errorf("the target was put back %d times", e.resets.Load())
		}
	})
	t.Run("twice: at once, with a manifest", func(t *testing.T) {
		e := newEndpoint(t)
		e.slow.Store(true)
		args, dir := files(t, e, nil)
		p := launch(t, args...)
		until(t, "a request is in flight", func() bool { return e.begun.Load() > 0 })
		for _, said := range []string{"once more to quit at once", ""} {
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			until(t, "it has heard the signal", func() bool { return strings.Contains(p.said(), said) })
		}
		began := time.Now()
		if status := p.exit(t); status != exitFailed {
			t.Errorf("exit status %d: %s", status, p.said())
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		m, entries := read(t, dir)
		if m.State != record.Interrupted || len(entries) != 1 || entries[0].Outcome != "aborted" || counted(m) != 1 {
			t.Errorf("the manifest says %s; the ledger has %+v", m.State, entries)
		}
		if e.resets.Load() != 1 {
			t.Errorf("the target was put back %d times", e.resets.Load())
		}
	})
}

// Everything that is wrong is said before the first request.
func TestRefusesBeforeTheFirstRequest(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	replace := func(old, with string) func(string) string {
		return func(plan string) string { return strings.Replace(plan, old, with, 1) }
	}
	tests := map[string]struct {
		change func(plan string) string
		args   []string
		status int
		says   []string
	}{
		"a port in use":            {nil, []string{"--web.listen-address", taken.Addr().String()}, exitFailed, []string{"address already in use", "--web.listen-address"}},
		"no such SLO file":         {nil, []string{"--slo", "/no/such/slo.yaml"}, exitUsage, []string{"/no/such/slo.yaml"}},
		"no such plan either":      {nil, []string{"--slo", "/no/such/slo.yaml", "--plan", "/no/such/plan.yaml"}, exitUsage, []string{"/no/such/slo.yaml", "/no/such/plan.yaml"}},
		"concurrency 0":            {replace("[1, 2]", "[0, 2]"), nil, exitUsage, []string{"plan.yaml:7", "ramp.concurrency"}},
		"concurrency 8x":           {replace("[1, 2]", `[1, "8x"]`), nil, exitUsage, []string{"plan.yaml:7", "8x"}},
		"production, not allowed":  {replace("isolated", "production"), nil, exitUsage, []string{"--allow-production"}},
		"a run ID with a slash":    {nil, []string{"--run-id", "a/b"}, exitUsage, []string{"run ID"}},
		"a directory in use":       {nil, []string{"--out", "."}, exitUsage, []string{"not empty", "--out"}},
		"a web config that isn't":  {nil, []string{"--web.config.file", "/no/such/web.yml"}, exitUsage, []string{"--web.config.file"}},
		"a flag that isn't":        {nil, []string{"--turbo", "1"}, exitUsage, []string{"turbo", "--help"}},
		"access to no Prometheus":  {nil, []string{"--http.config.file", "http.yml"}, exitUsage, []string{"--http.config.file", "--prometheus.url", "missing"}},
		"access that isn't a file": {nil, []string{"--prometheus.url", "http://127.0.0.1:1", "--http.config.file", "/no/such/http.yml"}, exitUsage, []string{"--http.config.file", "/no/such/http.yml", "authorization"}},
		"a Prometheus that isn't":  {nil, []string{"--prometheus.url", "::"}, exitUsage, []string{"--prometheus.url"}},
		"nobody at the target": {func(plan string) string {
			return regexp.MustCompile(`target: \{url: "[^"]*"`).ReplaceAllString(plan, `target: {url: "http://127.0.0.1:1"`)
		}, nil, exitUsage, []string{"http://127.0.0.1:1", "refused", "target.url"}},
		"a duration that isn't": {nil, []string{"--scrape.wait", "soon"}, exitUsage, []string{"soon"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t)
			args, _ := files(t, e, tc.change)
			for i := 0; i < len(tc.args); i += 2 {
				args = with(args, tc.args[i], tc.args[i+1])
			}
			var out bytes.Buffer
			status := command(t.Context(), args, &out, &out)
			if status != tc.status {
				t.Errorf("exit status %d, want %d", status, tc.status)
			}
			for _, want := range tc.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it doesn't say %q:\n%s", want, out.String())
				}
			}
			if e.met.Load() || e.resets.Load() > 0 {
				t.Error("the target was called")
			}
		})
	}
}

func TestVersionAndHelp(t *testing.T) {
	for arg, want := range map[string]string{"--version": "loadgen ", "--help": "Run a plan against its target"} {
		p := launch(t, arg)
		if status := p.exit(t); status != exitDone || !strings.Contains(p.said(), want) {
			t.Errorf("%s: exit status %d: %s", arg, status, p.said())
		}
	}
}

func TestSim(t *testing.T) {
	p := launch(t, "sim", "--web.listen-address", "127.0.0.1:0")
	until(t, "it serves", func() bool { return strings.Contains(p.said(), "simulated engine is serving") })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := p.exit(t); status != exitDone {
		t.Errorf("exit status %d: %s", status, p.said())
	}
	var out bytes.Buffer
	if status := command(t.Context(), []string{"sim", "--slots", "-1"}, &out, &out); status != exitUsage {
		t.Errorf("exit status %d: %s", status, out.String())
	}
}
