// Package slotest has SLO files for the benchmarks of more than one command.
package slotest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Thousand is the number of objectives in the file that WriteThousand writes.
const Thousand = 1000

// WriteThousand writes an SLO file of a thousand objectives into a temporary folder and returns its path.
func WriteThousand(tb testing.TB) string {
	tb.Helper()
	var b strings.Builder
	b.WriteString("apiVersion: firstbreach/v1\nservice: big\nengine: vllm\nselectors: {engine: {job: vllm}, probe: {job: probe}}\nowners: {team: {contact: '#team'}}\nobjectives:\n")
	for i := range Thousand {
		fmt.Fprintf(&b, "- {name: o%d, layer: user, signal: time_to_first_token, p95: 750ms, owner: team, action: Act.}\n", i)
	}
	path := filepath.Join(tb.TempDir(), "slo.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// ReportRate reports how many objectives a second a benchmark of that file's generation took.
func ReportRate(b *testing.B) {
	b.Helper()
	b.ReportMetric(Thousand*float64(b.N)/b.Elapsed().Seconds(), "objectives/s")
}
