package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/run"
	"firstbreach/loadgen/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// target answers after a second. Requests beyond a number in flight fail, and from a moment on it
// may be gone altogether.
type target struct {
	failAbove int       // 0: never
	goneFrom  time.Time // zero: never
	hang      bool      // it answers nobody

	mu     sync.Mutex
	flight int
}

func (f *target) Do(ctx context.Context, _ []byte) wire.Result {
	f.mu.Lock()
	f.flight++
	crowded := f.failAbove > 0 && f.flight > f.failAbove
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.flight--
	}()
	start, ttft, e2e, tokens := time.Now(), 100*time.Millisecond, time.Second, 10
	took := time.Second
	gone := !f.goneFrom.IsZero() && !start.Before(f.goneFrom)
	switch {
	case gone:
		took = time.Millisecond
	case f.hang:
		took = time.Hour
	}
	select {
	case <-ctx.Done():
		return wire.Result{SentAt: start, End: time.Since(start), Outcome: wire.Aborted}
	case <-time.After(took):
	}
	r := wire.Result{SentAt: start, End: time.Since(start)}
	switch {
	case gone:
		r.Outcome, r.Error = wire.Transport, "connection refused"
	case crowded:
		r.Outcome, r.HTTPStatus = wire.ServerError, 500
	default:
		r.Outcome, r.TTFT, r.E2E, r.OutputTokens = wire.OK, &ttft, &e2e, &tokens
	}
	return r
}

func (f *target) Body(plan.Stage, int) []byte { return nil }
func (f *target) PromptsSHA256() string       { return "prompts" }
func (f *target) Close()                      {}

// offline is an HTTP client without a network: nothing tells what it is.
func offline() *http.Client { return &http.Client{Transport: refuses{}} }

type refuses struct{}

func (refuses) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("offline") }

func options(t *testing.T, to run.Target, ladder ...int) run.Options {
	t.Helper()
	return run.Options{
		Plan: &plan.Plan{
			Source: []byte("plan"), Environment: plan.Isolated,
			Target:   plan.Target{URL: "http://target.invalid", API: plan.OpenAIChat, Model: "m"},
			Rounds:   3,
			Baseline: plan.Level{Concurrency: 1}, Ramp: plan.Ramp{Concurrency: ladder}, Recovery: plan.Level{Concurrency: 1},
			Step:     plan.Step{Requests: 20, MaxDuration: 10 * time.Minute},
			Cooldown: time.Second, Stop: plan.Stop{ErrorRatio: 0.2, After: 10},
		},
		SLO: &slo.File{Source: []byte("slo"), Objectives: []slo.Objective{
			{Name: "ttft", Layer: slo.User, Kind: slo.Latency, Signal: slo.SignalTTFT, Threshold: 700 * time.Millisecond},
		}},
		RunID: "r1", Dir: filepath.Join(t.TempDir(), "r1"), Version: "test", Target: to, HTTP: offline(),
		ScrapeWait: time.Minute, FinalWait: time.Minute, Grace: 10 * time.Second,
	}
}

// prometheus scrapes every three seconds and keeps the last value of every counter it has seen.
type prometheus struct {
	mu   sync.Mutex
	last map[string]float64 // of loadgen_requests_total, by phase/round/step/window/outcome
}

func (p *prometheus) scrape(t *testing.T, h http.Handler) {
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", "1")
	req.Header.Set("User-Agent", "Prometheus/3")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	parser := expfmt.NewTextParser(1)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Error(err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range families[signal.LoadgenRequests].GetMetric() {
		label := map[string]string{}
		for _, l := range m.GetLabel() {
			label[l.GetName()] = l.GetValue()
		}
		key := strings.Join([]string{label["phase"], label["round"], label["step"], label["window"], label["outcome"]}, "/")
		p.last[key] = m.GetCounter().GetValue()
	}
}

// scraping lets a Prometheus scrape a run until the function it returns is called.
func scraping(t *testing.T, h http.Handler) (p *prometheus, stop func()) {
	p = &prometheus{last: map[string]float64{}}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(3 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				p.scrape(t, h)
			}
		}
	})
	return p, func() { close(done); wg.Wait() }
}

