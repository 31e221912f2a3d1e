package ruletest_test

import (
	"context"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	promrules "github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/teststorage"
)

// series is one series and its value in each minute; a negative value is no sample.
type series struct {
	name   string
	labels map[string]string
	at     func(minute int) float64
}

// counter grows by so much a minute.
func counter(perMinute float64) func(int) float64 {
	return func(m int) float64 { return perMinute * float64(m) }
}

// play loads a rule file into the Prometheus that go.mod names, feeds it a sample a minute and
// evaluates the rules each time, as a server does. It returns a question: which alerts of a name fire
// at the end, as their severity and long window.
type player struct {
	t       *testing.T
	groups  []*promrules.Group
	manager *promrules.Manager
	storage *teststorage.TestStorage
	engine  *promql.Engine
	now     time.Time
	minute  int
}

func newPlayer(t *testing.T, ruleText []byte) *player {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(path, ruleText, 0o644); err != nil {
		t.Fatal(err)
	}
	p := &player{t: t, storage: teststorage.New(t), engine: promqltest.NewTestEngine(t, false, 0, 50_000_000), now: time.Unix(0, 0).UTC()}
	p.manager = promrules.NewManager(&promrules.ManagerOptions{
		QueryFunc: promrules.EngineQueryFunc(p.engine, p.storage), NotifyFunc: func(context.Context, string, ...*promrules.Alert) {},
		Context: t.Context(), AppendableV2: p.storage, Queryable: p.storage, Logger: slog.New(slog.DiscardHandler),
		Registerer: prometheus.NewRegistry(), ExternalURL: &url.URL{}, NameValidationScheme: model.LegacyValidation,
		Parser: parser.NewParser(parser.Options{}),
	})
	byName, errs := p.manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, path)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		p.groups = append(p.groups, byName[name])
	}
	return p
}

// run feeds and evaluates for so many minutes.
func (p *player) run(minutes int, feed ...series) {
	p.t.Helper()
	for range minutes {
		app := p.storage.Appender(p.t.Context())
		for _, s := range feed {
			v := s.at(p.minute)
			if v < 0 {
				continue
			}
			set := maps.Clone(s.labels)
			set[model.MetricNameLabel] = s.name
			if _, err := app.Append(0, labels.FromMap(set), p.now.UnixMilli(), v); err != nil {
				p.t.Fatal(err)
			}
		}
		if err := app.Commit(); err != nil {
			p.t.Fatal(err)
		}
		for _, g := range p.groups {
			g.Eval(p.t.Context(), p.now)
			for _, r := range g.Rules() {
				if err := r.LastError(); err != nil {
					p.t.Fatalf("minute %d: %s: %v", p.minute, r.Name(), err)
				}
			}
		}
		p.minute++
		p.now = p.now.Add(time.Minute)
	}
}

// firing lists what fires: alert, severity and, where it has one, its long window.
func (p *player) firing() []string {
	var list []string
	for _, g := range p.groups {
		for _, r := range g.AlertingRules() {
			for _, a := range r.ActiveAlerts() {
				if a.State == promrules.StateFiring {
					list = append(list, strings.TrimSpace(strings.Join([]string{r.Name(), a.Labels.Get("slo"), a.Labels.Get("severity"), a.Labels.Get("long")}, " ")))
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// value is the newest value of an expression; ok is false when it gives nothing.
func (p *player) value(expr string) (float64, bool) {
	p.t.Helper()
	q, err := p.engine.NewInstantQuery(p.t.Context(), p.storage, nil, expr, p.now.Add(-time.Minute))
	if err != nil {
		p.t.Fatal(err)
	}
	v, err := q.Exec(p.t.Context()).Vector()
	if err != nil {
		p.t.Fatal(err)
	}
	if len(v) == 0 {
		return 0, false
	}
	return v[0].F, true
}
