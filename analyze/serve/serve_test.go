package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"firstbreach/analyze/window"
)

const sloText = `apiVersion: firstbreach/v1
service: %s
engine: vllm
selectors: {engine: {job: vllm}}
owners: {platform: {contact: '#platform'}}
objectives:
- {name: ttft, layer: user, signal: time_to_first_token, p95: 750ms, owner: platform, action: Cap concurrency.}
`

const configText = `apiVersion: firstbreach/v1
prometheus: http://127.0.0.1:1
slo: [slo-*.yaml]
reports: reports
external_url: http://reports.example
schedules:
- {name: daily, cron: '30 6 * * *', timezone: Europe/Berlin, window: 24h, keep: 3d}
`

// start is a quarter past six in Berlin.
func start() time.Time { return time.Date(2026, 11, 30, 5, 15, 0, 0, time.UTC) }

// bench is a server under test with what surrounds it.
type bench struct {
	*testing.T
	dir    string
	now    time.Time
	calls  []window.Options
	result window.Result
	err    error // of the analysis
	full   error // of writing reports
	stuck  error // of writing the server's own notes
	down   error // of asking whether Prometheus answers
	log    bytes.Buffer
	*Server
}

func newBench(t *testing.T, config string, services ...string) *bench {
	t.Helper()
	b := &bench{T: t, dir: t.TempDir(), now: start(), result: window.Result{Verdict: window.OK}}
	for _, s := range services {
		b.write("slo-"+s+".yaml", fmt.Sprintf(sloText, s))
	}
	b.write("serve.yaml", config)
	b.restart()
	return b
}