func start(t *testing.T, o run.Options) *run.Runner {
	t.Helper()
	r, err := run.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// whole runs every round to the end, with a Prometheus that scrapes, and returns that, the manifest and its totals.
func whole(t *testing.T, o run.Options) (p *prometheus, m record.Manifest, counts map[string]float64) {
	t.Helper()
	r := start(t, o)
	p, stop := scraping(t, r.Handler())
	if err := errors.Join(r.RunRounds(t.Context()), r.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	stop()
	m, counts = totals(t, o)
	return p, m, counts
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// totals are the counts by phase/round/step/window/outcome as the manifest on disk has them.
func totals(t *testing.T, o run.Options) (record.Manifest, map[string]float64) {
	t.Helper()
	m, err := record.ReadManifest(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, s := range m.Steps {
		for w, tot := range s.Totals {
			for outcome, n := range tot.Outcomes {
				counts[fmt.Sprintf("%s/%d/%d/%s/%s", s.Phase, s.Round, s.Step, w, outcome)] = float64(n)
			}
		}
	}
	return m, counts
}

// ledger are the same counts from the ledger; what is zero there isn't in it.
func ledger(t *testing.T, o run.Options) map[string]float64 {
	t.Helper()
	entries, err := record.ReadLedger(filepath.Join(o.Dir, record.LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for i, e := range entries {
		if e.ID != int64(i+1) {
			t.Fatalf("line %d has the id %d", i+1, e.ID)
		}
		counts[fmt.Sprintf("%s/%d/%d/%s/%s", e.Phase, e.Round, e.Step, e.Window, e.Outcome)]++
	}
	return counts
}

func withoutZeros(m map[string]float64) map[string]float64 {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(_ string, n float64) bool { return n == 0 })
	return m
}

// shape is the run's steps in short, such as "b1 r1 r2 c1", a line for each round.
func shape(m record.Manifest) []string {
	var rounds []string
	for _, s := range m.Steps {
		for len(rounds) < s.Round {
			rounds = append(rounds, "")
		}
		text := fmt.Sprintf("%s%d", s.Phase[:2], s.Concurrency)
		if s.Stopped != "" {
			text += "!"
		}
		rounds[s.Round-1] = strings.TrimSpace(rounds[s.Round-1] + " " + text)
	}
	return rounds
}

func unscraped(m record.Manifest) (n int) {
	for _, s := range m.Steps {
		if s.Unscraped {
			n++
		}
	}
	return n
}

func TestWholeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{}, 1, 2, 4)
		r := start(t, o)
		p, stop := scraping(t, r.Handler())
		if err := r.RunRounds(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "state before closing", r.Manifest().State, record.Running)
		if err := r.AppendRound(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop()
		m, counts := totals(t, o)
		equal(t, "rounds", shape(m), slices.Repeat([]string{"ba1 ra1 ra2 ra4 re1"}, 4))
		equal(t, "state", m.State, record.Complete)
		equal(t, "reason", m.Reason, "")
		equal(t, "rounds planned and appended", m.Rounds, 4)
		equal(t, "final scrape", m.FinalScrape, "confirmed")
		equal(t, "unscraped", unscraped(m), 0)
		equal(t, "what Prometheus saw last", p.last, counts)
		equal(t, "ledger", ledger(t, o), withoutZeros(counts))
		for i, s := range m.Steps {
			equal(t, fmt.Sprintf("measured requests of step %d", i), s.Totals["measure"].Outcomes["ok"], 20)
			equal(t, "good", s.Totals["measure"].Good, 20)
			equal(t, "output tokens", s.Totals["measure"].OutputTokens, 200)
			if s.MeasureFrom == nil || s.MeasureTo == nil || s.EndedAt == nil || !s.MeasureFrom.Before(*s.MeasureTo) || s.EndedAt.Before(*s.MeasureTo) {
				t.Errorf("step %d has the edges %v, %v, %v, %v", i, s.StartedAt, s.MeasureFrom, s.MeasureTo, s.EndedAt)
			}
		}
		for name, want := range map[string]string{record.PlanFile: "plan", record.SLOFile: "slo"} {
			got, err := os.ReadFile(filepath.Join(o.Dir, name))
			if err != nil || string(got) != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
	})
}

// A stop at step 4 of every round leaves out what is higher, in each of them, and no round is
// poorer than another.
func TestStopRuleAtStepFour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{failAbove: 4}, 1, 2, 4, 8, 16, 32)
		p, m, counts := whole(t, o)
		equal(t, "rounds", shape(m), slices.Repeat([]string{"ba1 ra1 ra2 ra4 ra8! re1"}, 3))
		equal(t, "state", m.State, record.Complete)
		equal(t, "what Prometheus saw last", p.last, counts)
		equal(t, "ledger", ledger(t, o), withoutZeros(counts))
		for _, s := range m.Steps {
			if s.Concurrency == 8 && !strings.HasPrefix(s.Stopped, "error_ratio: ") {
				t.Errorf("step 4 was stopped by %q", s.Stopped)
			}
		}
		if !strings.HasPrefix(m.Reason, "round 1 stopped at ramp step 4, concurrency 8 (error_ratio: ") || strings.Count(m.Reason, "; ") != 2 {
			t.Errorf("reason %q", m.Reason)
		}
	})
}

// later is a target that grows tired: what it serves at once falls at a moment.
type later struct {
	*target
	at    time.Time
	above int
}

