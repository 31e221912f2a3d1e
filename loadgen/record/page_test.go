package record_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

var update = flag.Bool("update", false, "rewrite the golden page")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func objectives() []slo.Objective {
	return []slo.Objective{
		{Name: "ttft", Layer: slo.User, Kind: slo.Latency, Signal: slo.SignalTTFT, Threshold: 700 * time.Millisecond},
		{Name: "tpot", Layer: slo.User, Kind: slo.Latency, Signal: slo.SignalTPOT, Threshold: 60 * time.Millisecond},
		{Name: "success", Layer: slo.User, Kind: slo.Success, Signal: slo.SignalSuccess},
	}
}

func newPage(wait time.Duration) *record.Page {
	return record.NewPage(record.PageOptions{
		Run: "r1", Objectives: objectives(), ScrapeWait: wait, Logger: slog.New(slog.DiscardHandler),
	})
}

// scrape asks for the page as Prometheus does, in the text format.
func scrape(p http.Handler, from string) string {
	return ask(p, from, "text/plain").Body.String()
}

func ask(p http.Handler, from, accept string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.RemoteAddr, _, _ = strings.Cut(from, "/")
	req.Header.Set("User-Agent", from)
	req.Header.Set("Accept", accept)
	req.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", "1")
	w := httptest.NewRecorder()
	p.ServeHTTP(w, req)
	return w
}

func d(ms float64) *time.Duration {
	v := time.Duration(ms * float64(time.Millisecond))
	return &v
}

func n(v int) *int { return &v }

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// script is one step with every kind of request, on a clock that starts with the bubble's.
func script(s *record.Step) {
	tick := func() time.Time { time.Sleep(250 * time.Millisecond); return time.Now() }
	request := func(w record.Window, r wire.Result) {
		started := time.Now()
		s.Sent(started)
		now := tick()
		r.SentAt = started.Add(time.Millisecond)
		r.End = now.Sub(r.SentAt)
		s.Returned(now)
		s.Observe(record.Request{Window: w, Scheduled: started, Started: started, Returned: now, Result: r})
	}
	ok := wire.Result{
		TTFT: d(100), E2E: d(200), TPOT: d(50), Gaps: []time.Duration{*d(50), *d(0), *d(100)},
		PromptTokens: n(30), CachedPromptTokens: n(8), OutputTokens: n(3), Outcome: wire.OK,
	}
	s.Enter(record.Warmup, time.Now())
	request(record.Warmup, ok)
	s.Enter(record.Measure, tick())
	request(record.Measure, ok)
	slow := ok
	slow.TTFT = d(701)
	request(record.Measure, slow)
	atThreshold := ok
	atThreshold.TTFT = d(700)
	request(record.Measure, atThreshold)
	oneToken := ok
	oneToken.TPOT, oneToken.Gaps, oneToken.OutputTokens = nil, nil, n(1)
	request(record.Measure, oneToken)
	request(record.Measure, wire.Result{Outcome: wire.Rejected, QueueWait: d(5), QueueWaitSource: "headers"})
	request(record.Measure, wire.Result{Outcome: wire.Timeout, TimeoutKind: wire.TimeoutFirstToken})
	s.Enter(record.Drain, time.Now())
	request(record.Drain, ok)
	s.End(tick())
}

// The page is the contract with whoever scrapes it: names, labels, edges and values.
func TestGoldenPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(time.Minute)
		s, _, err := p.Begin(t.Context(), record.StepID{Phase: "ramp", Round: 2, Step: 3, Concurrency: 8})
		if err != nil {
			t.Fatal(err)
		}
		script(s)
		got := scrape(p, "prometheus")
		golden := filepath.Join("testdata", "page.txt")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "page", got, string(want))
	})
}

