package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"firstbreach/analyze/store"
)

// memoryBound is what `analyze serve` may take in RAM with 100 SLO files.
const memoryBound = 100 << 20

// served is `analyze serve` as a process of its own: without the race detector, which takes several times
// the memory.
type served struct {
	testing.TB
	dir, address string
	cmd          *exec.Cmd
	log          bytes.Buffer
	client       *http.Client
}

// program builds analyze as it is released.
func program(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "analyze")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

func freePort(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startServe runs a configuration until the test ends.
func startServe(tb testing.TB, binary, dir string, flags ...string) *served {
	tb.Helper()
	s := &served{TB: tb, dir: dir, address: freePort(tb), client: http.DefaultClient}
	s.cmd = exec.Command(binary, append([]string{"serve", "--config", filepath.Join(dir, "serve.yaml"), "--web.listen-address", s.address}, flags...)...)
	s.cmd.Stderr = &s.log
	if err := s.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.stop)
	return s
}

// stop ends the process and waits for it, so that its log may be read.
func (s *served) stop() {
	if s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		s.Errorf("analyze serve: %v\n%s", err, s.log.String())
	}
}

// page is what a GET of a URL gives; "" while nobody answers.
func (s *served) page(url string) string {
	resp, err := s.client.Get(url)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(body)
}

// wait waits until something is so.
func (s *served) wait(what string, is func() bool) {
	s.Helper()
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
	}
	s.stop()
	s.Fatalf("no %s\n%s", what, s.log.String())
}

// made waits until every service has its report.
func (s *served) made(services int) {
	s.Helper()
	made := regexp.MustCompile(`(?m)^firstbreach_report_last_success_timestamp_seconds\{.*\} 1\.`)
	s.wait("reports", func() bool {
		return len(made.FindAllString(s.page("http://"+s.address+"/metrics"), -1)) == services
	})
}

// resident is the most memory that the process has had in RAM so far, bytes.
func (s *served) resident() float64 {
	s.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		s.Fatalf("no VmHWM:\n%s", status)
	}
	kib, _ := strconv.ParseFloat(string(m[1]), 64)
	return kib * 1024
}