func (l later) Do(ctx context.Context, b []byte) wire.Result {
	l.mu.Lock()
	if !time.Now().Before(l.at) {
		l.failAbove = l.above
	}
	l.mu.Unlock()
	return l.target.Do(ctx, b)
}

// A later round never goes above the lowest step at which an earlier one was stopped.
func TestALaterStopLowersTheLadder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The first round takes about 70 s, half of it the single slots of baseline and recovery.
		o := options(t, later{&target{failAbove: 4}, time.Now().Add(80 * time.Second), 2}, 2, 4, 8, 16)
		_, m, _ := whole(t, o)
		equal(t, "rounds", shape(m), []string{"ba1 ra2 ra4 ra8! re1", "ba1 ra2 ra4! re1", "ba1 ra2 ra4! re1"})
	})
}

// A target that goes away ends nothing but its own steps: the run goes on, and says so.
func TestTargetGoneMidRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{goneFrom: time.Now().Add(30 * time.Second)}, 1, 2, 4)
		p, m, counts := whole(t, o)
		// In the first round it went away during step 1 of the ladder. Later a baseline that fails
		// leaves nothing of the ladder but what is as low as itself.
		equal(t, "rounds", shape(m), []string{"ba1 ra1! re1!", "ba1! ra1! re1!", "ba1! ra1! re1!"})
		equal(t, "state", m.State, record.Complete)
		equal(t, "what Prometheus saw last", p.last, counts)
		if n := counts["recovery/3/1/measure/transport"]; n != 10 {
			t.Errorf("the stop rule let %v failures pass in the last recovery, not 10", n)
		}
	})
}

func TestNobodyScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{}, 1, 2, 4)
		r := start(t, o)
		began := time.Now()
		if err := errors.Join(r.RunRounds(t.Context()), r.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		m, counts := totals(t, o)
		equal(t, "state", m.State, record.Complete)
		equal(t, "unscraped", unscraped(m), len(m.Steps))
		equal(t, "ledger", ledger(t, o), withoutZeros(counts))
		if !strings.HasPrefix(m.FinalScrape, "not_confirmed: nobody scrapes") {
			t.Errorf("final scrape: %q", m.FinalScrape)
		}
		// 15 steps of at most 22 s each, their cooldowns, and one wait.
		if took := time.Since(began); took > 15*23*time.Second+time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

func TestInterrupted(t *testing.T) {
	marker := func(o *run.Options) string {
		file := filepath.Join(filepath.Dir(o.Dir), "restored")
		o.Plan.Restore = plan.Restore{Command: []string{"touch", file}, Timeout: time.Minute}
		return file
	}
	t.Run("by a signal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := options(t, &target{}, 1, 2, 4)
			restored := marker(&o)
			r := start(t, o)
			p, stop := scraping(t, r.Handler())
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(30500*time.Millisecond, func() { cancel(errors.New("interrupt")) })
			err := r.RunRounds(ctx)
			if !errors.Is(err, run.ErrInterrupted) {
				t.Fatalf("the rounds ended with %v", err)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			stop()
			m, counts := totals(t, o)
			equal(t, "rounds", shape(m), []string{"ba1 ra1!"})
			equal(t, "state", m.State, record.Interrupted)
			equal(t, "reason", m.Reason, "interrupted by interrupt in round 1, ramp step 1, concurrency 1")
			equal(t, "step", m.Steps[1].Stopped, "interrupted")
			equal(t, "aborted", counts["ramp/1/1/measure/aborted"], 0.0)
			equal(t, "what Prometheus saw last", p.last, counts)
			equal(t, "ledger", ledger(t, o), withoutZeros(counts))
			equal(t, "restore", m.Restore, "done")
			if _, err := os.Stat(restored); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("by a second one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := options(t, &target{hang: true}, 1, 2, 4)
			restored := marker(&o)
			abort := make(chan struct{})
			o.Abort = abort
			r := start(t, o)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(5*time.Second, cancel)
			time.AfterFunc(6*time.Second, func() { close(abort) })
			began := time.Now()
			if err := r.RunRounds(ctx); !errors.Is(err, run.ErrInterrupted) {
				t.Fatalf("the rounds ended with %v", err)
			}
			closing, end := context.WithCancel(t.Context())
			end()
			if err := r.Close(closing); err != nil {
				t.Fatal(err)
			}
			equal(t, "took", time.Since(began), 6*time.Second)
			m, counts := totals(t, o)
			equal(t, "state", m.State, record.Interrupted)
			equal(t, "aborted", counts["baseline/1/1/warmup/aborted"], 1)
			if _, err := os.Stat(restored); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("before the first step", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := options(t, &target{}, 1)
			restored := marker(&o)
			r := start(t, o)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := r.RunRounds(ctx); !errors.Is(err, run.ErrInterrupted) {
				t.Fatalf("the rounds ended with %v", err)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			m, _ := totals(t, o)
			equal(t, "state", m.State, record.Interrupted)
			if _, err := os.Stat(restored); err == nil {
				t.Error("the target was put back although nothing had been sent to it")
			}
		})
	})
}

func TestRestoreFails(t *testing.T) {
	tests := map[string]struct {
		restore plan.Restore
		want    string
	}{
		"a command that fails":     {plan.Restore{Command: []string{"sh", "-c", "echo no; exit 3"}}, "restore: exit status 3"},
		"one that isn't there":     {plan.Restore{Command: []string{"/no/such/command"}}, "restore: fork/exec /no/such/command"},
		"one that takes too long":  {plan.Restore{Command: []string{"sleep", "60"}, Timeout: 50 * time.Millisecond}, "restore: not done within 50ms (restore.timeout)"},
		"a request to nobody":      {plan.Restore{Request: &plan.Request{URL: "http://target.invalid/reset"}}, "offline"},
		"a URL that can't be sent": {plan.Restore{Request: &plan.Request{URL: "::"}}, "restore: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := options(t, &target{goneFrom: time.Unix(1, 0)}, 1)
			o.Plan.Rounds, o.Plan.Cooldown, o.ScrapeWait, o.FinalWait = 1, 0, 0, 0
			o.Plan.Restore = tc.restore
			r := start(t, o)
			if err := r.RunRounds(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := r.Close(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
			m, _ := totals(t, o)
			equal(t, "state", m.State, record.Complete)
			if !strings.Contains(m.Restore, tc.want) {
				t.Errorf("the manifest says %q", m.Restore)
			}
		})
	}
}

func TestRestoreRequest(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // asked what it is
			http.NotFound(w, r)
			return
		}
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+b.String())
	}))
	defer srv.Close()
	o := options(t, &target{goneFrom: time.Unix(1, 0)}, 1)
	o.Plan.Rounds, o.Plan.Cooldown, o.ScrapeWait, o.FinalWait = 1, 0, 0, 0
	o.Plan.Restore = plan.Restore{Request: &plan.Request{URL: srv.URL + "/reset", Body: `{"a":1}`}}
	o.HTTP = srv.Client()
	r := start(t, o)
	if err := errors.Join(r.RunRounds(t.Context()), r.Close(t.Context()), r.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	equal(t, "requests", got, []string{`POST /reset {"a":1}`})
}

