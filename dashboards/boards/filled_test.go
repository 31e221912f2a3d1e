package boards

import (
	"testing"

	"firstbreach/alerts/output"
	"firstbreach/alerts/rules"
	"firstbreach/internal/promplay"
	"firstbreach/internal/slo"
)

const (
	budgetNeedsAnHour = "the budget is computed from an hour of data; TestHourOfRecordedPages plays one"
	noQueueTimes      = "answers in the OpenAI API don't tell how long a request waited"
	noHTTPRequests    = "the simulated engine counts no HTTP requests, from which vLLM's success is read and its alerts fire; TestHourOfRecordedPages plays vLLM's"
)

// mustBeEmpty are the queries without data in the store of TestEveryPanelIsFilled, by uid, title and letter,
// and why. Each panel says the reason in its place. A query that does have data fails the test, as one
// without fails it.
var mustBeEmpty = map[string]string{
	"firstbreach-slo-chat: Objectives C":        budgetNeedsAnHour,
	"firstbreach-slo-chat: Budget left A":       budgetNeedsAnHour,
	"firstbreach-slo-demo: Objectives C":        budgetNeedsAnHour,
	"firstbreach-slo-demo: Budget left A":       budgetNeedsAnHour,
	"firstbreach-slo-demo: Queue time A":        noQueueTimes,
	"firstbreach-loadtest-demo: Queue time A":   noQueueTimes,
	"firstbreach-slo-chat: success: 99% good A": noHTTPRequests,
	"firstbreach-slo-chat: success: 99% good B": noHTTPRequests,
	"firstbreach-slo-chat: Firing alerts A":     noHTTPRequests,
	"firstbreach-slo-chat: annotation Alerts":   noHTTPRequests,
}

// What that test's engine and its short time can't fill is filled by an hour of pages that a vLLM, an
// exporter and a load generator really served, with the generated rules evaluated. A part of vLLM's answers
// is made to fail, so that alerts fire.
func TestHourOfRecordedPages(t *testing.T) {
	chat, demo := shipped(t), deployed(t)
	p := promplay.New(t, ruleText(t, chat), ruleText(t, demo))
	feed := promplay.Page(t, page(t, "../../internal/signal/testdata/vllm-0.32.prom"), map[string]string{"job": "vllm", "instance": "a:8000"})
	feed = append(feed, promplay.Page(t, page(t, "../../exporter/collector/testdata/linux-6.18.prom"), map[string]string{"job": "exporter", "instance": "a:10510"})...)
	feed = append(feed, promplay.Page(t, page(t, "../../loadgen/record/testdata/page.txt"), map[string]string{"job": "probe", "instance": "a:10511"})...)
	feed = append(feed, promplay.Series{Name: "http_requests_total", At: promplay.Counter(100), Labels: map[string]string{
		"job": "vllm", "instance": "a:8000", "handler": "/v1/chat/completions", "method": "POST", "status": "5xx"}})
	p.Run(63, feed...)
	for _, f := range []*slo.File{chat, demo} {
		b, err := Service(f)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := read(t, b)
		for _, q := range d.queries() {
			if left := mustBeEmpty[q.name]; f == demo && left != budgetNeedsAnHour {
				continue // of the probe: filled in that test, and the recorded page has other bucket edges
			}
			if len(p.Query(substitute(q.expr))) == 0 {
				t.Errorf("%q is empty: %s", q.name, substitute(q.expr))
			}
		}
	}
}

// query is one query of a dashboard.
type query struct {
	name, expr string
	instant    bool
	ofPanel    bool
	noValue    string // what the panel shows without data
}

// queries are those of the annotations and the panels.
func (b raw) queries() []query {
	var all []query
	for _, a := range b.Annotations.List {
		if a.Expr != "" {
			all = append(all, query{name: b.UID + ": annotation " + a.Name, expr: a.Expr})
		}
	}
	for _, p := range b.Panels {
		for _, q := range p.Targets {
			all = append(all, query{name: b.UID + ": " + p.Title + " " + q.RefID, expr: q.Expr, instant: q.Instant, ofPanel: true, noValue: p.FieldConfig.Defaults.NoValue})
		}
	}
	return all
}

// ruleText are the rules that the SLO file gives.
func ruleText(t *testing.T, f *slo.File) []byte {
	t.Helper()
	set, err := rules.Make(f, rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := output.Rules(f, set)
	if err != nil {
		t.Fatal(err)
	}
	return files[0].Content
}
