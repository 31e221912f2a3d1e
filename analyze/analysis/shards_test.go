package analysis_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"firstbreach/analyze/analysis"
	"firstbreach/loadgen/record"
)

const sloText = `apiVersion: firstbreach/v1
service: chat
engine: vllm
objectives:
- {name: ttft, layer: user, signal: time_to_first_token, threshold: 200ms, target: 95%}
`

// shardDir makes the run directory of one shard with one step.
func shardDir(t *testing.T, shard string, from time.Time, change func(*record.Manifest)) string {
	t.Helper()
	dir := t.TempDir()
	m := record.Manifest{
		Schema: record.ManifestSchema, Run: "r", State: record.Complete, StartedAt: from, PlanSHA256: "p", SLOSHA256: "s",
		Steps: []record.ManifestStep{{
			Phase: "ramp", Round: 1, Step: 1, Concurrency: 4, Shard: shard, StartedAt: from, MeasureFrom: &from,
			Totals: map[string]record.Totals{"measure": {Outcomes: map[string]int{"ok": 7, "rejected": 1}, Timeouts: map[string]int{"idle": 0}, Good: 6, OutputTokens: 70}},
		}},
	}
	if change != nil {
		change(&m)
	}
	for name, text := range map[string]string{record.SLOFile: sloText, record.PlanFile: "plan"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := record.WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReadDirs(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	three := func(late time.Duration, last func(*record.Manifest)) []string {
		return []string{shardDir(t, "0/3", now, nil), shardDir(t, "1/3", now.Add(100*time.Millisecond), nil), shardDir(t, "2/3", now.Add(late), last)}
	}
	limited := func(m *record.Manifest) { m.Steps[0].Limited = []string{"shard_cold"} }
	unmeasured := func(m *record.Manifest) { m.Steps[0].MeasureFrom = nil }
	gone := func(m *record.Manifest) { m.State, m.Reason = record.Interrupted, "killed" }
	for name, c := range map[string]struct {
		dirs  []string
		want  string // in Limited
		state record.State
		ok    int
	}{
		"all":         {three(0, nil), "", record.Complete, 21},
		"missing":     {three(0, nil)[:2], "shard 2/3 missing", record.Complete, 14},
		"one alone":   {three(0, nil)[1:2], "shard 0/3 missing: no run directory with its part of this step; shard 2/3 missing", record.Complete, 7},
		"late":        {three(2*time.Second, nil), "shard 2/3 late: it began to measure 2s after the first", record.Complete, 21},
		"cold":        {three(0, limited), "shard 2/3: shard_cold", record.Complete, 21},
		"unmeasured":  {three(0, unmeasured), "shard 2/3 missing: it never measured", record.Complete, 21},
		"interrupted": {three(0, gone), "", record.Interrupted, 21},
	} {
		t.Run(name, func(t *testing.T) {
			src, err := analysis.ReadDirs(c.dirs)
			if err != nil {
				t.Fatal(err)
			}
			s := src.Manifest.Steps
			if len(s) != 1 || s[0].Totals["measure"].Outcomes["ok"] != c.ok || s[0].Shard != "" || src.Manifest.State != c.state {
				t.Fatalf("got %+v", src.Manifest)
			}
			got := strings.Join(s[0].Limited, "; ")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("limited: got %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestReadDirsRefuses(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := shardDir(t, "0/3", now, nil)
	whole := shardDir(t, "", now, nil)
	for name, c := range map[string]struct {
		dirs []string
		want string
	}{
		"twice":          {[]string{a, shardDir(t, "0/3", now, nil)}, "both of shard"},
		"another run":    {[]string{a, shardDir(t, "1/3", now, func(m *record.Manifest) { m.Run = "x" })}, "the run is another"},
		"another plan":   {[]string{a, shardDir(t, "1/3", now, func(m *record.Manifest) { m.PlanSHA256 = "x" })}, "the plan is another"},
		"another number": {[]string{a, shardDir(t, "1/4", now, nil)}, "4 shards"},
		"no shards":      {[]string{whole, whole}, "both of shard"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := analysis.ReadDirs(c.dirs); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	if src, err := analysis.ReadDirs([]string{whole}); err != nil || len(src.Manifest.Steps[0].Limited) > 0 {
		t.Errorf("a run without shards: %+v, %v", src.Manifest, err)
	}
}
