package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"go.uber.org/goleak"

	"firstbreach/analyze/store"
)

const interval = 100 * time.Millisecond

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page is a target with a counter and a histogram, native and classic.
type page struct {
	URL     string
	Counter prometheus.Counter
	Latency prometheus.Histogram
	server  *httptest.Server
}

func newPage(t *testing.T) *page {
	t.Helper()
	reg := prometheus.NewRegistry()
	p := &page{
		Counter: prometheus.NewCounter(prometheus.CounterOpts{Name: "things_total", Help: "Things."}),
		Latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "x", Help: "Latency.", Buckets: []float64{0.5, 0.75, 1},
			NativeHistogramBucketFactor: 1.1,
		}),
	}
	reg.MustRegister(p.Counter, p.Latency)
	p.server = httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	t.Cleanup(p.server.Close)
	p.URL = p.server.URL + "/metrics"
	return p
}

func open(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.ScrapeInterval == 0 {
		o.ScrapeInterval = interval
	}
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func waitScraped(t *testing.T, s *store.Store, job string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.WaitScraped(ctx, job, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// client asks s as any client of a Prometheus would.
func client(t *testing.T, s *store.Store) promv1.API {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	c, err := api.NewClient(api.Config{Address: s.URL(), RoundTripper: transport})
	if err != nil {
		t.Fatal(err)
	}
	return promv1.NewAPI(c)
}

func query(t *testing.T, s *store.Store, q string) model.Value {
	t.Helper()
	v, warnings, infos, err := client(t, s).Query(t.Context(), q, time.Now())
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	if len(warnings) > 0 || len(infos) > 0 {
		t.Errorf("%s: warnings %q, infos %q", q, warnings, infos)
	}
	return v
}

// scalar is the value of a query that must give exactly one float sample.
func scalar(t *testing.T, s *store.Store, q string) float64 {
	t.Helper()
	v, ok := query(t, s, q).(model.Vector)
	if !ok || len(v) != 1 || v[0].Histogram != nil {
		t.Fatalf("%s: got %v, want one float sample", q, v)
	}
	return float64(v[0].Value)
}

func get(t *testing.T, rawURL string, header ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func TestScrapesAndAnswers(t *testing.T) {
	p := newPage(t)
	p.Counter.Add(41)
	s := open(t, store.Options{Targets: []store.Target{
		{Job: "loadgen", URL: p.URL, Labels: map[string]string{"role": "client"}},
		{Job: "exporter", URL: p.URL, Labels: map[string]string{"role": "target"}},
	}})
	waitScraped(t, s, "loadgen")
	waitScraped(t, s, "exporter")
	p.Counter.Inc()
	waitScraped(t, s, "loadgen")
	if got := scalar(t, s, `things_total{job="loadgen",role="client"}`); got != 42 {
		t.Errorf("counter after the barrier: %v, want 42", got)
	}
	if got := scalar(t, s, `count(things_total{role="target"})`); got != 1 {
		t.Errorf("series of the target role: %v, want 1", got)
	}
	m, ok := query(t, s, `things_total{job="loadgen"}[1m]`).(model.Matrix)
	if !ok || len(m) != 1 || len(m[0].Values) < 2 {
		t.Fatalf("raw samples: %v", m)
	}
	host, _ := url.Parse(p.URL)
	if got := string(m[0].Metric["instance"]); got != host.Host {
		t.Errorf("instance %q, want %q", got, host.Host)
	}
	if first, last := m[0].Values[0], m[0].Values[len(m[0].Values)-1]; first.Value != 41 || last.Value != 42 {
		t.Errorf("first and last raw sample: %v, %v; want 41, 42", first, last)
	}
}

func TestNativeAndClassicHistograms(t *testing.T) {
	tests := []struct {
		name            string
		opts            store.Options
		native, classic bool
	}{
		{"both", store.Options{}, true, true},
		{"classic only", store.Options{NoNativeHistograms: true}, false, true},
		{"native only", store.Options{NoClassicHistograms: true}, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPage(t)
			for _, v := range []float64{0.3, 0.75, 0.76, 2} {
				p.Latency.Observe(v)
			}
			tt.opts.Targets = []store.Target{{Job: "loadgen", URL: p.URL}}
			s := open(t, tt.opts)
			waitScraped(t, s, "loadgen")

			v := query(t, s, `x`).(model.Vector)
			if got := len(v) == 1 && v[0].Histogram != nil && v[0].Histogram.Count == 4; got != tt.native {
				t.Errorf("native histogram: %v in %v, want %v", got, v, tt.native)
			}
			buckets := query(t, s, `x_bucket{le="0.75"}`).(model.Vector)
			if got := len(buckets) == 1 && buckets[0].Value == 2; got != tt.classic {
				t.Errorf("classic bucket: %v in %v, want %v", got, buckets, tt.classic)
			}
			if tt.classic {
				if got := scalar(t, s, `x_count`); got != 4 {
					t.Errorf("x_count: %v, want 4", got)
				}
			}
		})
	}
}

func TestReopen(t *testing.T) {
	p := newPage(t)
	p.Counter.Add(7)
	dir := filepath.Join(t.TempDir(), "run", "prometheus")
	s := open(t, store.Options{Dir: dir, Targets: []store.Target{{Job: "loadgen", URL: p.URL}}})
	waitScraped(t, s, "loadgen")
	before := scalar(t, s, `count_over_time(things_total[1h])`)
	closeStore(t, s)

	for range 2 { // a second time: the first reader leaves the data as it was
		s = open(t, store.Options{Dir: dir, ReadOnly: true})
		if got := scalar(t, s, `last_over_time(things_total[1h])`); got != 7 {
			t.Errorf("reopened: %v, want 7", got)
		}
		// A scrape may have come in between the query and Close, never fewer samples.
		if got := scalar(t, s, `count_over_time(things_total[1h])`); got < before || got > before+2 {
			t.Errorf("reopened: %v samples, want %v or a few more", got, before)
		}
		closeStore(t, s)
	}
	if _, err := os.Stat(filepath.Join(dir, "lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file is still there: %v", err)
	}
}

// A copy of the directory of a live store is what a killed one leaves behind.
func TestReopenAfterKill(t *testing.T) {
	p := newPage(t)
	live := filepath.Join(t.TempDir(), "live")
	s := open(t, store.Options{Targets: []store.Target{{Job: "loadgen", URL: p.URL}}, Dir: live})
	p.Counter.Add(3)
	p.Latency.Observe(0.6)
	waitScraped(t, s, "loadgen")
	waitScraped(t, s, "loadgen")
	seen := query(t, s, `things_total[1h]`).(model.Matrix)[0].Values

	t.Run("whole log", func(t *testing.T) {
		r := open(t, store.Options{Dir: copyDir(t, live), ReadOnly: true})
		wantSamples(t, r, seen)
		if v := query(t, r, `last_over_time(x[1h])`).(model.Vector); len(v) != 1 || v[0].Histogram == nil || v[0].Histogram.Count != 1 {
			t.Errorf("native histogram: %v", v)
		}
	})
	// The write that the kill cut short costs the scrape it was part of, nothing before it.
	t.Run("last write cut short", func(t *testing.T) {
		dead := copyDir(t, live)
		log := filepath.Join(dead, "wal", "00000000")
		info, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(log, info.Size()-10); err != nil {
			t.Fatal(err)
		}
		r := open(t, store.Options{Dir: dead, ReadOnly: true})
		wantSamples(t, r, seen[:len(seen)-1])
	})
	t.Run("written on", func(t *testing.T) {
		r := open(t, store.Options{Dir: copyDir(t, live), Targets: []store.Target{{Job: "loadgen", URL: p.URL}}})
		waitScraped(t, r, "loadgen")
		wantSamples(t, r, seen)
	})
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "dead")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// wantSamples checks that the raw samples of the counter begin with want.
func wantSamples(t *testing.T, s *store.Store, want []model.SamplePair) {
	t.Helper()
	got := query(t, s, `things_total[1h]`).(model.Matrix)
	if len(got) != 1 || len(got[0].Values) < len(want) {
		t.Fatalf("got %v, want the %d samples that were queryable before", got, len(want))
	}
	for i, v := range want {
		if got[0].Values[i] != v {
			t.Errorf("sample %d: %v, want %v", i, got[0].Values[i], v)
		}
	}
}

// A run is kept however old it is, unless a retention is asked for.
func TestRetention(t *testing.T) {
	now := time.Now().UnixMilli()
	old := now - (30 * 24 * time.Hour).Milliseconds()
	fill := func(t *testing.T) string {
		dir := t.TempDir()
		for _, at := range []int64{old, now} {
			series := []storage.Series{storage.MockSeries(nil, []int64{at}, []float64{1}, []string{model.MetricNameLabel, "kept"})}
			if _, err := tsdb.CreateBlock(series, dir, 0, promslog.NewNopLogger()); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for name, tt := range map[string]struct {
		opts store.Options
		want float64
	}{
		"none":      {store.Options{}, 2},
		"read-only": {store.Options{ReadOnly: true}, 2},
		"a day":     {store.Options{Retention: 24 * time.Hour}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tt.opts.Dir = fill(t)
			s := open(t, tt.opts)
			if got := scalar(t, s, `count_over_time(kept[60d])`); got != tt.want {
				t.Errorf("samples kept: %v, want %v", got, tt.want)
			}
		})
	}
}

// Whoever shows warnings only sees nothing as long as nothing is wrong.
func TestQuietWhenWell(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	p := newPage(t)
	s := open(t, store.Options{Logger: logger, Targets: []store.Target{{Job: "loadgen", URL: p.URL}}})
	waitScraped(t, s, "loadgen")
	closeStore(t, s)
	if log.Len() > 0 {
		t.Errorf("warnings of a healthy store:\n%s", log.String())
	}
}

// dirOf asks the API for the data directory, as its flags say it.
func dirOf(t *testing.T, s *store.Store) string {
	t.Helper()
	flags, err := client(t, s).Flags(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return flags["storage.tsdb.path"]
}

func TestDirectoryInUse(t *testing.T) {
	s := open(t, store.Options{})
	dir := dirOf(t, s)
	marker := filepath.Join(dir, "01ARZ3NDEKTSV4RRFFQ69G5FAV.tmp-for-creation")
	if err := os.Mkdir(marker, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, o := range []store.Options{{Dir: dir}, {Dir: dir, ReadOnly: true}} {
		_, err := store.Open(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "in use by another process") {
			t.Errorf("ReadOnly %v: error %v, want one that names %s", o.ReadOnly, err, dir)
		}
	}
	if _, err := os.Stat(marker); err != nil {
		t.Errorf("a temporary block of the first store was removed: %v", err)
	}
	closeStore(t, s)
	open(t, store.Options{Dir: dir}) // the lock was released
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := filepath.Join(t.TempDir(), "data")
	_, err = store.Open(t.Context(), store.Options{Dir: dir, ListenAddress: l.Addr().String(), ListenFlag: "--store.listen-address"})
	if err == nil || !strings.Contains(err.Error(), "--store.listen-address") || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("error %v, want one that names the address and the flag", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory was made all the same: %v", err)
	}
}

func TestReadOnlyWantsData(t *testing.T) {
	for name, dir := range map[string]string{"empty": t.TempDir(), "missing": filepath.Join(t.TempDir(), "no")} {
		if _, err := store.Open(t.Context(), store.Options{Dir: dir, ReadOnly: true}); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error %v, want one that names %s", name, err, dir)
		}
	}
	if _, err := os.Stat("no"); err == nil {
		t.Error("a missing directory was made")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	ok := store.Target{Job: "a", URL: "http://127.0.0.1:1/metrics"}
	with := func(change func(*store.Target)) []store.Target {
		t := ok
		change(&t)
		return []store.Target{t}
	}
	tests := []struct {
		name string
		opts store.Options
		want string
	}{
		{"no directory", store.Options{}, "no data directory"},
		{"address", store.Options{Dir: "d", ListenAddress: "9090"}, "want host:port"},
		{"interval", store.Options{Dir: "d", ScrapeInterval: time.Microsecond}, "at least 10ms"},
		{"fraction", store.Options{Dir: "d", ScrapeInterval: 1500 * time.Microsecond * 10001}, "whole milliseconds"},
		{"retention", store.Options{Dir: "d", Retention: -time.Hour}, "retention"},
		{"no histograms", store.Options{Dir: "d", NoNativeHistograms: true, NoClassicHistograms: true}, "both switched off"},
		{"read-only with targets", store.Options{Dir: "d", ReadOnly: true, Targets: []store.Target{ok}}, "read-only"},
		{"no job", store.Options{Dir: "d", Targets: with(func(t *store.Target) { t.Job = "" })}, "no job name"},
		{"no scheme", store.Options{Dir: "d", Targets: with(func(t *store.Target) { t.URL = "127.0.0.1:10510/metrics" })}, "job \"a\""},
		{"credentials", store.Options{Dir: "d", Targets: with(func(t *store.Target) { t.URL = "http://u:secret@h/m" })}, "credentials"},
		{"reserved label", store.Options{Dir: "d", Targets: with(func(t *store.Target) { t.Labels = map[string]string{"job": "x"} })}, "choose another name"},
		{"bad label", store.Options{Dir: "d", Targets: with(func(t *store.Target) { t.Labels = map[string]string{"": "x"} })}, "no valid Prometheus configuration"},
		{"twice", store.Options{Dir: "d", Targets: []store.Target{ok, ok}}, "the same series"},
		{"two paths", store.Options{Dir: "d", Targets: []store.Target{ok, {Job: "a", URL: "http://127.0.0.1:1/other"}}}, "the same series"},
	}
	t.Chdir(t.TempDir())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := store.Open(t.Context(), tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestTargetsOfOneJobMayDiffer(t *testing.T) {
	paths := make(chan string, 16)
	serve := func() *httptest.Server {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case paths <- r.URL.RequestURI():
			default:
			}
			// As some engines do: no content type that says what it is.
			w.Header().Set("Content-Type", "application/octet-stream")
			fmt.Fprintln(w, "up_to_date 1")
		}))
		t.Cleanup(srv.Close)
		return srv
	}
	a, b := serve(), serve()
	s := open(t, store.Options{Targets: []store.Target{
		{Job: "engine", URL: a.URL + "/stats?format=prometheus"},
		{Job: "engine", URL: b.URL},
	}})
	waitScraped(t, s, "engine")
	if got := scalar(t, s, `sum(up_to_date)`); got != 2 {
		t.Errorf("targets that answered: %v, want 2", got)
	}
	seen := map[string]bool{<-paths: true, <-paths: true}
	for len(seen) < 2 {
		seen[<-paths] = true
	}
	if !seen["/stats?format=prometheus"] || !seen["/metrics"] {
		t.Errorf("paths asked for: %v", seen)
	}
}

func TestWaitScraped(t *testing.T) {
	p := newPage(t)
	s := open(t, store.Options{Targets: []store.Target{{Job: "loadgen", URL: p.URL}, {Job: "gone", URL: "http://127.0.0.1:1/metrics"}}})

	t.Run("unknown job", func(t *testing.T) {
		err := s.WaitScraped(t.Context(), "loadgenn", time.Now())
		if err == nil || !strings.Contains(err.Error(), "gone, loadgen") {
			t.Errorf("error %v, want one that lists the jobs", err)
		}
	})
	t.Run("target down", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*interval)
		defer cancel()
		err := s.WaitScraped(ctx, "gone", time.Now())
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("error %v, want the deadline and the reason", err)
		}
	})
	t.Run("past", func(t *testing.T) {
		waitScraped(t, s, "loadgen")
		if err := s.WaitScraped(t.Context(), "loadgen", time.Now().Add(-time.Hour)); err != nil {
			t.Error(err)
		}
	})
	t.Run("future", func(t *testing.T) {
		after := time.Now().Add(3 * interval)
		if err := s.WaitScraped(t.Context(), "loadgen", after); err != nil {
			t.Fatal(err)
		}
		if now := time.Now(); now.Before(after) {
			t.Errorf("returned %s early", after.Sub(now))
		}
	})
}

func TestRuleFiles(t *testing.T) {
	p := newPage(t)
	p.Counter.Add(5)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	rules := `
groups:
- name: demo
  rules:
  - {record: things:double, expr: 2 * things_total}
  - {alert: TooMany, expr: things_total > 4, labels: {severity: page}}
`
	if err := os.WriteFile(file, []byte(rules), 0o666); err != nil {
		t.Fatal(err)
	}
	s := open(t, store.Options{RuleFiles: []string{file}, Targets: []store.Target{{Job: "loadgen", URL: p.URL}}})
	deadline := time.Now().Add(20 * time.Second)
	for {
		v, _ := query(t, s, `things:double`).(model.Vector)
		alerts, err := client(t, s).Alerts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(v) == 1 && v[0].Value == 10 && len(alerts.Alerts) == 1 && alerts.Alerts[0].State == "firing" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("rules were not evaluated: %v, %v", v, alerts)
		}
		time.Sleep(interval)
	}
	for name, content := range map[string]string{"not a rule file": "groups: 3", "bad expression": "groups: [{name: a, rules: [{record: x, expr: 'sum('}]}]"} {
		if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), RuleFiles: []string{file}}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: error %v, want one that names the file", name, err)
		}
	}
	if _, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), RuleFiles: []string{"no*.yaml"}}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing rule file: error %v", err)
	}
}

