package main

import (
	"io"
	"testing"

	"firstbreach/internal/generated"
	"firstbreach/internal/slo/slotest"
)

// BenchmarkThousandObjectives is the whole command: an SLO file is read, and rules, their tests and the
// routing are written, each time into an empty folder.
func BenchmarkThousandObjectives(b *testing.B) {
	generated.CollectSeldom() // as main does
	path := slotest.WriteThousand(b)
	for b.Loop() {
		if status := command([]string{"--quiet", "--slo", path, "--out", b.TempDir()}, io.Discard, io.Discard); status != 0 {
			b.Fatalf("exit status %d", status)
		}
	}
	slotest.ReportRate(b)
}
