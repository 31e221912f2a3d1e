package output

import (
	"fmt"
	"strings"
	"testing"

	"firstbreach/alerts/rules"
	"firstbreach/internal/slo"
)

// thousand is an SLO file of a thousand objectives.
func thousand(tb testing.TB) *slo.File {
	tb.Helper()
	var b strings.Builder
	b.WriteString("apiVersion: firstbreach/v1\nservice: big\nengine: vllm\nselectors: {engine: {job: vllm}, probe: {job: probe}}\nowners: {team: {contact: '#team'}}\nobjectives:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "- {name: o%d, layer: user, signal: time_to_first_token, p95: 750ms, owner: team, action: Act.}\n", i)
	}
	f, err := slo.Parse("slo.yaml", []byte(b.String()))
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func BenchmarkThousandObjectives(b *testing.B) {
	f := thousand(b)
	for b.Loop() {
		set, err := rules.Make(f, rules.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Rules(f, set); err != nil {
			b.Fatal(err)
		}
	}
}