// Every endpoint of the API answers, with targets and without: nothing that NewAPI was given is
// missing when a request needs it.
func TestEveryEndpointAnswers(t *testing.T) {
	p := newPage(t)
	dir := t.TempDir()
	live := open(t, store.Options{Dir: dir, Targets: []store.Target{{Job: "loadgen", URL: p.URL}}})
	waitScraped(t, live, "loadgen")
	t.Run("live", func(t *testing.T) { everyEndpoint(t, live) })
	t.Run("metadata", func(t *testing.T) {
		_, body, _ := get(t, live.URL()+"/api/v1/metadata")
		if !strings.Contains(body, `"x":[{"type":"histogram"`) {
			t.Errorf("metadata without the histogram: %s", body)
		}
	})
	closeStore(t, live)
	read := open(t, store.Options{Dir: dir, ReadOnly: true})
	t.Run("read-only", func(t *testing.T) { everyEndpoint(t, read) })
}

func everyEndpoint(t *testing.T, s *store.Store) {
	now := fmt.Sprint(time.Now().Unix())
	tests := []struct {
		path   string
		status int
	}{
		{"/api/v1/query?query=up", 200},
		{"/api/v1/query_range?query=up&step=1&end=" + now + "&start=" + now, 200},
		{"/api/v1/query?query=sum(", 400},
		{"/api/v1/query_exemplars?query=up&start=1&end=2", 200},
		{"/api/v1/format_query?query=up", 200},
		{"/api/v1/parse_query?query=up", 200},
		{"/api/v1/labels", 200},
		{"/api/v1/label/job/values", 200},
		{"/api/v1/series?match[]=up", 200},
		{"/api/v1/scrape_pools", 200},
		{"/api/v1/targets", 200},
		{"/api/v1/targets/metadata", 200},
		{"/api/v1/targets/relabel_steps?scrapePool=nope", 400},
		{"/api/v1/alertmanagers", 200},
		{"/api/v1/metadata", 200},
		{"/api/v1/status/config", 200},
		{"/api/v1/status/runtimeinfo", 200},
		{"/api/v1/status/buildinfo", 200},
		{"/api/v1/status/flags", 200},
		{"/api/v1/status/tsdb", 200},
		{"/api/v1/status/tsdb/blocks", 200},
		{"/api/v1/status/self_metrics", 200},
		{"/api/v1/status/walreplay", 200},
		{"/api/v1/features", 200},
		{"/api/v1/notifications", 200},
		{"/api/v1/notifications/live", 204},
		{"/api/v1/alerts", 200},
		{"/api/v1/rules", 200},
		{"/api/v1/openapi.yaml", 200},
		{"/-/ready", 200},
		{"/-/healthy", 200},
		{"/metrics", 200},
		{"/", 200},
		{"/graph", 404},
	}
	for _, tt := range tests {
		status, body, _ := get(t, s.URL()+tt.path)
		if status != tt.status {
			t.Errorf("%s: status %d, want %d: %.300s", tt.path, status, tt.status, body)
		}
		if strings.HasPrefix(tt.path, "/api/v1/") && status == 200 && tt.path != "/api/v1/openapi.yaml" {
			var answer struct {
				Status string
				Data   json.RawMessage
			}
			if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Status != "success" {
				t.Errorf("%s: %v: %.300s", tt.path, err, body)
			}
		}
	}
	for _, path := range []string{"/api/v1/write", "/api/v1/otlp/v1/metrics", "/api/v1/admin/tsdb/delete_series?match[]=up"} {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Post(s.URL()+path, "", nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("%s: status %d, want a refusal", path, resp.StatusCode)
		}
	}
}

func TestBrowserOrigins(t *testing.T) {
	s := open(t, store.Options{})
	for origin, want := range map[string]string{
		"http://localhost:3000":             "http://localhost:3000",
		"http://127.0.0.1:3000":             "http://127.0.0.1:3000",
		"http://[::1]:3000":                 "http://[::1]:3000",
		"https://localhost":                 "https://localhost",
		"http://localhost.example.com:3000": "",
		"https://evil.example":              "",
		"null":                              "",
	} {
		_, _, h := get(t, s.URL()+"/api/v1/query?query=1", "Origin", origin)
		if got := h.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("origin %s: allowed %q, want %q", origin, got, want)
		}
	}
}

// A client that keeps its connection open and never asks for anything doesn't hold Close up.
func TestCloseWithOpenConnection(t *testing.T) {
	s := open(t, store.Options{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	start := time.Now()
	closeStore(t, s)
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("Close took %s", took)
	}
	if _, err := http.Get(s.URL()); err == nil {
		t.Error("the port still answers")
	}
}
