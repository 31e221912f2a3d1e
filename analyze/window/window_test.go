package window_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"firstbreach/analyze/store"
	"firstbreach/analyze/window"
	"firstbreach/internal/slo"
)

const objectives = `apiVersion: firstbreach/v1
service: chat
engine: vllm
selectors:
  engine: {job: vllm}
  host: {job: host}
owners: {platform: {contact: '#platform'}}
objectives:
- {name: ttft, layer: user, signal: time_to_first_token, p95: 750ms, owner: platform, action: Cap concurrency.}
- {name: queue, layer: service, signal: requests_waiting, max: 10, for: 5m, owner: platform, action: Add a replica.}
- {name: ladder, layer: user, signal: capacity, min_concurrency: 8}
`

const scrape = 15 // seconds

// state is the service at one time.
type state struct {
	rate, bad        float64 // requests a second, and the share of them over the threshold
	running, waiting float64
	cpu              float64 // share of the host's one CPU in use
	down             bool    // nothing is scraped
}

// produce writes hours of a service into a data directory and serves it.
func produce(t *testing.T, begin time.Time, hours float64, at func(minute float64) state) string {
	t.Helper()
	dir := t.TempDir()
	db, err := tsdb.Open(dir, nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	app := db.Appender(t.Context())
	put := func(ms int64, v float64, kv ...string) {
		if _, err := app.Append(0, labels.FromStrings(kv...), ms, v); err != nil {
			t.Fatal(err)
		}
	}
	var total, good, idle, busy float64
	for s := 0.0; s <= hours*3600; s += scrape {
		now := at(s / 60)
		total, good = total+now.rate*scrape, good+now.rate*(1-now.bad)*scrape
		idle, busy = idle+(1-now.cpu)*scrape, busy+now.cpu*scrape
		if now.down {
			continue
		}
		ms := begin.UnixMilli() + int64(s*1000)
		engine := func(name string, v float64, more ...string) {
			put(ms, v, append([]string{"__name__", name, "job", "vllm", "instance", "a:1", "model_name", "m"}, more...)...)
		}
		engine("vllm:time_to_first_token_seconds_bucket", math.Floor(good), "le", "0.75")
		engine("vllm:time_to_first_token_seconds_bucket", math.Floor(total), "le", "+Inf")
		engine("vllm:time_to_first_token_seconds_count", math.Floor(total))
		engine("vllm:num_requests_running", now.running)
		engine("vllm:num_requests_waiting", now.waiting)
		put(ms, 1, "__name__", "up", "job", "vllm", "instance", "a:1")
		for mode, v := range map[string]float64{"idle": idle, "user": busy} {
			put(ms, v, "__name__", "node_cpu_seconds_total", "job", "host", "instance", "h:1", "cpu", "0", "mode", mode)
		}
		if int(s)%36000 == 0 {
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
			app = db.Appender(t.Context())
		}
	}
	if err := errors.Join(app.Commit(), db.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Options{Dir: dir, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.URL()
}

func file(t *testing.T, text string) *slo.File {
	t.Helper()
	f, err := slo.Parse("slo.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func analyze(t *testing.T, hours float64, at func(minute float64) state) (*window.Result, time.Time) {
	t.Helper()
	end := time.Now().Truncate(time.Minute)
	begin := end.Add(-time.Duration(hours * float64(time.Hour)))
	url := produce(t, begin, hours, at)
	r, err := window.Analyze(t.Context(), window.Options{SLO: file(t, objectives), URL: url, From: begin, To: end, Now: end})
	if err != nil {
		t.Fatal(err)
	}
	return r, begin
}

func healthy(float64) state { return state{rate: 2, bad: 0.01, running: 3, cpu: 0.2} }

// jitter is 0 to 1, different from minute to minute.
func jitter(minute float64) float64 { _, f := math.Modf(math.Floor(minute) * 0.618); return f }

func TestHealthy(t *testing.T) {
	r, _ := analyze(t, 4, healthy)
	o := r.Objectives[0]
	if r.Verdict != window.OK || o.State != window.OK || len(o.Breaches) > 0 || len(r.Objectives) != 1 {
		t.Fatalf("%+v", o)
	}
	// 4 h of 2/s with 1 % bad where 5 % may be: a fifth of what the time may cost.
	if math.Abs(float64(o.Requests)-28800) > 300 || math.Abs(*o.BurnRate-0.2) > 0.01 || math.Abs(*o.Spent-0.2*4/720) > 1e-4 {
		t.Errorf("%d requests, burn rate %v, spent %v", o.Requests, *o.BurnRate, *o.Spent)
	}
	if o.Interval[0] > *o.Good || o.Interval[1] < *o.Good || o.Interval[0] < 0.985 {
		t.Errorf("interval %v about %v", *o.Interval, *o.Good)
	}
	if g := r.Gauges[0]; g.State != window.OK || *g.Worst != 0 {
		t.Errorf("%+v", g)
	}
	if len(r.Skipped) != 1 || r.Skipped[0].Name != "ladder" {
		t.Errorf("skipped %+v", r.Skipped)
	}
}

// A queue that builds up three minutes before users feel it.
func TestBreachOfFortyMinutes(t *testing.T) {
	r, begin := analyze(t, 6, func(m float64) state {
		s := healthy(m)
		if m > 200 && m <= 240 {
			s.bad = 0.6
		}
		if m > 196 && m <= 240 {
			s.waiting = 20
		}
		return s
	})
	o := r.Objectives[0]
	if r.Verdict != window.Breach || len(o.Breaches) != 1 || o.Owner != "platform" || o.Contact != "#platform" {
		t.Fatalf("%s %+v", r.Verdict, o)
	}
	b := o.Breaches[0]
	began, ended := begin.Add(200*time.Minute), begin.Add(240*time.Minute)
	if b.Onset[0].After(began) || b.Onset[1].Before(began) || b.Onset[1].Sub(b.Onset[0]) > 3*time.Minute {
		t.Errorf("onset %v, began %v", b.Onset, began)
	}
	if b.End == nil || b.End[0].After(ended) || b.End[1].Before(ended) {
		t.Errorf("end %v, ended %v", b.End, ended)
	}
	if b.Layer != "service" || b.Sure != "consistent" || len(b.Turned) != 1 || b.Turned[0].Signal != "requests_waiting" {
		t.Errorf("%+v", b)
	}
	if g := r.Gauges[0]; g.State != window.Breach || *g.Worst != 20 {
		t.Errorf("%+v", g)
	}
	if o.InFlight.Concluded {
		t.Errorf("one incident concludes nothing: %+v", o.InFlight)
	}
}

func TestResourceThenService(t *testing.T) {
	r, _ := analyze(t, 6, func(m float64) state {
		s := healthy(m)
		if m > 190 && m <= 240 {
			s.cpu = 1
		}
		if m > 198 && m <= 240 {
			s.waiting = 20
		}
		if m > 200 && m <= 240 {
			s.bad = 0.8
		}
		return s
	})
	if b := r.Objectives[0].Breaches[0]; b.Layer != "resource and service" || !strings.Contains(b.Text, "cpu utilization") {
		t.Errorf("%+v", b)
	}
}

func TestResourceAloneIsAClue(t *testing.T) {
	r, _ := analyze(t, 6, func(m float64) state {
		s := healthy(m)
		if m > 195 && m <= 240 {
			s.cpu = 1
		}
		if m > 200 && m <= 240 {
			s.bad = 0.8
		}
		return s
	})
	if b := r.Objectives[0].Breaches[0]; b.Layer != "" || b.Sure != "undetermined" || !strings.Contains(b.Text, "a clue and not a cause") {
		t.Errorf("%+v", b)
	}
}

// A breach at the beginning has nothing before it to tell what is normal.
func TestNothingBeforeABreach(t *testing.T) {
	r, _ := analyze(t, 3, func(m float64) state {
		s := healthy(m)
		if m > 30 && m <= 60 {
			s.bad, s.waiting = 1, 20
		}
		return s
	})
	if b := r.Objectives[0].Breaches; len(b) != 1 || b[0].Layer != "" || !strings.Contains(b[0].Text, "Begin the window earlier") {
		t.Errorf("%+v", b)
	}
}

// What two bins show is a breach; what turned first they can't show.
func TestShortBreach(t *testing.T) {
	r, _ := analyze(t, 4, func(m float64) state {
		s := healthy(m)
		if m > 200 && m <= 202 {
			s.bad, s.running, s.waiting = 1, 4, 20
		}
		return s
	})
	o := r.Objectives[0]
	if len(o.Breaches) != 1 || o.Breaches[0].Layer != "" || !strings.Contains(o.Breaches[0].Text, "too short") {
		t.Errorf("%+v", o.Breaches)
	}
	if o.InFlight.Concluded || !strings.Contains(o.InFlight.Text, "too few bins") {
		t.Errorf("%+v", o.InFlight)
	}
}

func TestTooFewRequests(t *testing.T) {
	r, _ := analyze(t, 2, func(float64) state { return state{rate: 20. / 7200, running: 0} })
	if o := r.Objectives[0]; r.Verdict != window.Undecided || o.State != window.Undecided || o.Reason == "" {
		t.Errorf("%+v", o)
	}
}

func TestIdle(t *testing.T) {
	r, _ := analyze(t, 2, func(float64) state { return state{} })
	o := r.Objectives[0]
	if r.Verdict != window.NoData || o.State != window.NoData || o.GapBins != 0 || o.IdleBins != r.Bins || o.Good != nil {
		t.Errorf("%+v", o)
	}
}

// An objective whose series don't exist isn't idle when another's count: the rest alone is not ok.
func TestSeriesMissing(t *testing.T) {
	end := time.Now().Truncate(time.Minute)
	begin := end.Add(-2 * time.Hour)
	f := file(t, objectives+"- {name: success, layer: user, signal: success_ratio, target: 99%, owner: platform, action: Roll back.}\n")
	r, err := window.Analyze(t.Context(), window.Options{SLO: f, URL: produce(t, begin, 2, healthy), From: begin, To: end, Now: end})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != window.Undecided || r.Objectives[0].State != window.OK || r.Objectives[1].State != window.NoData || !strings.Contains(r.Headline()[1], "success: Its series counted no request") {
		t.Errorf("%s %q", r.Verdict, r.Headline())
	}
}

// Where nobody looked, nothing is ok; what was seen to be broken stays so.
func TestGaps(t *testing.T) {
	for name, c := range map[string]struct {
		bad  float64
		want window.State
	}{"good": {0.01, window.Undecided}, "bad": {0.5, window.Breach}} {
		t.Run(name, func(t *testing.T) {
			r, _ := analyze(t, 4, func(m float64) state {
				s := healthy(m)
				s.bad, s.down = c.bad, m > 60 && m < 120
				return s
			})
			if o := r.Objectives[0]; o.State != c.want || o.GapBins < 50 || o.GapBins > 60 {
				t.Errorf("%s, %d gap bins: %s", o.State, o.GapBins, o.Reason)
			}
		})
	}
	r, _ := analyze(t, 2, func(float64) state { return state{down: true} })
	if o := r.Objectives[0]; r.Verdict != window.NoData || !strings.Contains(o.Reason, "selectors.engine") {
		t.Errorf("%+v", o)
	}
}

// Twice a day the load rises, and over 16 in flight the service breaks.
func TestInFlight(t *testing.T) {
	loaded := func(m float64) state {
		phase := math.Mod(m, 180)
		x := 3 + 2*jitter(m)
		switch {
		case phase > 100 && phase <= 140:
			x = 10 + 4*jitter(m)
		case phase > 140 && phase <= 170:
			x = 20 + 8*jitter(m)
		}
		s := state{rate: x / 2, bad: 0.01, running: x, cpu: 0.2}
		if x > 16 {
			s.bad = 0.4
		}
		return s
	}
	r, _ := analyze(t, 6, loaded)
	f := r.Objectives[0].InFlight
	if !f.Concluded || f.Broke != 32 || f.Held != 16 {
		t.Errorf("%+v", f)
	}
	steady, _ := analyze(t, 6, func(m float64) state {
		s := healthy(m)
		s.bad = 0.3
		return s
	})
	if f := steady.Objectives[0].InFlight; f.Concluded || !strings.Contains(f.Text, "hardly differed") {
		t.Errorf("%+v", f)
	}
	// It breaks at night, when few requests are in flight: not by load.
	other, _ := analyze(t, 6, func(m float64) state {
		s := loaded(m)
		s.bad = 0.01
		if phase := math.Mod(m, 180); phase > 20 && phase < 60 || phase > 100 && phase <= 140 {
			s.bad = 0.5
		}
		return s
	})
	if f := other.Objectives[0].InFlight; f.Concluded {
		t.Errorf("%+v", f)
	}
}

// Twenty sound windows, each with chance's own noise: hardly one shows an incident.
func TestSoundWindowsShowNoIncident(t *testing.T) {
	found := 0
	for seed := range 5 {
		r, _ := analyze(t, 5, func(m float64) state {
			s := healthy(m)
			s.bad = 0.045 + 0.01*(jitter(m+float64(seed)*7)-0.5)
			return s
		})
		found += len(r.Objectives[0].Breaches)
	}
	if found > 0 {
		t.Errorf("%d incidents in sound windows", found)
	}
}

func TestSameBytes(t *testing.T) {
	end := time.Now().Truncate(time.Minute)
	begin := end.Add(-2 * time.Hour)
	url := produce(t, begin, 2, healthy)
	var before map[string][]byte
	for range 2 {
		r, err := window.Analyze(t.Context(), window.Options{SLO: file(t, objectives), URL: url, From: begin, To: end, Now: end})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := window.WriteFiles(dir, r); err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for _, name := range []string{window.MarkdownFile, window.HTMLFile, window.JSONFile} {
			if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if before != nil && !bytes.Equal(files[name], before[name]) {
				t.Errorf("%s differs", name)
			}
		}
		before = files
	}
	if page := string(before[window.HTMLFile]); strings.Contains(page, "<script") || strings.Contains(page, "src=") || !strings.Contains(page, "held its SLO") {
		t.Error("the page loads something, or says nothing")
	}
}

func TestRefused(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	good := window.Options{SLO: file(t, objectives), URL: "http://127.0.0.1:1", From: now.Add(-time.Hour), To: now, Now: now}
	for name, c := range map[string]struct {
		change func(*window.Options)
		want   string
	}{
		"ends before it begins": {func(o *window.Options) { o.From = now }, "not after its beginning"},
		"in the future":         {func(o *window.Options) { o.To = now.Add(time.Hour) }, "in the future"},
		"short":                 {func(o *window.Options) { o.From = now.Add(-5 * time.Minute) }, "take one of at least 10m0s"},
		"too many bins":         {func(o *window.Options) { o.From, o.Resolution = now.AddDate(-1, 0, 0), time.Minute }, "coarser resolution"},
		"fine":                  {func(o *window.Options) { o.Resolution = time.Second }, "finer than scrapes"},
		"no Prometheus":         {func(*window.Options) {}, "can't be reached"},
		"no URL":                {func(o *window.Options) { o.URL = "nowhere" }, "not the URL of a Prometheus"},
		"off every edge": {func(o *window.Options) {
			o.SLO = file(t, strings.Replace(objectives, "750ms", "700ms", 1))
		}, "objective ttft: threshold: 700ms is between two bucket edges of vllm:time_to_first_token_seconds, so that no rule could answer it exactly (fix: write 500ms or 750ms, or read"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			c.change(&o)
			if _, err := window.Analyze(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q in it", err, c.want)
			}
		})
	}
}
