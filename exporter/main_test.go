package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is a buffer that a test can read while the program writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// started runs the program on a free port until the test ends; stop ends it and returns its status.
func started(t testing.TB, args ...string) (url string, log *output, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log = &output{}
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, append([]string{"--web.listen-address=127.0.0.1:0", "--runtime.gomaxprocs=0"}, args...), io.Discard, log)
	}()
	stop = sync.OnceValue(func() int { cancel(); return <-status })
	t.Cleanup(func() { stop() })
	address := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if m := address.FindStringSubmatch(log.String()); m != nil {
			return "http://" + m[1], log, stop
		}
	}
	t.Fatalf("it does not listen:\n%s", log)
	return "", nil, nil
}

func page(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestServe(t *testing.T) {
	url, log, stop := started(t)
	for path, part := range map[string]string{
		"/metrics":   "host_memory_total_bytes ",
		"/":          `href="/metrics"`,
		"/-/healthy": "OK",
		"/-/ready":   "OK",
	} {
		if code, body := page(t, url+path); code != http.StatusOK || !strings.Contains(body, part) {
			t.Errorf("%s: status %d without %q", path, code, part)
		}
	}
	_, body := page(t, url+"/metrics")
	for _, part := range []string{"nvml_up ", "exporter_build_info{", "go_goroutines "} {
		if !strings.Contains(body, part) {
			t.Errorf("/metrics has no %q", part)
		}
	}
	if code, _ := page(t, url+"/nothing"); code != http.StatusNotFound {
		t.Errorf("/nothing: status %d", code)
	}
	if status := stop(); status != exitOK {
		t.Errorf("status %d after SIGTERM\n%s", status, log)
	}
}

func TestCollectorsOff(t *testing.T) {
	url, _, _ := started(t, "--no-collector.gpu", "--no-web.exporter-metrics", "--web.telemetry-path=/m")
	_, body := page(t, url+"/m")
	if strings.Contains(body, "nvml_up") || strings.Contains(body, "go_goroutines") || !strings.Contains(body, "host_info{") {
		t.Errorf("the page:\n%s", body)
	}
	url, _, _ = started(t, "--no-collector.host")
	if _, body = page(t, url+"/metrics"); strings.Contains(body, "host_info{") || !strings.Contains(body, "nvml_up") {
		t.Errorf("the page:\n%s", body)
	}
}

// A password in the web configuration guards every page.
func TestWebConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	// The hash of a password that nobody needs.
	const users = "basic_auth_users:\n  scraper: $2y$05$0jz9Zv4Jt4Sx3hY8yWb3OuO1o1cJx0m7Tz6f9s2m0c8Qp2yXw9v1K\n"
	if err := os.WriteFile(file, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _, _ := started(t, "--web.config.file="+file)
	if code, _ := page(t, url+"/metrics"); code != http.StatusUnauthorized {
		t.Errorf("status %d without a password, want 401", code)
	}
}

func TestBadFlags(t *testing.T) {
	badConfig := filepath.Join(t.TempDir(), "web.yml")
	if err := os.WriteFile(badConfig, []byte("tls: yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--bogus"}, "--bogus"},
		{[]string{"surplus"}, "surplus"},
		{[]string{"--no-collector.gpu", "--no-collector.host"}, "nothing to collect"},
		{[]string{"--web.telemetry-path=metrics"}, "must begin with /"},
		{[]string{"--web.max-requests=-1"}, "negative"},
		{[]string{"--runtime.gomaxprocs=-1"}, "negative"},
		{[]string{"--collector.gpu.interval=1ms"}, "100ms"},
		{[]string{"--collector.timeout=0s"}, "more than 0"},
		{[]string{"--collector.disable-defaults"}, "nothing to collect"},
		{[]string{"--collector.gpu.timeout=1ms"}, "100ms"},
		{[]string{"--collector.gpu.skip=nvmlNothing"}, "nvmlDeviceGetUtilizationRates"},
		{[]string{"--nvml.exit-on=always"}, "mismatch"},
		{[]string{"--web.timeout-offset=-1s"}, "negative"},
		{[]string{"--web.config.file=/nothing/here.yml"}, "web.config.file"},
		{[]string{"--log.level=loud"}, "loud"},
		{[]string{"--web.config.file=" + badConfig}, "web.config.file"},
	} {
		log := &output{}
		if status := run(t.Context(), c.args, io.Discard, log); status != exitUsage {
			t.Errorf("%v: status %d, want %d", c.args, status, exitUsage)
		}
		if got := log.String(); !strings.Contains(got, c.want) || !strings.Contains(got, "--help") {
			t.Errorf("%v: %s", c.args, got)
		}
	}
}

