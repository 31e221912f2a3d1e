package record_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

func TestLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), record.LedgerFile)
	l, err := record.CreateLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	step := record.StepID{Phase: "ramp", Round: 2, Step: 3, Concurrency: 8}
	due := time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)
	requests := []record.Request{
		{
			Slot: 4, Window: record.Measure, Scheduled: due, Started: due, Returned: due.Add(time.Second),
			Result: wire.Result{
				SentAt: due.Add(time.Millisecond), Dial: *d(1), TTFT: d(100.5), E2E: d(200), TPOT: d(50), End: *d(201),
				Chunks: 3, PromptTokens: n(30), OutputTokens: n(3), TokenSource: wire.TokensFromUsage,
				Outcome: wire.OK, HTTPStatus: 200, Warnings: []string{"no_done"}, StampSource: "read",
			},
		},
		{Window: record.Drain, Scheduled: due, Result: wire.Result{Outcome: wire.Timeout, TimeoutKind: wire.TimeoutConnect, Error: "5s <passed>"}},
	}
	for _, q := range requests {
		if err := l.Append(step, q); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := record.ReadLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	ttft, e2e, tpot, sent := 0.1005, 0.2, 0.05, due.Add(time.Millisecond)
	equal(t, "ledger", got, []record.Entry{
		{
			ID: 1, Phase: "ramp", Round: 2, Step: 3, Concurrency: 8, Slot: 4, Window: "measure", ScheduledAt: due, SentAt: &sent,
			TTFT: &ttft, E2E: &e2e, TPOT: &tpot, Chunks: 3, PromptTokens: n(30), OutputTokens: n(3), TokenSource: "usage",
			Outcome: "ok", HTTPStatus: 200, Warnings: []string{"no_done"}, DialS: 0.001, EndS: 0.201, StampSource: "read",
		},
		{
			ID: 2, Phase: "ramp", Round: 2, Step: 3, Concurrency: 8, Window: "drain", ScheduledAt: due,
			Outcome: "timeout", TimeoutKind: "connect", Error: "5s <passed>",
		},
	})
	if _, err := record.CreateLedger(path); err == nil {
		t.Error("a ledger that is there already was written over")
	}
}

func TestReadLedger(t *testing.T) {
	tests := map[string]struct {
		text    string
		entries int
		wrong   string
	}{
		"empty":                       {"", 0, ""},
		"a torn last line":            {"{\"id\":1}\n{\"id\":2,\"pha", 1, ""},
		"whole but without its end":   {"{\"id\":1}\n{\"id\":2}", 1, ""},
		"fields of a later release":   {"{\"id\":1,\"something_new\":[1,2]}\n", 1, ""},
		"broken in the middle":        {"{\"id\":1}\n{\"id\":\n{\"id\":3}\n", 1, "ledger.jsonl:2: "},
		"something else in that file": {"hello\n", 0, "ledger.jsonl:1: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), record.LedgerFile)
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := record.ReadLedger(path)
			equal(t, "entries", len(got), tc.entries)
			switch {
			case tc.wrong == "" && err != nil:
				t.Error(err)
			case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
				t.Errorf("got error %v, want one with %q", err, tc.wrong)
			}
		})
	}
}

// /dev/full is a file whose every write fails as on a full disk.
func TestLedgerOnAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full here")
	}
	path := filepath.Join(t.TempDir(), record.LedgerFile)
	l, err := record.CreateLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	record.SetLedgerFile(l, full)
	err = l.Append(record.StepID{}, record.Request{})
	if err == nil || !strings.Contains(err.Error(), "free some disk space") {
		t.Errorf("got %v, want an error that says what to do", err)
	}
}

func TestManifest(t *testing.T) {
	dir := t.TempDir()
	want := record.Manifest{
		Schema: record.ManifestSchema, Run: "r1", State: record.Running, StartedAt: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		Conditions: map[string]string{"model": "m"}, Rounds: 3, Ladder: []int{1, 2},
		Steps: []record.ManifestStep{{Phase: "baseline", Round: 1, Step: 1, Totals: map[string]record.Totals{}}},
	}
	for _, state := range []record.State{record.Running, record.Complete} {
		want.State = state
		if err := record.WriteManifest(dir, want); err != nil {
			t.Fatal(err)
		}
		got, err := record.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "manifest", got, want)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "files", len(entries), 1)

	want.Schema = 99
	if err := record.WriteManifest(dir, want); err != nil {
		t.Fatal(err)
	}
	if _, err := record.ReadManifest(dir); err == nil || !strings.Contains(err.Error(), "schema 99") {
		t.Errorf("got %v for a schema of the future", err)
	}
	if err := record.WriteManifest(filepath.Join(dir, "gone"), want); err == nil {
		t.Error("a manifest was written into a directory that isn't there")
	}
}

func TestCreateDir(t *testing.T) {
	base := t.TempDir()
	fresh := filepath.Join(base, "runs", "r1")
	if err := record.CreateDir(fresh); err != nil {
		t.Fatal(err)
	}
	if err := record.CreateDir(fresh); err != nil {
		t.Errorf("an empty directory is as good as none: %v", err)
	}
	if err := os.Mkdir(filepath.Join(fresh, record.StoreDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := record.CreateDir(fresh); err != nil {
		t.Errorf("the store of the run may be there: %v", err)
	}
	if err := record.WriteManifest(fresh, record.Manifest{}); err != nil {
		t.Fatal(err)
	}
	if err := record.CreateDir(fresh); err == nil || !strings.Contains(err.Error(), "--out") {
		t.Errorf("got %v for the directory of another run", err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := record.CreateDir(file); err == nil {
		t.Error("a file was taken for a directory")
	}
}

func TestValidRunID(t *testing.T) {
	for _, id := range []string{"r1", "20261130-120000-ab12", "a.b_c-d"} {
		if err := record.ValidRunID(id); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"", ".", "../x", "a b", "-x", "a/b", "ü", strings.Repeat("x", 101)} {
		if err := record.ValidRunID(id); err == nil {
			t.Errorf("%q was taken for a run ID", id)
		}
	}
}
