package run_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/run"
)

// numbered is a target that remembers which request numbers it was asked for.
type numbered struct {
	target
	mu   *sync.Mutex
	seen map[string]int
}

func (n *numbered) Body(s plan.Stage, i int) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen[fmt.Sprintf("%s/%d/%d/%d", s.Phase, s.Round, s.Step, i)]++
	return nil
}

// Three shards are one run: they share out the slots, step at the same moments, and send no request twice.
func TestShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]int{}
		startAt := time.Now().Add(30 * time.Second)
		dir := t.TempDir()
		var runs []*run.Runner
		var dirs []string
		var wait sync.WaitGroup
		for i := range 3 {
			o := options(t, &numbered{mu: &mu, seen: seen}, 2, 5)
			o.Plan.Rounds, o.Plan.Step, o.Plan.Cooldown = 1, plan.Step{Duration: 20 * time.Second}, 10*time.Second
			o.Shard, o.StartAt = plan.Shard{Index: i, Of: 3}, startAt
			o.Dir = filepath.Join(dir, fmt.Sprint(i))
			r := start(t, o)
			_, stop := scraping(t, r.Handler())
			runs, dirs = append(runs, r), append(dirs, o.Dir)
			wait.Go(func() {
				defer stop()
				time.Sleep(time.Duration(i) * 7 * time.Second) // they don't come up together
				if err := errors.Join(r.RunRounds(t.Context()), r.Close(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		shares := [][]int{{1, 1, 2, 1}, {0, 1, 2, 0}, {0, 0, 1, 0}} // of 1, 2, 5, 1
		for i, r := range runs {
			m := r.Manifest()
			equal(t, "state", m.State, record.Complete)
			equal(t, "steps", len(m.Steps), 4)
			for k, s := range m.Steps {
				equal(t, "shard", s.Shard, fmt.Sprintf("%d/3", i))
				equal(t, "concurrency of all", s.Concurrency, []int{1, 2, 5, 1}[k])
				equal(t, "limited", len(s.Limited), 0)
				edge := startAt.Add(time.Duration(k) * 40 * time.Second)
				equal(t, "start", s.StartedAt.Equal(edge), true)
				equal(t, "measure from", s.MeasureFrom.Sub(edge), 5*time.Second)
				equal(t, "measure to", s.MeasureTo.Sub(edge), 25*time.Second)
				// Slots are spread over a second and requests take one, so at an edge one may fall on either side.
				got, want := s.Totals["measure"].Outcomes["ok"], 20*shares[i][k]
				if got < want-shares[i][k] || got > want+shares[i][k] {
					t.Errorf("shard %d, step %d: %d measured, want about %d", i, k, got, want)
				}
			}
			entries, err := record.ReadLedger(filepath.Join(dirs[i], record.LedgerFile))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				equal(t, "shard in the ledger", e.Shard, fmt.Sprintf("%d/3", i))
			}
		}
		for request, n := range seen {
			if n != 1 {
				t.Errorf("request %s was made %d times", request, n)
			}
		}
	})
}

// A shard that comes too late says so in the step; one that isn't warm by the edge too.
func TestShardLateAndCold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{hang: true}, 2)
		o.Plan.Rounds, o.Plan.Step, o.Grace = 1, plan.Step{Duration: 4 * time.Second}, time.Second
		o.Shard, o.StartAt = plan.Shard{Index: 0, Of: 1}, time.Now().Add(-600*time.Millisecond)
		abort := make(chan struct{})
		o.Abort = abort
		r := start(t, o)
		_, stop := scraping(t, r.Handler())
		defer stop()
		time.AfterFunc(8*time.Second, func() { close(abort) })
		_ = r.RunRounds(t.Context())
		equal(t, "limited", r.Manifest().Steps[0].Limited, []string{"shard_late", "shard_cold"})
		_ = r.Close(t.Context())
	})
}

func TestShardNeeds(t *testing.T) {
	o := options(t, &target{}, 2)
	o.Shard = plan.Shard{Index: 0, Of: 2}
	if _, err := run.Start(t.Context(), o); err == nil {
		t.Error("steps by requests were let through")
	}
	o.Plan.Step = plan.Step{Duration: time.Second}
	if _, err := run.Start(t.Context(), o); err == nil {
		t.Error("no start time was let through")
	}
}