// What the page says is what the manifest says, and the ratios come out right to the request.
func TestPageEqualsTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(time.Minute)
		s, _, err := p.Begin(t.Context(), record.StepID{Phase: "ramp", Round: 1, Step: 1, Concurrency: 1})
		if err != nil {
			t.Fatal(err)
		}
		script(s)
		families := parse(t, ask(p, "prometheus", string(expfmt.NewFormat(expfmt.TypeProtoDelim))))
		for w, totals := range s.Totals() {
			for o, want := range totals.Outcomes {
				equal(t, w+" "+o, int(counter(t, families, signal.LoadgenRequests, w, o)), want)
			}
			for k, want := range totals.Timeouts {
				equal(t, w+" "+k, int(counter(t, families, signal.LoadgenTimeouts, w, k)), want)
			}
			equal(t, w+" good", int(counter(t, families, signal.LoadgenGoodRequests, w)), totals.Good)
			equal(t, w+" output tokens", int(counter(t, families, signal.LoadgenOutputTokens, w)), totals.OutputTokens)
			equal(t, w+" prompt tokens", int(counter(t, families, signal.LoadgenPromptTokens, w)), totals.PromptTokens)
		}
		equal(t, "measured, good", int(counter(t, families, signal.LoadgenGoodRequests, "measure")), 3)
		equal(t, "measured, undefined", int(counter(t, families, signal.LoadgenUndefined, "measure", "tpot")), 1)
		equal(t, "in flight over time, warm-up", counter(t, families, signal.LoadgenInFlightSeconds, "warmup"), 0.25)
		equal(t, "in flight over time, measure", counter(t, families, signal.LoadgenInFlightSeconds, "measure"), 6*0.25)
		equal(t, "occupancy, measure", counter(t, families, signal.LoadgenOccupancySeconds, "measure"), 6*0.25)

		h := find(t, families, signal.LoadgenTTFT, "measure").GetHistogram()
		equal(t, "TTFT count", h.GetSampleCount(), uint64(4))
		equal(t, "TTFT within the threshold", bucket(t, h, 0.7), uint64(3))
		if h.GetSchema() != 3 || len(h.GetPositiveSpan()) == 0 {
			t.Errorf("the histogram has schema %d and %d spans: it is not native with a growth of at most 1.1", h.GetSchema(), len(h.GetPositiveSpan()))
		}
	})
}

func parse(t *testing.T, w *httptest.ResponseRecorder) map[string]*dto.MetricFamily {
	t.Helper()
	families := map[string]*dto.MetricFamily{}
	dec := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header()))
	for {
		var f dto.MetricFamily
		if err := dec.Decode(&f); err == io.EOF {
			return families
		} else if err != nil {
			t.Fatal(err)
		}
		families[f.GetName()] = &f
	}
}

// find returns the series of a family that has all of the label values.
func find(t *testing.T, families map[string]*dto.MetricFamily, name string, values ...string) *dto.Metric {
	t.Helper()
	for _, m := range families[name].GetMetric() {
		left := len(values)
		for _, v := range values {
			for _, l := range m.GetLabel() {
				if l.GetValue() == v {
					left--
				}
			}
		}
		if left == 0 {
			return m
		}
	}
	t.Fatalf("the page has no %s with %v", name, values)
	return nil
}

func counter(t *testing.T, families map[string]*dto.MetricFamily, name string, values ...string) float64 {
	t.Helper()
	return find(t, families, name, values...).GetCounter().GetValue()
}

func bucket(t *testing.T, h *dto.Histogram, edge float64) uint64 {
	t.Helper()
	for _, b := range h.GetBucket() {
		if b.GetUpperBound() == edge {
			return b.GetCumulativeCount()
		}
	}
	t.Fatalf("there is no bucket with the edge %v", edge)
	return 0
}

func TestFormats(t *testing.T) {
	p := newPage(time.Minute)
	if _, _, err := p.Begin(t.Context(), record.StepID{Phase: "ramp", Round: 1, Step: 1, Concurrency: 1}); err != nil {
		t.Fatal(err)
	}
	for accept, want := range map[string]string{
		"text/plain": "text/plain; version=0.0.4",
		"application/openmetrics-text;version=1.0.0":                                                 "application/openmetrics-text; version=1.0.0",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited": "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
	} {
		if got := ask(p, "prometheus", accept).Header().Get("Content-Type"); !strings.HasPrefix(got, want) {
			t.Errorf("asked for %s, got %s", accept, got)
		}
	}
}

// A scrape sees every request whole: as many in the TTFT histogram as ok requests, at any moment.
func TestScrapeNeverSeesHalfARequest(t *testing.T) {
	p := newPage(time.Minute)
	s, _, err := p.Begin(t.Context(), record.StepID{Phase: "ramp", Round: 1, Step: 1, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.Enter(record.Warmup, time.Now())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.Observe(record.Request{Window: record.Measure, Result: wire.Result{
					Outcome: wire.OK, TTFT: d(1), E2E: d(2), OutputTokens: n(7), Gaps: []time.Duration{1, 2, 3},
				}})
			}
		}
	})
	for range 50 {
		families := parse(t, ask(p, "prometheus", string(expfmt.NewFormat(expfmt.TypeProtoDelim))))
		ok := counter(t, families, signal.LoadgenRequests, "measure", "ok")
		equal(t, "TTFT count", float64(find(t, families, signal.LoadgenTTFT, "measure").GetHistogram().GetSampleCount()), ok)
		equal(t, "chunk gaps", float64(find(t, families, signal.LoadgenICL, "measure").GetHistogram().GetSampleCount()), 3*ok)
		equal(t, "tokens", counter(t, families, signal.LoadgenOutputTokens, "measure"), 7*ok)
	}
	close(stop)
	wg.Wait()
}