func (b *bench) write(name, text string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// restart is a new process on the same folder.
func (b *bench) restart() {
	b.Helper()
	s, err := New(Options{
		Load:   func() (*Config, error) { return Load(filepath.Join(b.dir, "serve.yaml"), b.now) },
		Logger: slog.New(slog.NewTextHandler(&b.log, nil)),
		Ping:   func(context.Context, *Config) error { return b.down },
		Note: func(path string, text []byte) error {
			if b.stuck != nil {
				return b.stuck
			}
			return note(path, text)
		},
		Now: func() time.Time { return b.now },
		Analyze: func(_ context.Context, o window.Options) (*window.Result, error) {
			b.calls = append(b.calls, o)
			r := b.result
			r.Service, r.From, r.To = o.SLO.Service, o.From.UTC(), o.To.UTC()
			return &r, b.err
		},
		Write: func(dir string, r *window.Result) error {
			if b.full != nil {
				return b.full
			}
			return window.WriteFiles(dir, r)
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Server = s
}

func (b *bench) at(now time.Time) {
	b.now = now
	b.Look(b.Context())
}

func (b *bench) failures(reason string) float64 {
	return testutil.ToFloat64(b.metrics.failures.WithLabelValues(reason))
}

func (b *bench) get(path string) (*http.Response, string) {
	b.Helper()
	h, err := b.Handler()
	if err != nil {
		b.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	body, _ := io.ReadAll(w.Result().Body)
	return w.Result(), string(body)
}

func TestReportWhenDue(t *testing.T) {
	b := newBench(t, configText, "chat", "code")
	b.at(start())
	b.at(start().Add(14 * time.Minute))
	if len(b.calls) != 0 {
		t.Fatalf("before it was due: %v", b.calls)
	}
	b.at(start().Add(15 * time.Minute))
	b.at(start().Add(16 * time.Minute))
	if len(b.calls) != 2 {
		t.Fatalf("%d reports, want one of each service", len(b.calls))
	}
	due := start().Add(15 * time.Minute)
	if c := b.calls[0]; !c.To.Equal(due) || !c.From.Equal(due.Add(-24*time.Hour)) || c.SLO.Service != "chat" {
		t.Errorf("%v to %v of %s", c.From, c.To, c.SLO.Service)
	}
	if r, body := b.get("/services/code/latest"); r.StatusCode != http.StatusFound {
		t.Errorf("%d %s", r.StatusCode, body)
	} else if r, body := b.get(r.Header.Get("Location")); r.StatusCode != http.StatusOK || !strings.Contains(body, "code held its SLO") {
		t.Errorf("%d %s", r.StatusCode, body)
	}
	if _, body := b.get("/metrics"); !strings.Contains(body, `firstbreach_report_verdict{schedule="daily",service="code",verdict="ok"} 1`) ||
		!strings.Contains(body, fmt.Sprintf(`firstbreach_report_last_success_timestamp_seconds{schedule="daily",service="chat"} %v`, float64(due.Unix()))) {
		t.Error(body)
	}
	if _, body := b.get("/"); !strings.Contains(body, "chat") || !strings.Contains(body, "held its SLO") {
		t.Error(body)
	}
	for _, path := range []string{"/services/none/latest", "/reports/chat/..%2f..%2fserve.yaml/report.html", "/reports/..%2f/x/report.html", "/reports/chat/x/state.json"} {
		if r, _ := b.get(path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
}

// Three days off: one report, of the last due time, and its verdict is still known after the next restart.
func TestMissedRunsAreCaughtUpOnce(t *testing.T) {
	b := newBench(t, configText, "chat")
	b.at(start())
	b.at(start().Add(15 * time.Minute))
	b.now = start().Add(75 * time.Hour)
	b.restart()
	if _, body := b.get("/metrics"); !strings.Contains(body, `firstbreach_report_missed_total{schedule="daily"} 0`) ||
		!strings.Contains(body, fmt.Sprintf(`firstbreach_report_overdue_seconds{schedule="daily",service="chat"} %v`, (165*time.Minute).Seconds())) {
		t.Error(body)
	}
	b.Look(t.Context())
	b.Look(t.Context())
	if len(b.calls) != 2 || !b.calls[1].To.Equal(start().Add(72*time.Hour+15*time.Minute)) {
		t.Fatalf("%d reports, the last until %v", len(b.calls), b.calls[len(b.calls)-1].To)
	}
	if got := testutil.ToFloat64(b.metrics.missed.WithLabelValues("daily")); got != 2 {
		t.Errorf("%v missed, want 2", got)
	}
	b.restart()
	b.Look(t.Context())
	if len(b.calls) != 2 {
		t.Errorf("made again after a restart: %d", len(b.calls))
	}
	if _, body := b.get("/metrics"); !strings.Contains(body, `firstbreach_report_verdict{schedule="daily",service="chat",verdict="ok"} 1`) {
		t.Error("the last verdict is lost")
	}
}

func TestPrometheusUnreachable(t *testing.T) {
	b := newBench(t, configText, "chat")
	b.at(start())
	b.err = errors.New("Prometheus can't be reached") //nolint:staticcheck // a name
	due := start().Add(15 * time.Minute)
	for s := range 10 { // within its pause it isn't tried again
		b.at(due.Add(time.Duration(s) * time.Second))
	}
	if len(b.calls) != 1 || b.failures("prometheus") != 1 {
		t.Fatalf("%d tries, %v failures", len(b.calls), b.failures("prometheus"))
	}
	b.at(due.Add(61 * time.Second))
	b.at(due.Add(122 * time.Second)) // the pause is two minutes now
	if len(b.calls) != 2 {
		t.Fatalf("%d tries, want 2", len(b.calls))
	}
	b.err = nil
	b.at(due.Add(10 * time.Minute))
	if len(b.calls) != 3 || !b.calls[2].To.Equal(due) {
		t.Fatalf("%d tries, until %v", len(b.calls), b.calls[2].To)
	}
	if r, _ := b.get("/services/chat/latest"); r.StatusCode != http.StatusFound {
		t.Error("no report after it was back")
	}
}

func TestFullDisk(t *testing.T) {
	b := newBench(t, configText, "chat")
	b.at(start())
	b.full = &os.PathError{Op: "write", Path: "report.md", Err: syscall.ENOSPC}
	due := start().Add(15 * time.Minute)
	b.at(due)
	if b.failures("write") != 1 {
		t.Fatalf("%v failures", b.failures("write"))
	}
	if r, _ := b.get("/services/chat/latest"); r.StatusCode != http.StatusNotFound {
		t.Error("a report that wasn't written is linked")
	}
	b.full = nil
	b.at(due.Add(2 * time.Minute))
	if r, _ := b.get("/services/chat/latest"); r.StatusCode != http.StatusFound {
		t.Error("no report after there was room")
	}
}

func TestRetention(t *testing.T) {
	b := newBench(t, configText, "chat")
	for day := range 8 {
		b.at(start().Add(time.Duration(day)*24*time.Hour + 20*time.Minute))
	}
	dirs, _ := filepath.Glob(filepath.Join(b.dir, "reports", "chat", "*"))
	if len(dirs) != 3 { // due times of the last three days
		t.Errorf("%d kept: %v", len(dirs), dirs)
	}
	b.now = start().AddDate(1, 0, 0)
	kept, err := shelf(b.config.Reports).prune(b.reports, b.config, b.now)
	if err != nil || len(kept) != 1 {
		t.Errorf("the last of a service stays: %v, %v", kept, err)
	}
}

// Berlin's clocks: at 02:30 on 29 March there is no such time, and on 25 October there are two.
func TestDaylightSaving(t *testing.T) {
	b := newBench(t, strings.Replace(configText, "30 6 * * *", "30 2 * * *", 1), "chat")
	s := b.config.Schedules[0]
	for name, c := range map[string]struct{ from, want time.Time }{
		"a day in winter":     {time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 2, 2, 1, 30, 0, 0, time.UTC)},
		"a day in summer":     {time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 7, 2, 0, 30, 0, 0, time.UTC)},
		"skipped":             {time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), time.Date(2026, 3, 30, 0, 30, 0, 0, time.UTC)},
		"again an hour later": {time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC)},
		"twice":               {time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)},
	} {
		if got := s.times.Next(c.from); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got.UTC(), c.want)
		}
	}
}

