package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sample is one request as a client saw it.
type sample struct {
	ttft, e2e time.Duration
	tpot      time.Duration
	failed    bool
}

// closedLoop runs clients against an engine in virtual time, each with so many requests on average, and
// returns what they saw after the opening wave. A client that is turned away or fails waits 1 ms.
func closedLoop(t *testing.T, cfg Config, load Load, perClient int) (samples []sample, page *metricsPage) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var engine, clients sync.WaitGroup
		engine.Go(func() { e.Run(ctx) })
		var mu sync.Mutex
		left := load.Clients * perClient // of all clients together, so that fast failures count as often as they happen
		for range load.Clients {
			clients.Go(func() {
				for opening := true; ; opening = false {
					mu.Lock()
					left--
					over := left < 0
					mu.Unlock()
					if over {
						return
					}
					s := oneRequest(ctx, e, load)
					if !opening {
						mu.Lock()
						samples = append(samples, s)
						mu.Unlock()
					}
					if s.failed {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		clients.Wait()
		page = readPage(t, e)
		stop()
		engine.Wait()
	})
	return samples, page
}

func oneRequest(ctx context.Context, e *Engine, load Load) sample {
	sent := time.Now()
	st, err := e.Submit(load.PromptTokens, load.OutputTokens, false)
	if err != nil {
		return sample{failed: true}
	}
	var s sample
	for seen := 0; ; {
		p, err := st.Next(ctx, seen)
		if err != nil {
			return sample{failed: true}
		}
		if seen == 0 && p.Tokens > 0 {
			s.ttft = time.Since(sent)
		}
		seen = p.Tokens
		if p.Done {
			s.e2e = time.Since(sent)
			s.failed = p.Failure != FailNone
			if seen > 1 {
				s.tpot = (s.e2e - s.ttft) / time.Duration(seen-1)
			}
			return s
		}
	}
}

// badShare is the share of samples that miss the goal.
func badShare(samples []sample, g Goal) float64 {
	bad := 0
	for _, s := range samples {
		value := map[string]time.Duration{SignalTTFT: s.ttft, SignalE2E: s.e2e, SignalTPOT: s.tpot}[g.Signal]
		if s.failed || value > g.Threshold {
			bad++
		}
	}
	return float64(bad) / float64(len(samples))
}

// with returns Default changed by f.
func with(f func(*Config)) Config {
	c := Default()
	f(&c)
	return c
}

// The scenarios whose first breach the parameters imply: the formula has to give it, and the engine
// has to show it.
func scenarios() []struct {
	name           string
	cfg            Config
	ladder         []int
	prompt, output int
	goal           Goal
	want           FirstBreach
} {
	ttft := func(d time.Duration) Goal { return Goal{SignalTTFT, d, 0.95} }
	ms := time.Millisecond
	ladder := []int{1, 2, 4, 8}
	return []struct {
		name           string
		cfg            Config
		ladder         []int
		prompt, output int
		goal           Goal
		want           FirstBreach
	}{
		{"slot-bound", Default(), ladder, 30, 10, ttft(100 * ms), FirstBreach{8, 4, CauseSlots, true}},
		{"slot-bound by E2E", Default(), ladder, 30, 10, Goal{SignalE2E, 300 * ms, 0.95}, FirstBreach{8, 4, CauseSlots, true}},
		{"KV-bound", with(func(c *Config) { c.Slots, c.KVTokens = 16, 84 }), ladder, 30, 10, ttft(100 * ms), FirstBreach{4, 2, CauseKV, true}},
		{"KV-bound with preemption", with(func(c *Config) { c.Slots, c.KVTokens = 16, 130 }), ladder, 30, 10, ttft(100 * ms), FirstBreach{8, 2, CauseKV, false}},
		{"error share above a concurrency", with(func(c *Config) { c.Slots, c.ErrorShare, c.ErrorAbove = 16, 0.2, 4 }), ladder, 30, 10,
			Goal{Signal: SignalSuccess, Target: 0.99}, FirstBreach{8, 4, CauseErrors, true}},
		{"errors in the stream", with(func(c *Config) {
			c.Slots, c.ErrorShare, c.ErrorAbove, c.ErrorStatus, c.ErrorTokens = 16, 0.1, 2, 200, 3
		}), ladder, 30, 10,
			Goal{Signal: SignalSuccess, Target: 0.99}, FirstBreach{4, 2, CauseErrors, true}},
		{"rejecting", with(func(c *Config) { c.MaxRequests = 4 }), ladder, 30, 10, Goal{Signal: SignalSuccess, Target: 0.99}, FirstBreach{8, 4, CauseRejections, true}},
		{"flat", with(func(c *Config) { c.Slots = 64 }), ladder, 30, 10, ttft(100 * ms), FirstBreach{0, 8, "", true}},
		{"no breach in range", Default(), []int{1, 2, 3, 4}, 30, 10, ttft(100 * ms), FirstBreach{0, 4, "", true}},
		{"breach at the first step", with(func(c *Config) { c.PrefillTime = 150 * ms }), ladder, 30, 10, ttft(100 * ms), FirstBreach{1, 0, CauseService, true}},
		{"slower steps by batch size", with(func(c *Config) { c.Slots, c.StepPerSequence = 32, 5*ms }), ladder, 30, 40,
			Goal{SignalTPOT, 45 * ms, 0.95}, FirstBreach{8, 4, CauseService, true}},
		{"prefill-bound", with(func(c *Config) { c.Slots, c.PrefillRate, c.StepBase = 32, 1000, 5*ms }), ladder, 100, 10,
			ttft(250 * ms), FirstBreach{4, 2, CauseService, true}},
		{"noisy at the limit", with(func(c *Config) { c.Slots, c.Jitter, c.Seed = 16, 0.3, 2 }), ladder, 30, 10, ttft(47 * ms), FirstBreach{0, 0, "", false}},
		{"parallel prefill", with(func(c *Config) { c.Slots, c.PrefillTime = 400, 100*ms }), []int{64, 384, 480}, 30, 40,
			ttft(200 * ms), FirstBreach{480, 384, CauseSlots, true}},
		{"demo", Demo(), ladder, 32, 10, ttft(80 * ms), FirstBreach{8, 4, CauseSlots, true}},
		{"demo, limit of 100 ms", Demo(), ladder, 32, 10, ttft(100 * ms), FirstBreach{8, 4, CauseSlots, true}},
		{"demo, 8 tokens", Demo(), ladder, 32, 8, ttft(80 * ms), FirstBreach{8, 4, CauseSlots, true}},
		{"demo, 12 tokens", Demo(), ladder, 32, 12, ttft(80 * ms), FirstBreach{8, 4, CauseSlots, true}},
	}
}

func TestFirstBreach(t *testing.T) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			got := sc.cfg.FirstBreach(sc.ladder, sc.prompt, sc.output, sc.goal)
			if got != sc.want {
				t.Errorf("FirstBreach = %+v, want %+v", got, sc.want)
			}
		})
	}
}