var stepLabels = regexp.MustCompile(`^loadgen_requests_total\{concurrency="(\d+)",outcome="ok",phase="(\w+)",round="(\d+)",run="r1",step="(\d+)",window="measure"\}`)

// steps are the steps on a page, in its order.
func steps(page string) []string {
	var found []string
	for line := range strings.Lines(page) {
		if m := stepLabels.FindStringSubmatch(line); m != nil {
			found = append(found, fmt.Sprintf("%s/%s/%s", m[2], m[3], m[4]))
		}
	}
	return found
}

// oneStep begins a step, runs it for a while and ends it.
func oneStep(t *testing.T, p *record.Page, id record.StepID, took time.Duration) (dropped []record.StepID) {
	t.Helper()
	s, dropped, err := p.Begin(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	s.Enter(record.Warmup, time.Now())
	time.Sleep(took)
	s.End(time.Now())
	return dropped
}

// scraping scrapes at an interval until the test's context ends.
func scraping(ctx context.Context, wg *sync.WaitGroup, p *record.Page, from string, every time.Duration, look func(page string)) {
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(every):
				page := scrape(p, from)
				if look != nil {
					look(page)
				}
			}
		}
	})
}

// 50 steps in 10 rounds never put more than two label sets on the page, and no step is lost.
func TestCardinality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		most := 0
		last := map[string]int{}
		scraping(ctx, &wg, p, "prometheus", time.Second, func(page string) {
			on := steps(page)
			most = max(most, len(on))
			for _, s := range on {
				last[s]++
			}
		})
		for round := 1; round <= 10; round++ {
			for step := 1; step <= 50; step++ {
				if dropped := oneStep(t, p, record.StepID{Phase: "ramp", Round: round, Step: step, Concurrency: step}, 300*time.Millisecond); dropped != nil {
					t.Fatalf("dropped %v although somebody scrapes", dropped)
				}
			}
		}
		if left := p.Settle(t.Context(), time.Minute); left != nil {
			t.Errorf("%v are left on the page", left)
		}
		cancel()
		wg.Wait()
		equal(t, "most steps on the page", most, 2)
		equal(t, "steps seen", len(last), 500)
		for s, times := range last {
			if times < 2 {
				t.Errorf("%s was scraped %d times", s, times)
			}
		}
		equal(t, "steps left on the page", len(steps(scrape(p, "prometheus"))), 0)
	})
}

// Two steps may be there at once; the third comes as soon as the first has been carried twice by
// both scrapers, the slower one included.
func TestAThirdStepWaitsForTheSlowestScraper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		scraping(ctx, &wg, p, "fast", time.Second, nil)
		scraping(ctx, &wg, p, "slow", 10*time.Second, nil)
		start := time.Now()
		time.Sleep(10500 * time.Millisecond) // both are known
		for i := 1; i <= 2; i++ {
			if dropped := oneStep(t, p, record.StepID{Phase: "ramp", Round: 1, Step: i, Concurrency: 1}, time.Second); dropped != nil {
				t.Fatalf("dropped %v", dropped)
			}
		}
		if dropped := oneStep(t, p, record.StepID{Phase: "ramp", Round: 1, Step: 3, Concurrency: 1}, 0); dropped != nil {
			t.Fatalf("dropped %v", dropped)
		}
		// The slow one comes at 20 s and 30 s; both steps had ended before the first of these.
		equal(t, "waited until", time.Since(start), 30*time.Second)
		cancel()
		wg.Wait()
	})
}

func TestNobodyScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(time.Minute)
		start := time.Now()
		var dropped []record.StepID
		for i := 1; i <= 20; i++ {
			dropped = append(dropped, oneStep(t, p, record.StepID{Phase: "ramp", Round: 1, Step: i, Concurrency: 1}, 0)...)
		}
		equal(t, "time lost", time.Since(start), time.Minute)
		equal(t, "dropped", len(dropped), 18)
		equal(t, "left", len(p.Settle(t.Context(), time.Minute)), 2)
		equal(t, "time lost, the end included", time.Since(start), time.Minute)

		// A person who looks is no scraper.
		req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		for range 3 {
			p.ServeHTTP(httptest.NewRecorder(), req)
		}
		equal(t, "scrapers", p.Scrapers(), 0)
	})
}

