package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/exporter-reports.md names is there, and every report has one or is a limit.
func TestReports(t *testing.T) {
	text, err := os.ReadFile("../docs/exporter-reports.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z]+)\\.(Test\\w+)`")
	rows := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| report ") {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(line, -1)
		if tests == nil && !strings.Contains(line, "a limit, see [exporter.md]") {
			t.Errorf("neither a test nor a limit: %s", line)
		}
		for _, m := range tests {
			if !defines(t, m[1], m[2]) {
				t.Errorf("there is no test %s in %s", m[2], m[1])
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d reports", rows)
	}
}

// defines reports whether a package of the exporter has the test.
func defines(t *testing.T, name, test string) bool {
	t.Helper()
	dir := name
	if name == "exporter" {
		dir = "."
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "\nfunc "+test+"(t *testing.T)") {
			return true
		}
	}
	return false
}