// A regular expression that can't be used is an error that shows it, never a panic.
func TestBadExpressions(t *testing.T) {
	for _, args := range [][]string{
		{"--collector.disk.device-include=nvme("},
		{"--collector.disk.device-exclude=nvme("},
		{"--collector.process.match=nvme("},
		{"--collector.disk.device-include=nvme(", "--collector.disk.device-exclude=a"},
	} {
		log := &output{}
		status := run(t.Context(), append(args, "--web.listen-address=127.0.0.1:0"), io.Discard, log)
		flag, _, _ := strings.Cut(args[0], "=")
		if status != exitUsage || !strings.Contains(log.String(), "nvme(") || !strings.Contains(log.String(), flag) {
			t.Errorf("%v: status %d: %s", args, status, log)
		}
	}
}

// Only what a flag names is collected when the defaults are off.
func TestDisableDefaults(t *testing.T) {
	url, _, _ := started(t, "--collector.disable-defaults", "--collector.load", "--collector.process.match=exporter")
	_, body := page(t, url+"/metrics")
	if !strings.Contains(body, "host_load_average{") || strings.Contains(body, "host_memory") || strings.Contains(body, "nvml_up") ||
		!strings.Contains(body, "host_process_cpu_seconds_total{") {
		t.Errorf("the page:\n%s", body)
	}
	if code, body := page(t, url+"/metrics?collect[]=load"); code != http.StatusOK || strings.Contains(body, "host_process") {
		t.Errorf("status %d:\n%s", code, body)
	}
	if code, _ := page(t, url+"/metrics?collect[]=cpu"); code != http.StatusBadRequest {
		t.Errorf("status %d for a collector that is off", code)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for flag, want := range map[string]string{"--help": ":10510", "--version": "exporter, version"} {
		out := &output{}
		if status := run(t.Context(), []string{flag}, out, out); status != exitOK || !strings.Contains(out.String(), want) {
			t.Errorf("%s: status %d: %s", flag, status, out)
		}
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	log := &output{}
	status := run(t.Context(), []string{fmt.Sprintf("--web.listen-address=%s", l.Addr()), "--runtime.gomaxprocs=0"}, io.Discard, log)
	if status != exitFailed || !strings.Contains(log.String(), "choose a free one with --web.listen-address") {
		t.Errorf("status %d: %s", status, log)
	}
}

func TestNoProc(t *testing.T) {
	log := &output{}
	dir := t.TempDir() // not a /proc
	for _, path := range []string{dir, dir + "/none"} {
		status := run(t.Context(), []string{"--web.listen-address=127.0.0.1:0", "--path.procfs=" + path}, io.Discard, log)
		if status != exitFailed || !strings.Contains(log.String(), "--path.procfs") {
			t.Errorf("%s: status %d: %s", path, status, log)
		}
	}
}

// The exporter stays small: it is linked into nothing of the load generator, the analysis or the
// Prometheus server.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		for _, no := range []string{"firstbreach/loadgen", "firstbreach/analyze", "github.com/prometheus/prometheus"} {
			if path == no || strings.HasPrefix(path, no+"/") {
				t.Errorf("the exporter imports %s", path)
			}
		}
	}
}
