package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"firstbreach/analyze/window"
)

func full(name string) error { return &os.PathError{Op: "write", Path: name, Err: syscall.ENOSPC} }

// The disk takes the first file of a report and not the next: the report isn't there, and is made again.
func TestFullDiskInTheMiddleOfAReport(t *testing.T) {
	b := newBench(t, configText, "chat")
	b.at(start())
	due := start().Add(15 * time.Minute)
	dir := filepath.Join(b.dir, "reports", "chat", "20261130T053000Z-daily")
	if err := os.MkdirAll(filepath.Join(dir, window.HTMLFile, "in the way"), 0o755); err != nil { // where a file should go
		t.Fatal(err)
	}
	b.at(due)
	if _, err := os.Stat(filepath.Join(dir, window.MarkdownFile)); err != nil || b.failures("write") != 1 {
		t.Fatalf("%v, %v failures", err, b.failures("write"))
	}
	b.restart() // it isn't taken for a report later either
	if r, _ := b.get("/services/chat/latest"); r.StatusCode != http.StatusNotFound {
		t.Error("half a report is linked")
	}
	if err := os.RemoveAll(filepath.Join(dir, window.HTMLFile)); err != nil {
		t.Fatal(err)
	}
	b.at(due.Add(2 * time.Minute))
	for _, name := range []string{window.HTMLFile, window.MarkdownFile, window.JSONFile} {
		if r, _ := b.get("/reports/chat/20261130T053000Z-daily/" + name); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", name, r.StatusCode)
		}
	}
}

// A Prometheus that accepts connections and never answers holds up one report, for a bounded time.
func TestPrometheusThatNeverAnswers(t *testing.T) {
	b := newBench(t, configText+"- {name: weekly, cron: '30 6 * * 1', window: 7d}\n", "chat", "code", "search")
	b.at(start())
	b.ReportLasts = time.Millisecond
	b.down = errors.New("no answer")
	asked := 0
	b.Analyze = func(ctx context.Context, _ window.Options) (*window.Result, error) {
		asked++
		<-ctx.Done()
		return nil, ctx.Err()
	}
	due := start().Add(15 * time.Minute)
	b.at(due)
	if asked != 1 || b.failures("prometheus") != 1 {
		t.Errorf("%d asked, %v failures; want one: the other reports wait", asked, b.failures("prometheus"))
	}
	if text := b.log.String(); !strings.Contains(text, "didn't answer all queries within 1ms") || !strings.Contains(text, "code: waits for Prometheus") {
		t.Error(text)
	}
	// It answers, and only the queries of one service take too long: the others have their reports.
	b.down = nil
	b.Analyze = func(ctx context.Context, o window.Options) (*window.Result, error) {
		if o.SLO.Service == "chat" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return &window.Result{Service: o.SLO.Service, Verdict: window.OK, From: o.From, To: o.To}, nil
	}
	b.at(due.Add(61 * time.Second))
	for service, want := range map[string]int{"chat": http.StatusNotFound, "code": http.StatusFound, "search": http.StatusFound} {
		if r, _ := b.get("/services/" + service + "/latest"); r.StatusCode != want {
			t.Errorf("%s: %d, want %d", service, r.StatusCode, want)
		}
	}
}

// Before the first report the age is that of the epoch, and nothing is overdue until it was due.
func TestMetricsBeforeTheFirstReport(t *testing.T) {
	b := newBench(t, configText, "chat")
	b.at(start())
	const overdue = `firstbreach_report_overdue_seconds{schedule="daily",service="chat"} `
	if _, body := b.get("/metrics"); !strings.Contains(body, `firstbreach_report_last_success_timestamp_seconds{schedule="daily",service="chat"} 0`) ||
		!strings.Contains(body, overdue+"0") || !strings.Contains(body, `firstbreach_report_missed_total{schedule="daily"} 0`) {
		t.Error(body)
	}
	b.err, b.down = errors.New("down"), errors.New("down")
	b.at(start().Add(15 * time.Minute))
	b.now = start().Add(20 * time.Minute)
	if _, body := b.get("/metrics"); !strings.Contains(body, overdue+"300") {
		t.Error(body)
	}
	b.err, b.down = nil, nil
	b.Look(t.Context())
	if _, body := b.get("/metrics"); !strings.Contains(body, overdue+"0") {
		t.Error(body)
	}
}