// The engine breaks where the formula says, and its values lie within the bounds.
func TestEngineKeepsToTheFormula(t *testing.T) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			for _, clients := range sc.ladder {
				load := Load{clients, sc.prompt, sc.output}
				samples, _ := closedLoop(t, sc.cfg, load, max(12, 240/clients))
				share := badShare(samples, sc.goal)
				low, high := sc.cfg.bad(sc.cfg.Expect(load), sc.goal)
				const chance = 0.03 // of a few hundred samples with jitter
				if share < low-chance || share > high+chance {
					t.Errorf("%d clients: %.3f of %d requests miss the goal, the formula says %.3f to %.3f", clients, share, len(samples), low, high)
				}
				if sc.want.Decided && clients == sc.want.Concurrency && share <= 1-sc.goal.Target {
					t.Errorf("%d clients: only %.3f miss the goal, a breach was due", clients, share)
				}
				checkBounds(t, sc.cfg, load, samples)
			}
		})
	}
}

// checkBounds compares the latencies of requests that ended well with the expected bounds.
func checkBounds(t *testing.T, cfg Config, load Load, samples []sample) {
	t.Helper()
	if cfg.Jitter > 0 {
		return
	}
	x := cfg.Expect(load)
	for name, part := range map[string]struct {
		want Latency
		of   func(sample) time.Duration
	}{
		"TTFT": {x.TTFT, func(s sample) time.Duration { return s.ttft }},
		"E2E":  {x.E2E, func(s sample) time.Duration { return s.e2e }},
		"TPOT": {x.TPOT, func(s sample) time.Duration { return s.tpot }},
	} {
		var values []time.Duration
		for _, s := range samples {
			if !s.failed {
				values = append(values, part.of(s))
			}
		}
		if len(values) == 0 {
			continue
		}
		least, most, mean := slices.Min(values), slices.Max(values), meanOf(values)
		t.Logf("%+v %s: %v ≤ %v ≤ %v, expected %+v", load, name, least, mean, most, part.want)
		const rounding = 20 * time.Microsecond
		if least < part.want.Least-rounding || most > part.want.Most+rounding {
			t.Errorf("%+v: %s lies in [%v, %v], expected [%v, %v]", load, name, least, most, part.want.Least, part.want.Most)
		}
		// The first and the last lot are not steady state: allow the mean 5 %.
		if float64(mean) < 0.95*float64(part.want.Low) || float64(mean) > 1.05*float64(part.want.High) {
			t.Errorf("%+v: mean %s is %v, expected [%v, %v]", load, name, mean, part.want.Low, part.want.High)
		}
	}
}