// production is a Prometheus that has seen so many services for six hours: all of them busy, and every
// tenth broken in the fourth.
func production(tb testing.TB, services int, end time.Time) string {
	tb.Helper()
	const interval, span = 30, 6 * 3600
	dir := tb.TempDir()
	db, err := tsdb.Open(dir, nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	good := make([]float64, services)
	for second := 0; second <= span; second += interval { // Prometheus takes no samples much older than its newest
		app := db.Appender(tb.Context())
		all := 2 * float64(second)
		for n := range services {
			share := 0.99
			if n%10 == 0 && second/3600 == 3 {
				share = 0.5
			}
			good[n] += 2 * interval * share
			at := end.Add(time.Duration(second-span) * time.Second)
			if err := scraped(app, n, at, all+2*interval, good[n], 800*(1-share)); err != nil {
				tb.Fatal(err)
			}
		}
		if err := app.Commit(); err != nil {
			tb.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
	s, err := store.Open(tb.Context(), store.Options{Dir: dir, ReadOnly: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s.URL()
}

// scraped is what one scrape of a vLLM gives of what the shipped SLO file asks for.
func scraped(app storage.Appender, service int, at time.Time, all, good, waiting float64) error {
	var errs []error
	put := func(v float64, name string, more ...string) {
		l := labels.FromStrings(append([]string{"__name__", name, "job", job(service), "instance", "a:1", "model_name", "m"}, more...)...)
		_, err := app.Append(0, l, at.UnixMilli(), v)
		errs = append(errs, err)
	}
	for family, le := range map[string]string{"vllm:time_to_first_token_seconds": "0.75", "vllm:e2e_request_latency_seconds": "10", "vllm:request_time_per_output_token_seconds": "0.1"} {
		put(good, family+"_bucket", "le", le)
		put(all, family+"_bucket", "le", "+Inf")
		put(all, family+"_count")
	}
	for status, v := range map[string]float64{"2xx": good, "5xx": all - good} {
		put(v, "http_requests_total", "handler", "/v1/chat/completions", "method", "POST", "status", status)
	}
	put(3, "vllm:num_requests_running")
	put(waiting, "vllm:num_requests_waiting")
	put(0.4, "vllm:kv_cache_usage_perc")
	put(1, "up")
	return errors.Join(errs...)
}

func job(n int) string { return fmt.Sprintf("vllm-%03d", n) }

func service(n int) string { return fmt.Sprintf("chat-%03d", n) }

// watched writes a configuration with so many copies of the SLO file that the repository ships, and an
// hourly report that was due at a time.
func watched(tb testing.TB, services int, prometheus string, due time.Time) string {
	tb.Helper()
	dir := tb.TempDir()
	shipped, err := os.ReadFile("../alerts/slo.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	for n := range services {
		text := strings.NewReplacer("service: chat ", "service: "+service(n)+" ", "{job: vllm}", "{job: "+job(n)+"}").Replace(string(shipped))
		put(tb, filepath.Join(dir, fmt.Sprintf("slo-%03d.yaml", n)), text)
	}
	put(tb, filepath.Join(dir, "serve.yaml"), "apiVersion: firstbreach/v1\nprometheus: "+prometheus+
		"\nslo: ['slo-*.yaml']\nreports: reports\nschedules: [{name: hourly, cron: '0 * * * *', window: 5h, keep: 9999h}]\n")
	before := due.Add(-time.Hour).UTC().Format(time.RFC3339)
	put(tb, filepath.Join(dir, "reports", "state.json"), fmt.Sprintf(`{"hourly": {"since": %q, "last": %q, "cron": "UTC 0 * * * *"}}`, before, before))
	return dir
}

// put writes a file and the folder that it lies in.
func put(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// older puts earlier reports of every service on the shelf, copies of the last.
func older(tb testing.TB, dir string, services, reports int, due time.Time) {
	tb.Helper()
	const stamp = "20060102T150405Z-hourly"
	for n := range services {
		of := filepath.Join(dir, "reports", service(n))
		text, err := os.ReadFile(filepath.Join(of, due.UTC().Format(stamp), "window.json"))
		if err != nil {
			tb.Fatal(err)
		}
		for i := range reports {
			put(tb, filepath.Join(of, due.Add(-time.Duration(i+1)*time.Hour).UTC().Format(stamp), "window.json"), string(text))
		}
	}
}

// footprint runs `analyze serve` on so many SLO files twice: it makes a report of each, is read and
// reloaded; and once more with a shelf of earlier reports. It returns the most memory of each.
func footprint(tb testing.TB, services, reports int) (fresh, full float64, startup time.Duration) {
	tb.Helper()
	now := time.Now()
	due := now.Truncate(time.Hour)
	dir := watched(tb, services, production(tb, services, now), due)
	binary := program(tb)
	use := func() (float64, time.Duration) {
		begin := time.Now()
		s := startServe(tb, binary, dir)
		s.wait("page", func() bool { return s.page("http://"+s.address+"/-/ready") != "" })
		startup := time.Since(begin)
		s.made(services)
		if n := strings.Count(s.page("http://"+s.address+"/metrics"), `verdict="breach"} 1`); n != (services+9)/10 {
			tb.Errorf("%d services are broken, want every tenth of %d", n, services)
		}
		for range 5 {
			if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				tb.Fatal(err)
			}
			if page := s.page("http://" + s.address + "/"); !strings.Contains(page, service(services-1)) {
				tb.Errorf("the index lacks %s", service(services-1))
			}
		}
		s.wait("reload", func() bool {
			return strings.Contains(s.page("http://"+s.address+"/metrics"), "firstbreach_config_last_reload_successful 1")
		})
		most := s.resident()
		s.stop()
		return most, startup
	}
	fresh, _ = use()
	older(tb, dir, services, reports, due)
	full, startup = use()
	return fresh, full, startup
}

// A hundred SLO files stay within the memory that is promised, with a shelf of a month of daily reports too.
func TestServeMemory(t *testing.T) {
	fresh, full, startup := footprint(t, 100, 30)
	t.Logf("100 SLO files: at most %.1f MiB resident, %.1f MiB with 3,000 earlier reports, which it read in %v", fresh/(1<<20), full/(1<<20), startup.Round(time.Millisecond))
	if max(fresh, full) > memoryBound {
		t.Errorf("more than %d MiB", memoryBound>>20)
	}
}

// BenchmarkServeMemory states the memory by the number of SLO files, each with the reports that
// deploy/serve.yaml keeps: 168 hourly, 90 daily, 52 weekly.
func BenchmarkServeMemory(b *testing.B) {
	for _, services := range []int{1, 10, 100} {
		b.Run(strconv.Itoa(services), func(b *testing.B) {
			for b.Loop() {
				fresh, full, startup := footprint(b, services, 310)
				b.ReportMetric(fresh/(1<<20), "MiB")
				b.ReportMetric(full/(1<<20), "MiB-full-shelf")
				b.ReportMetric(startup.Seconds(), "s-to-start")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TLS and passwords come from the file of the web configuration, and guard every page, the reload as well.
func TestServeTLSAndPassword(t *testing.T) {
	other := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate, which is of 127.0.0.1
	defer other.Close()
	pair := other.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := watched(t, 1, "http://127.0.0.1:1", time.Now().Truncate(time.Hour))
	put(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	put(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	// The hash of "correct horse".
	put(t, filepath.Join(dir, "web.yml"), `tls_server_config: {cert_file: cert.pem, key_file: key.pem}
basic_auth_users:
  reader: $2a$04$cUlXdKcDDMP.4UmTPmEyOuEJW1bM1fN3frOu9e4wSJQ3LKfEFopEW
`)
	roots := x509.NewCertPool()
	roots.AddCert(other.Certificate())
	s := startServe(t, program(t), dir, "--web.config.file", filepath.Join(dir, "web.yml"))
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	s.wait("answer", func() bool { return s.page("https://"+s.address+"/-/ready") != "" })
	for _, c := range []struct {
		method, path, password string
		want                   int
	}{
		{http.MethodGet, "/", "correct horse", http.StatusOK},
		{http.MethodGet, "/metrics", "correct horse", http.StatusOK},
		{http.MethodPost, "/-/reload", "correct horse", http.StatusOK},
		{http.MethodGet, "/metrics", "wrong", http.StatusUnauthorized},
		{http.MethodPost, "/-/reload", "wrong", http.StatusUnauthorized},
		{http.MethodGet, "/", "", http.StatusUnauthorized},
		{http.MethodGet, "/services/chat-000/latest", "", http.StatusUnauthorized},
		{http.MethodGet, "/-/healthy", "", http.StatusUnauthorized},
	} {
		req, err := http.NewRequest(c.method, "https://"+s.address+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.password != "" {
			req.SetBasicAuth("reader", c.password)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %s with password %q: status %d, want %d", c.method, c.path, c.password, resp.StatusCode, c.want)
		}
	}
	if resp, err := http.Get("http://" + s.address + "/"); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %v, %v", resp, err)
	}
}

// A hangup reads the files again; one that can't be used changes nothing, and is said in the metrics.
func TestServeReloadsAtHangup(t *testing.T) {
	dir := watched(t, 1, "http://127.0.0.1:1", time.Now().Truncate(time.Hour))
	s := startServe(t, program(t), dir)
	metrics := func(want string) func() bool {
		return func() bool { return strings.Contains(s.page("http://"+s.address+"/metrics"), want) }
	}
	const overdue, reloaded = `firstbreach_report_overdue_seconds{schedule="%s",service="chat-000"}`, "firstbreach_config_last_reload_successful "
	s.wait("metrics", metrics(fmt.Sprintf(overdue, "hourly")))
	good, err := os.ReadFile(filepath.Join(dir, "serve.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{strings.Replace(string(good), "name: hourly", "nome: hourly", 1), reloaded + "0"},
		{strings.Replace(string(good), "name: hourly", "name: each-hour", 1), fmt.Sprintf(overdue, "each-hour")},
	} {
		put(t, filepath.Join(dir, "serve.yaml"), c.text)
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.wait(c.want, metrics(c.want))
	}
	if !metrics(reloaded + "1")() {
		t.Error("a good file after a bad one isn't taken for good")
	}
	s.stop()
	if log := s.log.String(); !strings.Contains(log, "serve.yaml:5") || !strings.Contains(log, "did you mean name?") {
		t.Errorf("the log says nothing of the bad file:\n%s", log)
	}
}
