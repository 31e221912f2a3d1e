package main

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// probeArgs are files' plan and SLO file for a probe.
func probeArgs(t *testing.T, e *endpoint, more ...string) []string {
	t.Helper()
	args, _ := files(t, e, nil)
	return append([]string{"probe", args[1], args[2], args[3], args[4], "--web.listen-address", "127.0.0.1:0"}, more...)
}

// The process probes, serves what it found without labels of a run, and ends on SIGTERM with status 0.
func TestProbe(t *testing.T) {
	p := launch(t, probeArgs(t, newEndpoint(t), "--every", "100ms")...)
	address := regexp.MustCompile(`metrics at (\S+)`)
	until(t, "the address", func() bool { return address.MatchString(p.said()) })
	url := address.FindStringSubmatch(p.said())[1]
	answered := regexp.MustCompile(`\nloadgen_requests_total{outcome="ok"} ([0-9]+)\n`)
	until(t, "three answers", func() bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		page, _ := io.ReadAll(resp.Body)
		m := answered.FindSubmatch(page)
		return m != nil && (len(m[1]) > 1 || m[1][0] >= '3') && bytes.Contains(page, []byte(`loadgen_time_to_first_token_seconds_bucket{le="0.5"}`))
	})
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if status := p.exit(t); status != exitDone {
		t.Errorf("status %d", status)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v to end", took)
	}
}

func TestProbeOnce(t *testing.T) {
	e := newEndpoint(t)
	var out, errs bytes.Buffer
	if status := command(t.Context(), probeArgs(t, e, "--once"), &out, &errs); status != exitDone || !strings.HasPrefix(out.String(), "ok, HTTP 200, first token after ") {
		t.Errorf("status %d: %s%s", status, &out, &errs)
	}
	args := probeArgs(t, e, "--once")
	e.Close()
	out.Reset()
	if status := command(t.Context(), args, &out, &errs); status != exitFailed || !strings.HasPrefix(out.String(), "transport") {
		t.Errorf("a target that's gone: status %d: %s%s", status, &out, &errs)
	}
}

func TestProbeBadInput(t *testing.T) {
	e := newEndpoint(t)
	for want, more := range map[string][]string{
		"is a load, not a probe":   {"--every", "1ms"},
		"not between 1 and 64":     {"--max-in-flight", "0"},
		"must not be negative":     {"--grace=-1s"},
		"none.yaml: can't be read": {"--slo", "none.yaml"},
	} {
		var out, errs bytes.Buffer
		args := probeArgs(t, e)
		if more[0] == "--slo" {
			args = with(args, more[0], more[1])
		} else {
			args = append(args, more...)
		}
		if status := command(t.Context(), args, &out, &errs); status != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: status %d: %s", more, status, &errs)
		}
	}
	if n := e.begun.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
