//go:build cgo

package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// built returns the exporter's binary, and a fake NVML beside it, built once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "exporter")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "exporter")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", &exec.Error{Name: string(out), Err: err}
	}
	return path, nil
})

func TestMain(m *testing.M) {
	status := m.Run()
	if path, err := built(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(status)
}

// process is the real exporter in a process of its own: a process is bound to the first NVML that
// it loads, and a missing guard would end it.
type process struct {
	*exec.Cmd
	t     *testing.T
	url   string
	log   *output
	says  string // file that the library reads
	ended chan error
}

// withNVML starts the exporter with the fake library; words say how it behaves.
func withNVML(t *testing.T, words string, macros []string, args ...string) *process {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to build a library with")
	}
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	build := append([]string{"-shared", "-fPIC", "-o", library, "testdata/nvml.c"}, macros...)
	if out, err := exec.Command(gcc, build...).CombinedOutput(); err != nil {
		t.Skipf("gcc can't build a library here: %v: %s", err, out)
	}
	return withLibrary(t, words, library, args...)
}

func withLibrary(t *testing.T, words, library string, args ...string) *process {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, log: &output{}, says: filepath.Join(t.TempDir(), "says"), ended: make(chan error, 1)}
	p.say(words)
	p.Cmd = exec.Command(binary, append([]string{"--web.listen-address=127.0.0.1:0", "--nvml.library-path=" + library,
		"--collector.gpu.interval=100ms", "--collector.gpu.timeout=500ms"}, args...)...)
	p.Env = append(os.Environ(), "FAKE_NVML="+p.says)
	p.Stderr, p.Stdout = p.log, io.Discard
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.Wait() }()
	t.Cleanup(func() { p.Process.Kill() })
	address := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	p.until("it listens", func() bool {
		m := address.FindStringSubmatch(p.log.String())
		if m != nil {
			p.url = "http://" + m[1] + "/metrics"
		}
		return m != nil
	})
	return p
}

func (p *process) say(words string) {
	p.t.Helper()
	if err := os.WriteFile(p.says+".new", []byte(words), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(p.says+".new", p.says); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) until(what string, holds func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	p.t.Fatalf("not in time: %s\n%s", what, p.log)
}

// has waits for a page with the lines and without those that begin with !.
func (p *process) has(lines ...string) string {
	p.t.Helper()
	var body string
	p.until(strings.Join(lines, " and "), func() bool {
		_, body = page(p.t, p.url)
		for _, l := range lines {
			no, absent := strings.CutPrefix(l, "!")
			if strings.Contains(body, "\n"+no) == absent {
				return false
			}
		}
		return true
	})
	return body
}

// stop ends the exporter and returns its status; it takes less than two seconds, always.
func (p *process) stop() int {
	p.t.Helper()
	begin := time.Now()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.status(begin, 2*time.Second)
}

func (p *process) status(begin time.Time, limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.t.Fatalf("it doesn't end\n%s", p.log)
	}
	if took := time.Since(begin); took > limit {
		p.t.Errorf("it took %v to end", took)
	}
	return p.ProcessState.ExitCode()
}

const upHost = "host_memory_total_bytes "