func meanOf(values []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, v := range values {
		sum += v
	}
	return sum / time.Duration(len(values))
}

// The numbers in Demo's comment.
func TestDemoNumbers(t *testing.T) {
	for _, want := range []struct {
		clients   int
		ttft, e2e time.Duration
		perSecond float64
	}{
		{1, 33 * time.Millisecond, 107 * time.Millisecond, 9.3},
		{2, 33 * time.Millisecond, 112 * time.Millisecond, 18},
		{4, 33 * time.Millisecond, 117 * time.Millisecond, 34},
		{8, 149 * time.Millisecond, 232 * time.Millisecond, 34},
	} {
		t.Run(fmt.Sprint(want.clients), func(t *testing.T) {
			samples, _ := closedLoop(t, Demo(), Load{want.clients, 32, 10}, 200)
			var ttft, e2e []time.Duration
			for _, s := range samples {
				ttft, e2e = append(ttft, s.ttft), append(e2e, s.e2e)
			}
			slices.Sort(ttft)
			near := func(name string, got, want, by time.Duration) {
				if (got - want).Abs() > by {
					t.Errorf("%s = %v, want %v", name, got, want)
				}
			}
			near("mean TTFT", meanOf(ttft), want.ttft, time.Millisecond)
			near("mean E2E", meanOf(e2e), want.e2e, 2*time.Millisecond)
			t.Logf("TTFT min %v p5 %v p50 %v p95 %v max %v", ttft[0], ttft[len(ttft)/20], ttft[len(ttft)/2], ttft[len(ttft)*95/100], ttft[len(ttft)-1])
			rate := float64(want.clients) / meanOf(e2e).Seconds()
			if math.Abs(rate-want.perSecond) > 0.05*want.perSecond {
				t.Errorf("%.1f requests per second, want %.1f", rate, want.perSecond)
			}
			if want.clients <= 4 && ttft[len(ttft)*95/100] > 45*time.Millisecond {
				t.Errorf("P95 TTFT = %v at %d clients: too near to the limit of 80 ms", ttft[len(ttft)*95/100], want.clients)
			}
			if want.clients == 8 && ttft[len(ttft)/20] < 100*time.Millisecond {
				t.Errorf("P5 TTFT = %v at 8 clients: too near to the limit of 80 ms", ttft[len(ttft)/20])
			}
		})
	}
}

// What the engine counts is what its clients saw.
func TestMetricsAgreeWithClients(t *testing.T) {
	cfg := with(func(c *Config) { c.Slots, c.KVTokens = 16, 130 })
	load := Load{8, 30, 10}
	samples, page := closedLoop(t, cfg, load, 30)
	requests := float64(8 * 30)
	for name, want := range map[string]float64{
		"vllm:prompt_tokens_total":                         requests * 30,
		"vllm:generation_tokens_total":                     requests * 10,
		"vllm:request_success_total/length":                requests,
		"vllm:request_queue_time_seconds_count":            requests,
		"vllm:time_to_first_token_seconds_count":           requests,
		"vllm:inter_token_latency_seconds_count":           requests * 9,
		"vllm:request_time_per_output_token_seconds_count": requests,
		"vllm:num_requests_running":                        0,
		"vllm:kv_cache_usage_perc":                         0,
	} {
		if got := page.value[name]; got != want {
			t.Errorf("%s = %g, want %g", name, got, want)
		}
	}
	if page.value["vllm:num_preemptions_total"] == 0 {
		t.Error("no preemption: the scenario doesn't test what it should")
	}
	// The parts of a request's time add up.
	parts := page.value["vllm:request_queue_time_seconds_sum"] + page.value["vllm:request_prefill_time_seconds_sum"] + page.value["vllm:request_decode_time_seconds_sum"]
	if whole := page.value["vllm:e2e_request_latency_seconds_sum"]; math.Abs(parts-whole) > 1e-6 {
		t.Errorf("queue, prefill and decode take %g s, the requests %g s", parts, whole)
	}
	sum := 0.0
	for _, s := range samples {
		sum += s.e2e.Seconds()
	}
	// The opening wave is in the engine's sums and not in the samples.
	if mean, engine := sum/float64(len(samples)), page.value["vllm:e2e_request_latency_seconds_sum"]/requests; math.Abs(mean-engine) > 0.05*mean {
		t.Errorf("mean E2E: clients %g s, engine %g s", mean, engine)
	}
}
