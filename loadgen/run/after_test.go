package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/internal/level"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/run"
)

// withPhases gives a plan one round, a soak, a fluctuation and two drills, the first of which fails. It
// returns the files by which the drills show that they were done and undone.
func withPhases(t *testing.T, p *plan.Plan) (done, undone string) {
	dir := t.TempDir()
	done, undone = filepath.Join(dir, "done"), filepath.Join(dir, "undone")
	p.Rounds = 1
	p.Soak = &plan.Soak{HeldLoad: plan.HeldLoad{Concurrency: 2}, Duration: 30 * time.Second}
	p.Fluctuations = []plan.Fluctuation{{
		HeldLoad: plan.HeldLoad{Rate: 4, Arrivals: plan.Constant, MaxInFlight: 50}, Duration: 40 * time.Second,
		Curve: level.Curve{Shape: level.Square, Low: 1, High: 4, PerSecond: true, Period: 20},
	}}
	p.Drills = []plan.Drill{
		{
			HeldLoad: plan.HeldLoad{Concurrency: 1}, Name: "broken", Duration: time.Minute, At: 10 * time.Second,
			Action: plan.Restore{Command: []string{"sh", "-c", "exit 3"}}, Restore: plan.Restore{Command: []string{"touch", undone + "0"}},
		},
		{
			HeldLoad: plan.HeldLoad{Concurrency: 1}, Name: "cut", Duration: time.Minute, At: 20 * time.Second, For: 10 * time.Second,
			Action: plan.Restore{Command: []string{"touch", done}}, Restore: plan.Restore{Command: []string{"touch", undone}},
		},
	}
	return done, undone
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

func TestPhasesAfterTheRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{}, 1)
		done, undone := withPhases(t, o.Plan)
		r := start(t, o)
		p, stop := scraping(t, r.Handler())
		if err := r.RunRounds(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := r.Close(t.Context())
		if err == nil || err.Error() != "drill broken: exit status 3" {
			t.Errorf("closing says %v", err)
		}
		stop()
		m, counts := totals(t, o)
		equal(t, "steps", levels(m), []string{"1ba:1", "1ra:1", "1re:1", "1so:2", "1fl:4/s", "1dr:1!", "1dr:1"})
		equal(t, "state", m.State, record.Complete)
		equal(t, "what Prometheus saw last", p.last, counts)
		equal(t, "ledger", ledger(t, o), withoutZeros(counts))
		for i, want := range map[int]time.Duration{3: 30 * time.Second, 4: 40 * time.Second, 5: 10 * time.Second, 6: time.Minute} {
			equal(t, "measured for", m.Steps[i].MeasureTo.Sub(*m.Steps[i].MeasureFrom), want)
		}
		equal(t, "load", m.Steps[4].Load, &o.Plan.Fluctuations[0].Curve)
		broken, cut := m.Steps[5], m.Steps[6]
		equal(t, "stopped", broken.Stopped, "drill: exit status 3")
		equal(t, "names", broken.Name+" "+cut.Name, "broken cut")
		equal(t, "events of the one that failed", len(broken.Events), 2)
		equal(t, "its error", broken.Events[0].Error, "exit status 3")
		equal(t, "cut after", cut.Events[0].StartedAt.Sub(*cut.MeasureFrom), 20*time.Second)
		equal(t, "healed after", cut.Events[1].StartedAt.Sub(*cut.MeasureFrom), 30*time.Second)
		equal(t, "done and undone", []bool{exists(done), exists(undone), exists(undone + "0")}, []bool{true, true, true})
	})
}

// A trace is replayed once, to its end, and the manifest says what was.
func TestTraceAfterTheRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{}, 1)
		o.Plan.Rounds = 1
		o.Plan.Trace = &plan.Trace{
			HeldLoad: plan.HeldLoad{Rate: 0.35, MaxInFlight: 2}, File: "traces/talk.jsonl", Format: plan.Mooncake, Speed: 2, Busiest: 0.5, IgnoreEOS: true, Cut: 1,
			Requests: []plan.TraceRequest{{Input: 10, Output: 4}, {At: 5 * time.Second, Input: 10, Output: 4}, {At: 9 * time.Second, Input: 40, Output: 4},
				{At: 9 * time.Second, Input: 10, Output: 4}, {At: 9 * time.Second, Input: 10, Output: 4}, {At: 14 * time.Second, Input: 10, Output: 10}},
		}
		p, m, counts := whole(t, o)
		equal(t, "steps", levels(m), []string{"1ba:1", "1ra:1", "1re:1", "1tr:0.35/s"})
		equal(t, "state", m.State, record.Complete)
		equal(t, "what Prometheus saw last", p.last, counts)
		equal(t, "ledger", ledger(t, o), withoutZeros(counts))
		s := m.Steps[3]
		equal(t, "name", s.Name, "talk.jsonl")
		equal(t, "replay", s.Trace, &record.Replay{
			Format: "mooncake", SHA256: o.Plan.Trace.SHA256(), Speed: 2, Requests: 6, Duration: 14, Rate: 0.35, Busiest: 0.5,
			InputTokens: 15, OutputTokens: 5, Cut: 1, OutputLength: "held by ignore_eos and min_tokens",
		})
		equal(t, "measured for", s.MeasureTo.Sub(*s.MeasureFrom), 9*time.Second)
		equal(t, "measured", s.Totals["measure"].Outcomes["ok"], 4)
		equal(t, "dropped", s.Totals["measure"].Outcomes["dropped"], 1)
	})
}

// Ctrl-C in the middle of a drill: what undoes it is run, then what puts the target back.
func TestADrillIsUndoneAfterAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{}, 1)
		done, undone := withPhases(t, o.Plan)
		o.Plan.Soak, o.Plan.Fluctuations, o.Plan.Drills = nil, nil, o.Plan.Drills[1:]
		r := start(t, o)
		_, stop := scraping(t, r.Handler())
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			for !exists(done) {
				time.Sleep(time.Second)
			}
			cancel(errors.New("interrupt"))
		}()
		err := r.RunRounds(ctx)
		if !errors.Is(err, run.ErrInterrupted) || !strings.Contains(err.Error(), "by interrupt in round 1, drill step 1, concurrency 1") {
			t.Fatalf("the rounds ended with %v", err)
		}
		if !exists(undone) {
			t.Error("the drill was left as it was")
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop()
		m, _ := totals(t, o)
		equal(t, "state", m.State, record.Interrupted)
		equal(t, "events", len(m.Steps[len(m.Steps)-1].Events), 2)
	})
}