func TestNVML(t *testing.T) {
	p := withNVML(t, "", nil)
	p.has("nvml_up 1", `nvidia_gpu_up{uuid="GPU-1"} 1`, `nvidia_gpu_utilization_ratio{uuid="GPU-2"} 0.42`,
		`nvidia_gpu_clock_hertz{clock="sm",uuid="GPU-1"} 1.98e+09`, `nvidia_gpu_power_watts{uuid="GPU-1"} 123.4`, upHost)
	// The samples say 80 %, whatever the gauge says.
	value := func() float64 {
		_, body := page(t, p.url)
		m := regexp.MustCompile(`\nnvidia_gpu_busy_seconds_total{uuid="GPU-1"} (\S+)`).FindStringSubmatch(body)
		if m == nil {
			t.Fatal(body)
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	begin, first := time.Now(), value()
	time.Sleep(4 * time.Second)
	// Either end may be off by a sample of 250 ms and by the time that a busy machine lets us wait.
	elapsed, busy := time.Since(begin).Seconds(), value()-first
	if busy < 0.8*(elapsed-1.5) || busy > 0.8*(elapsed+1.5) {
		t.Errorf("busy for %v s of %v s, want 80 %%", busy, elapsed)
	}
	if status := p.stop(); status != exitOK {
		t.Errorf("status %d\n%s", status, p.log)
	}
}

// A library that lacks most functions costs their series, never the process.
func TestOldNVML(t *testing.T) {
	p := withNVML(t, "", []string{"-DOLD"}, "--collector.gpu.processes", "--collector.gpu.pcie-throughput")
	p.has("nvml_up 1", `nvidia_gpu_temperature_celsius{uuid="GPU-1"} 55`, `nvidia_gpu_busy_seconds_total{uuid="GPU-1"}`,
		"!nvidia_gpu_power_watts", "!nvml_errors_total")
	if status := p.stop(); status != exitOK {
		t.Errorf("status %d; 127 would be a call that is not guarded\n%s", status, p.log)
	}
}

func TestNVMLDown(t *testing.T) {
	for words, reason := range map[string]string{"init18": "library_version_mismatch", "init9": "driver_not_loaded", "nogpu": "no_gpu", "dead": "unknown"} {
		t.Run(words, func(t *testing.T) {
			p := withNVML(t, words, nil)
			p.has("nvml_up 0", `nvml_down_info{reason="`+reason+`"} 1`, upHost, "!nvidia_gpu_")
			if status := p.stop(); status != exitOK {
				t.Errorf("status %d\n%s", status, p.log)
			}
		})
	}
}

func TestNoNVML(t *testing.T) {
	p := withLibrary(t, "", filepath.Join(t.TempDir(), "libnvidia-ml.so.1"))
	p.has("nvml_up 0", `nvml_down_info{reason="library_not_found"} 1`, upHost)
	if status := p.stop(); status != exitOK {
		t.Errorf("status %d\n%s", status, p.log)
	}
}

// With the flag, what only a restart can mend ends the exporter.
func TestExitOn(t *testing.T) {
	p := withNVML(t, "init18", nil, "--nvml.exit-on=mismatch")
	if status := p.status(time.Now(), 20*time.Second); status != exitFailed || !strings.Contains(p.log.String(), "library_version_mismatch") {
		t.Errorf("status %d\n%s", status, p.log)
	}
	p = withNVML(t, "init9", nil, "--nvml.exit-on=mismatch")
	p.has("nvml_up 0")
	if status := p.stop(); status != exitOK {
		t.Errorf("status %d\n%s", status, p.log)
	}
}

// A GPU in whose calls the driver hangs costs its own series, and not the two seconds of the end.
func TestHangingGPU(t *testing.T) {
	p := withNVML(t, "", nil)
	p.has(`nvidia_gpu_up{uuid="GPU-2"} 1`)
	p.say("hang1")
	p.has(`nvidia_gpu_up{uuid="GPU-2"} 0`, `nvidia_gpu_down_info{reason="hung",uuid="GPU-2"} 1`, "nvml_timeouts_total 1",
		`nvidia_gpu_utilization_ratio{uuid="GPU-1"} 0.42`, `!nvidia_gpu_utilization_ratio{uuid="GPU-2"}`, "nvml_up 1")
	p.say("")
	p.has(`nvidia_gpu_up{uuid="GPU-2"} 1`)
	p.say("hang1")
	time.Sleep(200 * time.Millisecond)
	if status := p.stop(); status != exitOK {
		t.Errorf("status %d\n%s", status, p.log)
	}
}

// A driver that hangs as a whole keeps neither the page nor the end waiting.
func TestHangingDriver(t *testing.T) {
	for words, lines := range map[string][]string{
		"initblocks":  {"nvml_up 0", `nvml_down_info{reason="starting"} 1`, "!nvidia_gpu_up"},
		"countblocks": {"nvml_up 1", `nvidia_gpu_up{uuid="GPU-1"} 1`},
	} {
		t.Run(words, func(t *testing.T) {
			first := ""
			if words == "initblocks" {
				first = words
			}
			p := withNVML(t, first, nil)
			p.has(append(lines, upHost)...)
			p.say(words)
			time.Sleep(300 * time.Millisecond)
			begin := time.Now()
			p.has(upHost)
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("the page took %v", took)
			}
			if status := p.stop(); status != exitOK {
				t.Errorf("status %d\n%s", status, p.log)
			}
		})
	}
}

func TestLostGPU(t *testing.T) {
	p := withNVML(t, "", nil)
	for _, words := range []string{"lost1", "count1"} {
		p.say("")
		p.has(`nvidia_gpu_up{uuid="GPU-2"} 1`)
		p.say(words)
		p.has(`nvidia_gpu_up{uuid="GPU-2"} 0`, `nvidia_gpu_down_info{reason="gpu_is_lost",uuid="GPU-2"} 1`,
			`nvidia_gpu_utilization_ratio{uuid="GPU-1"} 0.42`, `!nvidia_gpu_utilization_ratio{uuid="GPU-2"}`)
	}
	p.stop()
}

// A buffer of samples that gives fewer than it announced is no reading of zeros.
func TestGrowingSamples(t *testing.T) {
	p := withNVML(t, "grow", nil)
	p.has(`nvidia_gpu_busy_seconds_total{uuid="GPU-1"}`)
	time.Sleep(1500 * time.Millisecond)
	body := p.has(`nvidia_gpu_busy_seconds_total{uuid="GPU-1"}`)
	if bytes.Contains([]byte(body), []byte(`nvidia_gpu_busy_seconds_total{uuid="GPU-1"} 0`+"\n")) {
		t.Error("the counter stands still")
	}
	p.stop()
}

// SIGHUP lets go of the GPUs.
func TestReleaseOnHangup(t *testing.T) {
	p := withNVML(t, "", nil)
	p.has("nvml_up 1")
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.has(`nvml_down_info{reason="released"} 1`, `nvidia_gpu_up{uuid="GPU-1"} 0`, upHost)
	p.stop()
}

// A port is free again at once, and a scraper that never reads doesn't keep the exporter.
func TestStopWithIdleConnection(t *testing.T) {
	p := withNVML(t, "", nil)
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), "/metrics"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\n"); err != nil {
		t.Fatal(err)
	}
	if status := p.stop(); status != exitOK {
		t.Errorf("status %d\n%s", status, p.log)
	}
}