func TestJitterIsTheSchedulesOwn(t *testing.T) {
	b := newBench(t, strings.Replace(configText, "keep: 3d", "jitter: 10m", 1), "chat")
	s := b.config.Schedules[0]
	d := s.delay()
	if d <= 0 || d >= 10*time.Minute || d != s.delay() {
		t.Fatalf("delay %v", d)
	}
	due := start().Add(15 * time.Minute)
	b.at(start())
	b.at(due.Add(d - time.Second))
	if len(b.calls) != 0 {
		t.Fatal("too early")
	}
	b.at(due.Add(d))
	if len(b.calls) != 1 || !b.calls[0].To.Equal(due) {
		t.Errorf("%d reports; the window ends when it was due, whenever it is made", len(b.calls))
	}
}

// receiver is a webhook and a Grafana.
type receiver struct {
	down  bool
	posts []string
	keys  []string
	auth  string
	notes []annotation
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.down {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	body, _ := io.ReadAll(req.Body)
	r.auth = req.Header.Get("Authorization")
	switch {
	case req.URL.Path == "/hook":
		r.posts, r.keys = append(r.posts, string(body)), append(r.keys, req.Header.Get("Idempotency-Key"))
	case req.Method == http.MethodGet: // every tag, and some time in common
		q := req.URL.Query()
		from, _ := strconv.ParseInt(q.Get("from"), 10, 64)
		to, _ := strconv.ParseInt(q.Get("to"), 10, 64)
		found := []annotation{}
		for _, n := range r.notes {
			has := func(tag string) bool { return slices.Contains(n.Tags, tag) }
			if n.From <= to && n.To >= from && !slices.ContainsFunc(q["tags"], func(tag string) bool { return !has(tag) }) {
				found = append(found, n)
			}
		}
		_ = json.NewEncoder(w).Encode(found)
	case req.Method == http.MethodPatch:
		id, _ := strconv.Atoi(path.Base(req.URL.Path))
		_ = json.Unmarshal(body, &r.notes[id-1])
	default:
		n := annotation{ID: int64(len(r.notes)) + 1}
		_ = json.Unmarshal(body, &n)
		r.notes = append(r.notes, n)
	}
}

func TestDeliveries(t *testing.T) {
	r := &receiver{down: true}
	server := httptest.NewServer(r)
	defer server.Close()
	b := newBench(t, configText, "chat")
	b.write("token", "secret\n")
	b.write("serve.yaml", configText+`deliver:
  folders: [copies]
  webhooks: [{url: `+server.URL+`/hook}]
  grafana: {url: `+server.URL+`, token_file: token}
`)
	due := start().Add(15 * time.Minute)
	onset := [2]time.Time{due.Add(-2 * time.Hour).UTC(), due.Add(-119 * time.Minute).UTC()}
	b.result = window.Result{Verdict: window.Breach, Objectives: []window.Objective{{Name: "ttft", State: window.Breach, Owner: "platform", Action: "Cap concurrency.",
		Breaches: []window.Incident{{Onset: onset, End: &[2]time.Time{due.Add(-time.Hour), due.Add(-59 * time.Minute)}}}}}}
	b.restart()
	b.at(start())
	b.at(due)
	if b.failures("deliver_webhook") != 1 || b.failures("deliver_grafana") != 1 || b.failures("deliver_folder") != 0 {
		t.Fatalf("webhook %v, grafana %v", b.failures("deliver_webhook"), b.failures("deliver_grafana"))
	}
	r.down = false
	b.restart() // what was under way goes on
	b.at(due.Add(2 * time.Minute))
	b.at(due.Add(4 * time.Minute))
	if len(r.posts) != 1 || len(b.calls) != 1 {
		t.Fatalf("%d posts, %d analyses, want one of each", len(r.posts), len(b.calls))
	}
	var a Announcement
	if err := json.Unmarshal([]byte(r.posts[0]), &a); err != nil {
		t.Fatal(err)
	}
	if a.Verdict != window.Breach || a.ID != r.keys[0] || a.Breaches[0].Owner != "platform" || a.Breaches[0].Action != "Cap concurrency." ||
		!strings.HasPrefix(a.ReportURL, "http://reports.example/reports/chat/") {
		t.Errorf("%+v", a)
	}
	if len(r.notes) != 1 || r.notes[0].From != onset[0].UnixMilli() || r.notes[0].To != due.Add(-59*time.Minute).UnixMilli() || r.auth != "Bearer secret" {
		t.Errorf("annotations %v, authorization %q", r.notes, r.auth)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "copies", "chat", "20261130T053000Z-daily", "report.html")); err != nil {
		t.Error(err)
	}
	// The next day's window still has the same breach in it: it is annotated once.
	b.at(due.Add(24 * time.Hour))
	if len(r.posts) != 2 || len(r.notes) != 1 {
		t.Errorf("%d posts, %d annotations", len(r.posts), len(r.notes))
	}
}