// A breach that is still on has no end; windows overlap and their bins differ. It stays one annotation,
// which holds all of it.
func TestAnnotationGrowsWithTheBreach(t *testing.T) {
	r := &receiver{}
	server := httptest.NewServer(r)
	defer server.Close()
	b := newBench(t, configText, "chat", "code")
	b.write("serve.yaml", configText+"deliver: {grafana: {url: '"+server.URL+"'}}\n")
	b.restart()
	day := func(n int) time.Time { return start().Add(15*time.Minute + time.Duration(n)*24*time.Hour).UTC() }
	breach := func(from, to time.Time, open bool) {
		i := window.Incident{Onset: [2]time.Time{from.Add(-time.Minute), from}}
		if !open {
			i.End = &[2]time.Time{to.Add(-time.Minute), to}
		}
		b.result = window.Result{Verdict: window.Breach, Objectives: []window.Objective{{Name: "ttft", State: window.Breach, Breaches: []window.Incident{i}}}}
	}
	b.at(start())
	began := day(0).Add(-2 * time.Hour)
	breach(began, time.Time{}, true)
	b.at(day(0))
	breach(began.Add(4*time.Minute), day(0).Add(3*time.Hour), false) // coarser bins, and it is over
	b.at(day(1))
	if len(r.notes) != 2 { // one of each service
		t.Fatalf("%d annotations: %v", len(r.notes), r.notes)
	}
	if n := r.notes[0]; n.From != began.Add(-time.Minute).UnixMilli() || n.To != day(0).Add(3*time.Hour).UnixMilli() {
		t.Errorf("from %v to %v", time.UnixMilli(n.From).UTC(), time.UnixMilli(n.To).UTC())
	}
	breach(day(1).Add(time.Hour), day(1).Add(2*time.Hour), false)
	b.at(day(2))
	if len(r.notes) != 4 {
		t.Errorf("%d annotations, want another for another breach", len(r.notes))
	}
}

// While the disk takes no note of who had a report, nobody is sent it twice.
func TestFullDiskAfterADelivery(t *testing.T) {
	r := &receiver{}
	server := httptest.NewServer(r)
	defer server.Close()
	b := newBench(t, configText, "chat")
	b.write("serve.yaml", configText+"deliver: {webhooks: [{url: '"+server.URL+"/hook'}]}\n")
	b.restart()
	b.at(start())
	due := start().Add(15 * time.Minute)
	b.stuck = full("delivered.json")
	for n := range 5 {
		b.at(due.Add(time.Duration(n) * 20 * time.Minute))
	}
	b.stuck = nil
	b.at(due.Add(3 * time.Hour))
	b.restart()
	b.at(due.Add(4 * time.Hour))
	if len(r.posts) != 1 {
		t.Errorf("%d posts", len(r.posts))
	}
}

func TestServicesAndSchedulesThatAreGone(t *testing.T) {
	two := configText + "- {name: weekly, cron: '30 6 * * 1', window: 7d, keep: 4w}\n"
	b := newBench(t, two, "chat", "code")
	b.at(start())
	b.at(start().Add(15 * time.Minute)) // a Monday: both schedules
	if err := os.Remove(filepath.Join(b.dir, "slo-code.yaml")); err != nil {
		t.Fatal(err)
	}
	b.write("serve.yaml", configText)
	if err := b.Reload(); err != nil {
		t.Fatal(err)
	}
	b.Look(t.Context())
	if _, body := b.get("/metrics"); strings.Contains(body, `service="code"`) || strings.Contains(body, "weekly") || !strings.Contains(body, `service="chat"`) {
		t.Error(body)
	}
	for day := range 5 {
		b.at(start().Add(time.Duration(day)*24*time.Hour + 20*time.Minute))
	}
	dirs, _ := filepath.Glob(filepath.Join(b.dir, "reports", "*", "*"))
	for _, dir := range dirs {
		if strings.Contains(dir, "code") || strings.Contains(dir, "weekly") {
			t.Errorf("%s is kept for ever", dir)
		}
	}
	if len(dirs) != 3 {
		t.Errorf("%d reports are kept, want those of three days: %v", len(dirs), dirs)
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "reports", stateFile))
	if err != nil || strings.Contains(string(text), "weekly") {
		t.Errorf("%s %v", text, err)
	}
}

