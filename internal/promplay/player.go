// Package promplay plays samples and rules to the Prometheus that go.mod names, in process and in
// virtual time: for tests of what is generated for Prometheus. It is no part of any program.
package promplay

import (
	"context"
	"fmt"
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

// Series is one series and its value in each minute; a negative value is no sample.
type Series struct {
	Name   string
	Labels map[string]string
	At     func(minute int) float64
}

// Counter grows by so much a minute.
func Counter(perMinute float64) func(int) float64 {
	return func(m int) float64 { return perMinute * float64(m) }
}

// Player is a Prometheus whose clock is turned by hand.
type Player struct {
	t       *testing.T
	groups  []*promrules.Group
	manager *promrules.Manager
	storage *teststorage.TestStorage
	engine  *promql.Engine
	now     time.Time
	minute  int
}

// New starts a player at the unix epoch; no rules are no rule text.
func New(t *testing.T, ruleTexts ...[]byte) *Player {
	t.Helper()
	var paths []string
	for i, text := range ruleTexts {
		paths = append(paths, filepath.Join(t.TempDir(), fmt.Sprintf("%d.yml", i)))
		if err := os.WriteFile(paths[i], text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := &Player{t: t, storage: teststorage.New(t), engine: promqltest.NewTestEngine(t, false, 0, 50_000_000), now: time.Unix(0, 0).UTC()}
	p.manager = promrules.NewManager(&promrules.ManagerOptions{
		QueryFunc: promrules.EngineQueryFunc(p.engine, p.storage), NotifyFunc: func(context.Context, string, ...*promrules.Alert) {},
		Context: t.Context(), AppendableV2: p.storage, Queryable: p.storage, Logger: slog.New(slog.DiscardHandler),
		Registerer: prometheus.NewRegistry(), ExternalURL: &url.URL{}, NameValidationScheme: model.LegacyValidation,
		Parser: parser.NewParser(parser.Options{}),
	})
	byName, errs := p.manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, paths...)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		p.groups = append(p.groups, byName[name])
		for _, r := range byName[name].AlertingRules() {
			r.SetRestored(true) // there is nothing to restore, and without it Prometheus writes no ALERTS series
		}
	}
	return p
}

// Run feeds and evaluates for so many minutes.
func (p *Player) Run(minutes int, feed ...Series) {
	p.t.Helper()
	for range minutes {
		app := p.storage.Appender(p.t.Context())
		for _, s := range feed {
			v := s.At(p.minute)
			if v < 0 {
				continue
			}
			set := maps.Clone(s.Labels)
			set[model.MetricNameLabel] = s.Name
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

// Firing lists what fires: alert, severity and, where it has one, its long window.
func (p *Player) Firing() []string {
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

// Value is the newest value of an expression's first series; ok is false when it gives nothing.
func (p *Player) Value(expr string) (float64, bool) {
	p.t.Helper()
	v := p.Query(expr)
	if len(v) == 0 {
		return 0, false
	}
	return v[0].F, true
}

// Query is an expression's value now.
func (p *Player) Query(expr string) promql.Vector {
	p.t.Helper()
	q, err := p.engine.NewInstantQuery(p.t.Context(), p.storage, nil, expr, p.now.Add(-time.Minute))
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	r := q.Exec(p.t.Context())
	if r.Err != nil {
		p.t.Fatalf("%s: %v", expr, r.Err)
	}
	if s, ok := r.Value.(promql.Scalar); ok {
		return promql.Vector{{T: s.T, F: s.V}}
	}
	v, err := r.Vector()
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	return v
}
