package standalone

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"firstbreach/analyze/verdict"
	"firstbreach/loadgen/sim"
)

// roleEnv makes this test binary, started again, a process beside the test: "engine" with a sim.Config
// as JSON in configEnv, or "hog".
const (
	roleEnv   = "FIRSTBREACH_STANDALONE_ROLE"
	configEnv = "FIRSTBREACH_STANDALONE_ENGINE"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		os.Exit(m.Run())
	case "hog":
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
		for {
		}
	case "engine":
		var cfg sim.Config
		err := json.Unmarshal([]byte(os.Getenv(configEnv)), &cfg)
		if err == nil {
			err = ServeSimulator(context.Background(), cfg, freePort, os.Stdin, os.Stdout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// child starts this binary in a role; it ends with the test.
func child(t *testing.T, role string, env ...string) (stdout io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), roleEnv+"="+role), env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err = cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	return stdout
}

// engineProcess serves an engine from a process of its own, so that it shares no scheduler and no
// collector with the client.
func engineProcess(t *testing.T, cfg sim.Config) (base string) {
	t.Helper()
	raw, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var address string
	if _, err := fmt.Fscanln(child(t, "engine", configEnv+"="+string(raw)), &address); err != nil {
		t.Fatal(err)
	}
	return "http://" + address
}

// manySlots is an engine of 400 slots with a prefill of 100 ms and constant decoding: up to 400 clients
// have a TTFT of 100 ms, and from 401 on some wait for a slot.
func manySlots() sim.Config {
	cfg := sim.Default()
	cfg.Slots, cfg.PrefillTime, cfg.StepBase = 400, 100*time.Millisecond, 40*time.Millisecond
	return cfg
}

// runMany runs a ladder against manySlots with a limit on TTFT's P95.
func runMany(t *testing.T, ladder []int, limit time.Duration, readStamps bool) Outcome {
	t.Helper()
	base, work := engineProcess(t, manySlots()), t.TempDir()
	plan := strings.NewReplacer(
		"output_tokens: "+fmt.Sprint(outputTokens), "output_tokens: 24",
		"requests: 30, min_duration: 1200ms, max_duration: 30s", "duration: 2s",
	).Replace(scenarioPlan(base, ladder))
	slo := strings.NewReplacer("p90: %s", "p95: "+limit.String(), "%%", "%").Replace(scenarioObjectives)
	out, err := Run(t.Context(), Options{
		PlanFile: writeFile(t, work, "plan.yaml", plan), SLOFile: writeFile(t, work, "slo.yaml", slo),
		Dir: filepath.Join(work, "run"), ScrapeInterval: 250 * time.Millisecond, Version: "test", ReadStamps: readStamps,
	})
	if err != nil {
		t.Fatal(err)
	}
	if testing.Verbose() {
		for _, s := range out.Report.Steps {
			t.Logf("%s %d: %s %q", s.Phase, s.Concurrency, s.Verdict, s.Reasons)
			for _, o := range s.Objectives {
				t.Logf("  %s: %s, %d of %d bad %q", o.Name, o.Verdict, o.Bad, o.Total, o.Reason)
			}
		}
	}
	return out
}

// long runs what takes a minute and wants a machine with nothing else to do.
var long = flag.Bool("long", false, "run the tests that need a minute of a machine with nothing else to do")

// TestTrap is where clients that measure themselves go wrong: 400 slots and ten thousand chunks a second
// on two cores, shared with the engine. Their own lateness looks like the engine's from 256 streams on.
// The engine holds up to 400.
func TestTrap(t *testing.T) {
	inRealTime(t)
	if !*long {
		t.Skip("takes a minute: run it with -long")
	}
	ladder := []int{64, 128, 256, 384, 480}
	cfg := manySlots()
	theory := cfg.FirstBreach(ladder, promptTokens, 24, sim.Goal{Signal: sim.SignalTTFT, Threshold: 200 * time.Millisecond, Target: 0.95})
	if theory.Concurrency != 480 || theory.LastOK != 384 || !theory.Decided {
		t.Fatalf("the parameters imply %+v", theory)
	}
	out := runMany(t, ladder, 200*time.Millisecond, false)
	for _, s := range out.Report.Steps {
		if s.Phase != verdict.PhaseRamp {
			continue
		}
		want := verdict.OK
		if s.Concurrency > cfg.Slots {
			want = verdict.Breach
		}
		if s.Verdict != want {
			t.Errorf("concurrency %d: %s, want %s %q", s.Concurrency, s.Verdict, want, s.Reasons)
		}
	}
	if b := out.Report.FirstBreach; b == nil || b.Concurrency != 480 || b.LastOK == nil || *b.LastOK != 384 {
		t.Errorf("first breach %+v", b)
	}
}

// TestLateClientIsVoid is the negative: without the kernel's stamps, beside two processes that take all the
// CPU there is, the client's own error is larger than the room that the objective leaves, and whatever
// was measured says nothing.
func TestLateClientIsVoid(t *testing.T) {
	inRealTime(t)
	if !*long {
		t.Skip("takes a minute: run it with -long")
	}
	for range 2 {
		child(t, "hog")
	}
	out := runMany(t, []int{200}, 103*time.Millisecond, true)
	if out.State != verdict.Invalid {
		t.Errorf("state %s: %v", out.State, out.Report.Headline())
	}
	for _, s := range out.Report.Steps {
		if s.Phase == verdict.PhaseRamp && (s.Verdict != verdict.Invalid || !strings.Contains(strings.Join(s.Reasons, " "), "late_read_stamps")) {
			t.Errorf("concurrency %d: %s %q", s.Concurrency, s.Verdict, s.Reasons)
		}
	}
}