// When nothing more can be written the run ends, says why, and still puts the target back.
func TestTheDirectoryGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &target{}, 1, 2)
		restored := filepath.Join(filepath.Dir(o.Dir), "restored")
		o.Plan.Restore = plan.Restore{Command: []string{"touch", restored}}
		r := start(t, o)
		time.AfterFunc(5*time.Second, func() {
			if err := os.RemoveAll(o.Dir); err != nil {
				t.Error(err)
			}
		})
		err := r.RunRounds(t.Context())
		if err == nil || !strings.Contains(err.Error(), "write the manifest") {
			t.Fatalf("the rounds ended with %v", err)
		}
		if err := r.Close(t.Context()); err == nil {
			t.Error("closing found nothing wrong")
		}
		equal(t, "state", r.Manifest().State, record.Interrupted)
		if _, err := os.Stat(restored); err != nil {
			t.Error(err)
		}
	})
}

func TestStartRefuses(t *testing.T) {
	tests := map[string]struct {
		change func(*run.Options)
		want   string
	}{
		"a run ID that is a path":     {func(o *run.Options) { o.RunID = "../r1" }, "run ID"},
		"no plan":                     {func(o *run.Options) { o.Plan = nil }, "needs a plan"},
		"a plan without its text":     {func(o *run.Options) { o.Plan.Source = nil }, "as text"},
		"a directory of another run":  {func(o *run.Options) { o.Dir = "." }, "not empty"},
		"a dialect that isn't there":  {func(o *run.Options) { o.Target, o.Plan.Target.API = nil, "smtp" }, "target.api"},
		"a key that isn't there":      {func(o *run.Options) { o.Target, o.Plan.Target.APIKey = nil, plan.Secret{File: "/no/such/key"} }, "/no/such/key"},
		"prompts that are nowhere":    {func(o *run.Options) { o.Target, o.Plan.Fixed.Prompts = nil, plan.Prompts{} }, "prompts"},
		"a directory that can't be":   {func(o *run.Options) { o.Dir = "/dev/null/r1" }, "run directory"},
		"no directory at all":         {func(o *run.Options) { o.Dir = "" }, "--out"},
		"an SLO file without content": {func(o *run.Options) { o.SLO = &slo.File{} }, "as text"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := options(t, &target{}, 1)
			o.Plan.Fixed.Prompts = plan.Prompts{Synthetic: &plan.Synthetic{InputTokens: 16}}
			tc.change(&o)
			if _, err := run.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
