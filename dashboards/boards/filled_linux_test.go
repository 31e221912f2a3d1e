//go:build cgo

package boards

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Every query of every dashboard that lies here and in deploy has data in a store that a run has filled:
// panels, annotations and the choices of variables.
func TestEveryPanelIsFilled(t *testing.T) {
	all := append(boardFiles(t, ".."), boardFiles(t, "../../deploy/dashboards")...)
	g := opened(t, runStack(t, shipped(t), deployed(t)))
	seen := map[string]bool{}
	for _, b := range all {
		g.open(b)
		for _, q := range b.queries() {
			seen[q.name] = true
		}
	}
	for query := range mustBeEmpty {
		if !seen[query] {
			t.Errorf("mustBeEmpty has %q, and no dashboard does", query)
		}
	}
}

// boardFiles reads the dashboards of a folder.
func boardFiles(t *testing.T, dir string) []raw {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) != 3 {
		t.Fatalf("%s holds %q, %v; want the GPU hosts, a load test and a service", dir, paths, err)
	}
	all := make([]raw, len(paths))
	for i, path := range paths {
		if err := json.Unmarshal(page(t, path), &all[i]); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return all
}

// grafana asks what Grafana asks when it opens a dashboard.
type grafana struct {
	t        *testing.T
	api      v1.API
	begin    time.Time
	deadline time.Time         // until then what is empty may become filled: rules and rates need a few scrapes
	chosen   map[string]string // variable → value
}

func opened(t *testing.T, s *stack) *grafana {
	t.Helper()
	client, err := api.NewClient(api.Config{Address: s.store.URL()})
	if err != nil {
		t.Fatal(err)
	}
	return &grafana{t: t, api: v1.NewAPI(client), begin: s.begin, deadline: time.Now().Add(15 * time.Second)}
}

func (g *grafana) open(b raw) {
	g.t.Helper()
	g.choose(b)
	for _, q := range b.queries() {
		if reason, excepted := mustBeEmpty[q.name]; excepted {
			g.empty(q, reason)
			continue
		}
		for !g.filled(q) {
			if time.Now().After(g.deadline) {
				g.t.Errorf("%q is empty: %s", q.name, g.substitute(q.expr, time.Now()))
				break
			}
			time.Sleep(scrape / 4)
		}
	}
}

// empty checks that a query has no data, as it must for that reason, and that its panel says why.
func (g *grafana) empty(q query, reason string) {
	g.t.Helper()
	if g.filled(q) {
		g.t.Errorf("%q has data, though %s", q.name, reason)
	}
	if q.ofPanel && q.noValue == "" {
		g.t.Errorf("%q is empty and doesn't say why", q.name)
	}
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// choose asks for the choices of each variable, and chooses all of them or, where there can only be one,
// the first.
func (g *grafana) choose(b raw) {
	g.t.Helper()
	g.chosen = map[string]string{}
	for _, v := range b.Templating.List {
		if v.Type != "query" {
			continue
		}
		text, _ := v.Query.(string)
		now := time.Now()
		m := labelValues.FindStringSubmatch(g.substitute(text, now))
		if m == nil {
			g.t.Fatalf("%s: variable %s: query %q", b.UID, v.Name, text)
		}
		values, _, _, err := g.api.LabelValues(g.t.Context(), m[2], []string{m[1]}, g.begin, now)
		if err != nil {
			g.t.Fatalf("%s: variable %s: %s: %v", b.UID, v.Name, m[1], err)
		}
		if len(values) == 0 {
			g.t.Fatalf("%s: variable %s has no choice: %s", b.UID, v.Name, text)
		}
		g.chosen[v.Name] = v.AllValue
		if v.AllValue == "" {
			g.chosen[v.Name] = string(values[0])
		}
	}
}

// substitute puts in what Grafana does: what is chosen, and its own windows.
func (g *grafana) substitute(expr string, now time.Time) string {
	pairs := []string{"$__rate_interval", (10 * scrape).String(), "$__range", fmt.Sprintf("%ds", int(math.Ceil(now.Sub(g.begin).Seconds())))}
	for name, value := range g.chosen {
		pairs = append(pairs, "$"+name, value)
	}
	return strings.NewReplacer(pairs...).Replace(expr)
}

// filled asks for a query's newest value or for its graph, and reports whether there is a number in it.
func (g *grafana) filled(q query) bool {
	g.t.Helper()
	now := time.Now()
	expr := g.substitute(q.expr, now)
	var v model.Value
	var err error
	if q.instant {
		v, _, _, err = g.api.Query(g.t.Context(), expr, now)
	} else {
		v, _, _, err = g.api.QueryRange(g.t.Context(), expr, v1.Range{Start: g.begin, End: now, Step: 2 * scrape})
	}
	if err != nil {
		g.t.Fatalf("%q: %s: %v", q.name, expr, err)
	}
	return finite(v)
}

// finite reports whether there is a number among the values.
func finite(v model.Value) bool {
	is := func(f model.SampleValue) bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }
	switch v := v.(type) {
	case *model.Scalar:
		return is(v.Value)
	case model.Vector:
		for _, s := range v {
			if is(s.Value) {
				return true
			}
		}
	case model.Matrix:
		for _, series := range v {
			for _, s := range series.Values {
				if is(s.Value) {
					return true
				}
			}
		}
	}
	return false
}