// A scraper that stops coming costs one wait and one step; then it is forgotten, and the one that
// still comes is waited for.
func TestAScraperThatStopsIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		scraping(ctx, &wg, p, "stays", time.Second, nil)
		scrape(p, "goes")
		start := time.Now()
		var dropped []record.StepID
		for i := 1; i <= 6; i++ {
			dropped = append(dropped, oneStep(t, p, record.StepID{Phase: "ramp", Round: 1, Step: i, Concurrency: 1}, 5*time.Second)...)
		}
		equal(t, "dropped", dropped, []record.StepID{{Phase: "ramp", Round: 1, Step: 1, Concurrency: 1}})
		equal(t, "scrapers", p.Scrapers(), 1)
		equal(t, "took", time.Since(start), 6*5*time.Second+time.Minute)
		cancel()
		wg.Wait()
	})
}

// Prometheus that is gone for 30 s is waited for, and nothing is lost.
func TestAShortOutageLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(time.Minute)
		var wg sync.WaitGroup
		first, cancel := context.WithCancel(t.Context())
		scraping(first, &wg, p, "prometheus", time.Second, nil)
		time.AfterFunc(8*time.Second, cancel)
		second, end := context.WithCancel(t.Context())
		time.AfterFunc(38*time.Second, func() { scraping(second, &wg, p, "prometheus", time.Second, nil) })
		for i := 1; i <= 6; i++ {
			if dropped := oneStep(t, p, record.StepID{Phase: "ramp", Round: 1, Step: i, Concurrency: 1}, 5*time.Second); dropped != nil {
				t.Errorf("dropped %v", dropped)
			}
		}
		if left := p.Settle(t.Context(), time.Minute); left != nil {
			t.Errorf("%v are left", left)
		}
		end()
		wg.Wait()
	})
}

// brokenPipe is a scraper that hangs up in the middle.
type brokenPipe struct{ http.ResponseWriter }

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAScrapeThatFailedDoesNotCount(t *testing.T) {
	p := newPage(time.Minute)
	oneStep(t, p, record.StepID{Phase: "ramp", Round: 1, Step: 1, Concurrency: 1}, 0)
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", "1")
	for range 3 {
		p.ServeHTTP(brokenPipe{httptest.NewRecorder()}, req)
	}
	equal(t, "scrapers", p.Scrapers(), 0)
	equal(t, "on the page", len(steps(scrape(p, "prometheus"))), 1)
}

func TestBeginEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(time.Hour)
		for i := 1; i <= 2; i++ {
			oneStep(t, p, record.StepID{Phase: "ramp", Round: 1, Step: i, Concurrency: 1}, 0)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := p.Begin(ctx, record.StepID{Phase: "ramp", Round: 1, Step: 3, Concurrency: 1}); err == nil {
			t.Error("a third step began although its context had ended")
		}
		equal(t, "on the page", len(steps(scrape(p, "prometheus"))), 2)
	})
}

// Slots that back off are counted over time, in the window of the step's clock.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(time.Minute)
		s, _, err := p.Begin(t.Context(), record.StepID{Phase: "ramp", Round: 1, Step: 1, Concurrency: 2})
		if err != nil {
			t.Fatal(err)
		}
		s.Enter(record.Warmup, time.Now())
		s.BackingOff(1, time.Now())
		time.Sleep(250 * time.Millisecond)
		s.Enter(record.Measure, time.Now())
		time.Sleep(500 * time.Millisecond)
		s.BackingOff(1, time.Now())
		time.Sleep(time.Second)
		s.BackingOff(-2, time.Now())
		time.Sleep(time.Second)
		s.End(time.Now())
		families := parse(t, ask(p, "prometheus", string(expfmt.NewFormat(expfmt.TypeProtoDelim))))
		for w, want := range map[string]float64{"warmup": 0.25, "measure": 2.5, "drain": 0} {
			equal(t, "backing off, "+w, counter(t, families, signal.LoadgenBackoffSeconds, w), want)
			equal(t, "in the manifest, "+w, s.Totals()[w].Backoff, want)
		}
	})
}
