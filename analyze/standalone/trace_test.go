package standalone

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"firstbreach/analyze/verdict"
	"firstbreach/loadgen/record"
)

// TestTraceReplay sends a trace to the simulated engine after the ladder, down the whole path: each request
// has the lengths that its line says, and the report says whether the ladder's conclusion held.
func TestTraceReplay(t *testing.T) {
	t.Parallel()
	base, work := startEngine(t, twoSlots()), t.TempDir()
	var lines strings.Builder
	const n = 80
	for i := range n { // two streams of prompts, which begin alike within each
		fmt.Fprintf(&lines, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [%d, %d]}`+"\n", i*150, 40+i%9, 6+i%5, i%2, 2+i)
	}
	writeFile(t, work, "trace.jsonl", lines.String())
	dir := filepath.Join(work, "run")
	out, err := Run(t.Context(), Options{
		PlanFile: writeFile(t, work, "plan.yaml", scenarioPlan(base, []int{1, 2, 4})+"trace: {file: trace.jsonl, block_tokens: 32}\n"),
		SLOFile:  writeFile(t, work, "slo.yaml", scenarioSLO()), Dir: dir, ScrapeInterval: 200 * time.Millisecond, Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	checkTotals(t, dir)
	entries, err := record.ReadLedger(filepath.Join(dir, record.LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, e := range entries {
		if e.Phase != verdict.PhaseTrace {
			continue
		}
		sent++
		if i := e.Slot; e.Outcome != "ok" || *e.OutputTokens != 6+i%5 || *e.PromptTokens != 40+i%9-beside+1 || e.Rate != 6.751 {
			t.Errorf("request %d: %s, %v tokens in, %v out, rate %v", i, e.Outcome, *e.PromptTokens, *e.OutputTokens, e.Rate)
		}
	}
	if sent != n {
		t.Errorf("%d of %d requests were sent", sent, n)
	}
	if len(out.Report.Phases) != 1 {
		t.Fatalf("%d phases", len(out.Report.Phases))
	}
	p := out.Report.Phases[0]
	t.Logf("%s: %s %q, in flight %s to %d, %d requests", p.Phase, p.Held, p.Reasons, p.Low, p.Concurrency, p.Requests)
	if p.Phase != verdict.PhaseTrace || p.Name != "trace.jsonl" || !p.Valid || p.Requests < n-5 {
		t.Errorf("%+v", p)
	}
	// A request takes about 80 ms, and the next one comes after 150: one or two are in flight, which the
	// ladder says the service bears.
	if p.Held != verdict.Held && !underRace {
		t.Errorf("%s %q", p.Held, p.Reasons)
	}
}