// A shelf of years: no more of it is read than is shown, and what comes to be shown later is read then.
func TestLongShelf(t *testing.T) {
	b := newBench(t, configText+"- {name: weekly, cron: '30 6 * * 1', timezone: Europe/Berlin, window: 7d, keep: 4000d}\n", "chat")
	b.at(start())
	b.at(start().Add(15 * time.Minute))
	from := filepath.Join(b.dir, "reports", "chat")
	text, err := os.ReadFile(filepath.Join(from, "20261130T053000Z-weekly", window.JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	const years = 200
	for week := range years {
		name := start().Add(15*time.Minute-time.Duration(week+1)*7*24*time.Hour).Format(stampForm) + "-weekly"
		if err := os.Mkdir(filepath.Join(from, name), 0o755); err != nil {
			t.Fatal(err)
		}
		b.write(filepath.Join("reports", "chat", name, window.JSONFile), string(text))
	}
	b.restart()
	read, lines, spent := 0, 0, 0
	for _, r := range b.reports {
		if r.Verdict != "" {
			read++
		}
		if r.Lines != nil {
			lines++
		}
		if r.Spent != nil {
			spent++
		}
	}
	if len(b.reports) != years+2 || read != shown+1 || lines != 1 || spent != 2 {
		t.Errorf("%d reports, %d read, %d with a headline, %d with budgets", len(b.reports), read, lines, spent)
	}
	if _, body := b.get("/"); strings.Count(body, "<li>") != shown || strings.Count(body, `class="ok"`) != shown+2 {
		t.Errorf("the index:\n%s", body)
	}
	// The newest are gone: others take their place, with all that is shown of them.
	kept := shelf(b.config.Reports).read(b.reports[100:])
	if kept[0].Lines == nil || kept[0].Spent == nil || kept[shown].Verdict != window.OK || kept[shown+1].Verdict != "" {
		t.Errorf("%+v", kept[:2])
	}
}

func TestClockSetBack(t *testing.T) {
	b := newBench(t, configText, "chat")
	b.at(start())
	b.at(start().Add(15*time.Minute + 30*24*time.Hour)) // a month ahead
	if b.failures("clock") != 0 || len(b.calls) != 1 {
		t.Fatalf("%v, %d reports", b.failures("clock"), len(b.calls))
	}
	b.at(start())
	b.at(start().Add(time.Second))
	if b.failures("clock") != 1 || !strings.Contains(b.log.String(), "the clock was set back") {
		t.Errorf("said %v times: %s", b.failures("clock"), b.log.String())
	}
	b.at(start().Add(15 * time.Minute))
	if len(b.calls) != 2 || !b.calls[1].To.Equal(start().Add(15*time.Minute)) {
		t.Errorf("%d reports", len(b.calls))
	}
}

func TestStateThatSaysNothing(t *testing.T) {
	for _, text := range []string{"null", "", "[]", `{"daily": 3}`, `{"daily": null}`} {
		b := newBench(t, configText, "chat")
		b.write("reports/state.json", text)
		b.restart()
		b.at(start())
		b.at(start().Add(15 * time.Minute))
		if len(b.calls) != 1 {
			t.Errorf("%q: %d reports", text, len(b.calls))
		}
	}
}

// A schedule that is changed begins anew: the times of the new one that lie behind were never due.
func TestChangedScheduleMissedNothing(t *testing.T) {
	b := newBench(t, configText, "chat")
	b.at(start())
	b.at(start().Add(15 * time.Minute))
	b.write("serve.yaml", strings.Replace(configText, "30 6 * * *", "*/5 * * * *", 1))
	b.now = start().Add(10 * time.Hour)
	b.restart()
	b.Look(t.Context())
	if got := testutil.ToFloat64(b.metrics.missed.WithLabelValues("daily")); got != 0 || len(b.calls) != 1 {
		t.Errorf("%v missed, %d reports", got, len(b.calls))
	}
	b.at(start().Add(10*time.Hour + 5*time.Minute))
	if len(b.calls) != 2 {
		t.Errorf("%d reports", len(b.calls))
	}
}

func TestOverlappingPatterns(t *testing.T) {
	b := newBench(t, strings.Replace(configText, "[slo-*.yaml]", "[slo-chat.yaml, slo-*.yaml, ./slo-chat.yaml]", 1), "chat", "code")
	if len(b.config.SLO) != 2 {
		t.Errorf("%d files", len(b.config.SLO))
	}
}

// The Prometheus behind a gateway wants a token and a tenant.
func TestPrometheusThatWantsCredentials(t *testing.T) {
	var got []http.Header
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header)
		if r.Header.Get("Authorization") != "Bearer key of the gateway" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": []any{}}})
	}))
	defer gateway.Close()
	const access = "http_config_file: access/http.yaml\n"
	b := newBench(t, configText, "chat")
	if err := os.Mkdir(filepath.Join(b.dir, "access"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write("access/key", "key of the gateway\n")
	b.write("access/http.yaml", "authorization: {credentials_file: key}\nhttp_headers: {X-Scope-OrgID: {values: [team-a]}}\n")
	for text, want := range map[string]float64{configText: 1, configText + access: 0} {
		b.write("serve.yaml", strings.Replace(text, "http://127.0.0.1:1", gateway.URL, 1))
		if err := os.RemoveAll(filepath.Join(b.dir, "reports")); err != nil {
			t.Fatal(err)
		}
		b.restart()
		b.Analyze = window.Analyze
		b.at(start())
		b.at(start().Add(15 * time.Minute))
		if b.failures("prometheus") != want {
			t.Errorf("%v failures, want %v: %s", b.failures("prometheus"), want, b.log.String())
		}
	}
	if last := got[len(got)-1]; last.Get("X-Scope-OrgID") != "team-a" && got[0].Get("X-Scope-OrgID") != "team-a" {
		t.Errorf("%v", last)
	}
	for text, want := range map[string]string{"": "is empty", "authorisation: {}\n": "authorisation", "basic_auth: {username: a}\nauthorization: {credentials: b}\n": "at most one"} {
		b.write("access/http.yaml", text)
		_, err := Load(filepath.Join(b.dir, "serve.yaml"), start())
		if b.write("serve.yaml", configText+access); err == nil {
			_, err = Load(filepath.Join(b.dir, "serve.yaml"), start())
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprintf("serve.yaml:%d", strings.Count(configText, "\n")+1)) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}