// The address of a webhook often is its secret: it stands in no log and no file of the reports.
func TestAddressesAreKept(t *testing.T) {
	var log bytes.Buffer
	b := newBench(t, configText, "chat")
	b.write("serve.yaml", configText+"deliver: {webhooks: [{url: 'http://127.0.0.1:1/T0/verysecret'}]}\n")
	b.restart()
	b.Logger = slog.New(slog.NewTextHandler(&log, nil))
	b.at(start())
	b.at(start().Add(15 * time.Minute))
	if !strings.Contains(log.String(), "http://127.0.0.1:1:") || strings.Contains(log.String(), "verysecret") {
		t.Error(log.String())
	}
	r := &receiver{}
	server := httptest.NewServer(r)
	defer server.Close()
	b.write("serve.yaml", configText+"deliver: {webhooks: [{url: '"+server.URL+"/hook?verysecret'}]}\n")
	b.restart()
	b.at(start().Add(30 * time.Minute))
	if len(r.posts) != 1 {
		t.Fatalf("%d posts", len(r.posts))
	}
	err := filepath.WalkDir(filepath.Join(b.dir, "reports"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("verysecret")) {
			t.Errorf("%s has it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestReloadOfABadFileKeepsTheOld(t *testing.T) {
	b := newBench(t, configText, "chat")
	b.write("serve.yaml", strings.Replace(configText, "cron:", "corn:", 1))
	h, _ := b.Handler()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/-/reload", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "serve.yaml:7") || testutil.ToFloat64(b.metrics.reloadOK) != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	b.at(start())
	b.at(start().Add(15 * time.Minute))
	if len(b.calls) != 1 {
		t.Errorf("%d reports by the old file", len(b.calls))
	}
	b.write("serve.yaml", configText)
	if err := b.Reload(); err != nil || testutil.ToFloat64(b.metrics.reloadOK) != 1 {
		t.Error(err)
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"slo-chat.yaml": fmt.Sprintf(sloText, "chat"), "afile": "", "vlm.yaml": strings.Replace(fmt.Sprintf(sloText, "e"), "engine: vllm", "engine: vlm", 1), "off.yaml": strings.Replace(fmt.Sprintf(sloText, "off"), "750ms", "700ms", 1),
		"slo2.yaml": strings.Replace(fmt.Sprintf(sloText, "two")+"- {name: ttft, layer: user, signal: request_duration, p95: 10s}\n", "contact: '#platform'", "", 1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		old, changed string
		want         []string
	}{
		"never fires":       {"30 6 * * *", "0 0 30 2 *", []string{`serve.yaml:7: schedules[0].cron: "0 0 30 2 *" never fires (fix: correct the day of month or the month: that day doesn't exist)`}},
		"not cron":          {"30 6 * * *", "at six", []string{"serve.yaml:7", "not a cron specification"}},
		"zone in cron":      {"30 6 * * *", "CRON_TZ=UTC 30 6 * * *", []string{"key of its own"}},
		"unknown engine":    {"slo-*.yaml", "vlm.yaml", []string{`vlm.yaml:3: engine: unknown value "vlm" (fix: did you mean vllm?)`}},
		"unknown zone":      {"Europe/Berlin", "Mars/Olympus", []string{"no time zone"}},
		"unknown key":       {"window: 24h", "windows: 24h", []string{"serve.yaml:7", "did you mean window?"}},
		"no SLO file":       {"slo-*.yaml", "none-*.yaml", []string{"serve.yaml:3", "no file is named"}},
		"bad SLO file":      {"slo-*.yaml", "slo2.yaml", []string{"slo2.yaml:5: owners.platform.contact: is missing (fix: write {contact:", "slo2.yaml:8: objectives[1]: the name ttft is used twice, first on line 7 (fix: give each"}},
		"off every edge":    {"slo-*.yaml", "off.yaml", []string{"off.yaml:7: objective ttft: threshold: 700ms is between two bucket edges of vllm:time_to_first_token_seconds", "(fix: write 500ms or 750ms"}},
		"no URL":            {"http://127.0.0.1:1", "127.0.0.1:9090", []string{"serve.yaml:2", "not an http URL"}},
		"a name for a path": {"name: daily", "name: ../x", []string{"file name"}},
		"no SLO":            {"[slo-*.yaml]", "[]", []string{"serve.yaml:3", "is empty"}},
		"no folder":         {"reports: reports\n", "", []string{"reports"}},
		"token missing":     {"schedules:", "deliver: {grafana: {url: 'http://g', token_file: none}}\nschedules:", []string{"can't be read", "serve.yaml:6"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "serve.yaml")
			if err := os.WriteFile(path, []byte(strings.Replace(configText, c.old, c.changed, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path, start())
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v: want %q in it", err, want)
				}
			}
		})
	}
	// A folder that can't be written: as root a file in its place.
	if err := os.WriteFile(filepath.Join(dir, "serve.yaml"), []byte(strings.Replace(configText, "reports: reports", "reports: afile/reports", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(Options{Load: func() (*Config, error) { return Load(filepath.Join(dir, "serve.yaml"), start()) }, Logger: slog.New(slog.DiscardHandler)})
	for _, want := range []string{"serve.yaml:4: reports: reports can't be written to " + filepath.Join(dir, "afile/reports"), "(fix: make it writable for this user, or name another folder)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q in it", err, want)
		}
	}
}
