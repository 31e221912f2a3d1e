package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testStack(t *testing.T) *stack {
	t.Helper()
	s, err := newStack(t.TempDir(), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What is shown is what is shipped: rules, routing and templates byte for byte.
func TestShippedByteForByte(t *testing.T) {
	s := testStack(t)
	for target, shipped := range map[string]string{
		"/etc/prometheus/rules/demo.rules.yml": "alerts/demo.rules.yml", "/etc/alertmanager/alertmanager.yml": "alerts/alertmanager.yml",
		"/etc/alertmanager/firstbreach.tmpl": "alerts/firstbreach.tmpl", "/etc/firstbreach/slo.yaml": "slo.yaml",
	} {
		service := map[string]string{"prometheus": "prometheus", "alertmanager": "alertmanager", "firstbreach": "probe"}[strings.Split(target, "/")[2]]
		if !bytes.Equal(read(t, s.file(service, target)), read(t, filepath.Join("..", shipped))) {
			t.Errorf("%s is not what is shipped", target)
		}
	}
}

// Of prometheus.yml only addresses and the rules' folder differ, and the two unknown keys are gone.
func TestPrometheusConfigIsTheShippedOne(t *testing.T) {
	s := testStack(t)
	here := strings.Split(string(read(t, s.file("prometheus", "/etc/prometheus/prometheus.yml"))), "\n")
	var shipped []string
	removed := 0
	for _, line := range strings.Split(string(read(t, "../prometheus.yml")), "\n") {
		if key, _, _ := strings.Cut(strings.TrimSpace(line), ":"); key == "scrape_native_histograms" || key == "always_scrape_classic_histograms" {
			removed++
			continue
		}
		shipped = append(shipped, line)
	}
	if removed != 2 || len(here) != len(shipped) {
		t.Fatalf("%d lines here, %d shipped without the %d unknown keys", len(here), len(shipped), removed)
	}
	changed := 0
	for n, line := range here {
		if line == shipped[n] {
			continue
		}
		changed++
		if !strings.Contains(line, "targets: [\"127.0.0.1:") && !strings.HasSuffix(line, "/rules/*.rules.yml") {
			t.Errorf("%q became %q", shipped[n], line)
		}
	}
	if changed != 9 {
		t.Errorf("%d lines changed; want the rules' folder, the Alertmanager and seven targets", changed)
	}
}
