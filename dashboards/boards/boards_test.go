package boards

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/dashboards/board"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
)

func TestMain(m *testing.M) {
	plugins.RegisterDefaultPlugins()
	os.Exit(m.Run())
}

func shipped(t *testing.T) *slo.File { return load(t, "../../alerts/slo.yaml") }

// deployed is the SLO file of compose.yaml.
func deployed(t *testing.T) *slo.File { return load(t, "../../deploy/slo.yaml") }

func load(t *testing.T, path string) *slo.File {
	t.Helper()
	f, err := slo.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// everyBoard are the boards of the shipped file and of every engine.
func everyBoard(t *testing.T) []board.Board {
	t.Helper()
	all := []board.Board{Host()}
	for _, engine := range signal.Names() {
		f := shipped(t)
		f.Service, f.Engine = "of-"+engine, engine
		onEdges(t, f)
		for _, of := range []func(*slo.File) (board.Board, error){Service, LoadTest} {
			b, err := of(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
	}
	return all
}

// onEdges moves thresholds to the next longer edge of the engine's histograms.
func onEdges(t *testing.T, f *slo.File) {
	t.Helper()
	entry, err := signal.Lookup(f.Engine)
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Objectives {
		o := &f.Objectives[i]
		metrics := entry.Candidates(o.Signal)
		if o.Kind != slo.Latency || len(metrics) == 0 {
			continue
		}
		for _, edge := range metrics[0].Edges() {
			if at := time.Duration(math.Round(edge * 1e9)); at >= o.Threshold {
				o.Threshold = at
				break
			}
		}
	}
}

// raw is a dashboard as Grafana reads it.
type raw struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	ID         *int   `json:"id"`
	Editable   *bool  `json:"editable"`
	Inputs     any    `json:"__inputs"`
	Templating struct {
		List []struct {
			Name, Type, Label string
			Query             any
			Datasource        *struct{ UID string }
			Multi, IncludeAll *bool
			AllValue          string
			Refresh           int
		}
	}
	Annotations struct {
		List []struct {
			Name, Expr string
			Datasource *struct{ UID string }
		}
	}
	Panels []rawPanel
}

type rawPanel struct {
	ID          int
	Type, Title string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Datasource  *struct{ UID string }
	FieldConfig struct {
		Defaults struct {
			Unit, NoValue string
			Thresholds    struct {
				Steps []struct {
					Value *float64
					Color string
				}
			}
		}
	}
	Targets []struct {
		Expr, RefID string
		Instant     bool
		Datasource  *struct{ UID string }
	}
}

func read(t *testing.T, b board.Board) (raw, []byte) {
	t.Helper()
	text, err := b.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var d raw
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d, text
}

// The same description gives the same bytes, which the SDK reads strictly: no field that Grafana
// doesn't know.
func TestStrictRoundTrip(t *testing.T) {
	for _, b := range everyBoard(t) {
		_, text := read(t, b)
		if _, again := read(t, b); string(again) != string(text) {
			t.Errorf("%s: two generations differ", b.UID)
		}
		var d dashboard.Dashboard
		if err := d.UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
			t.Errorf("%s: %v", b.UID, err)
		}
	}
}

// Ids, uids and titles are unique, rows are full width, and no two panels lie on one another.
func TestLayout(t *testing.T) {
	uids, titles := map[string]bool{}, map[string]bool{}
	for _, b := range everyBoard(t) {
		d, _ := read(t, b)
		if uids[d.UID] || titles[d.Title] || len(d.UID) > 40 {
			t.Errorf("uid %q (%d characters) or title %q is there twice", d.UID, len(d.UID), d.Title)
		}
		uids[d.UID], titles[d.Title] = true, true
		if d.ID != nil || d.Inputs != nil {
			t.Errorf("%s: id %v, __inputs %v: provisioning needs neither", d.UID, d.ID, d.Inputs)
		}
		ids, cells := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if p.ID == 0 || ids[p.ID] {
				t.Errorf("%s: panel id %d of %q is 0 or there twice", d.UID, p.ID, p.Title)
			}
			ids[p.ID] = true
			g := p.GridPos
			if g.X+g.W > 24 || g.W == 0 || g.H == 0 {
				t.Errorf("%s: %q lies outside the grid: %+v", d.UID, p.Title, g)
			}
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					if other := cells[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: %q lies on %q", d.UID, p.Title, other)
					}
					cells[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

// The rules of Grafana's dashboard linter that concern us.
func TestLint(t *testing.T) {
	units := []string{board.Seconds, board.Share, board.Bytes, board.BytesPS, board.PerSec, board.Short, board.Watts, board.Celsius, board.OpsPS, board.NoUnit}
	for _, b := range everyBoard(t) {
		d, _ := read(t, b)
		names := map[string]bool{}
		for i, v := range d.Templating.List {
			names[v.Name] = true
			switch {
			case i == 0 && (v.Type != "datasource" || v.Name != "datasource" || v.Label != "Data source" || v.Query != "prometheus"):
				t.Errorf("%s: the first variable is no datasource: %+v", d.UID, v)
			case i > 0 && (v.Type != "query" || v.Datasource == nil || v.Datasource.UID != "${datasource}" || v.Refresh != 2 || v.Label == ""):
				t.Errorf("%s: variable %s: %+v", d.UID, v.Name, v)
			case (v.Name == "job" || v.Name == "instance") && (v.Multi == nil || !*v.Multi || v.IncludeAll == nil || !*v.IncludeAll || v.AllValue != ".+"):
				t.Errorf("%s: variable %s isn't multi with all: %+v", d.UID, v.Name, v)
			}
			if text, ok := v.Query.(string); ok && i > 0 && !regexp.MustCompile(`^label_values\(.+, \w+\)$`).MatchString(text) {
				t.Errorf("%s: variable %s: query %q", d.UID, v.Name, text)
			}
		}
		if !names["job"] || !names["instance"] {
			t.Errorf("%s: no variables job and instance", d.UID)
		}
		if d.Editable == nil || *d.Editable {
			t.Errorf("%s: can be edited, and the edit would be lost", d.UID)
		}
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			if p.Title == "" || p.Description == "" {
				t.Errorf("%s: %q has no title or description", d.UID, p.Title)
			}
			if p.Datasource == nil || p.Datasource.UID != "${datasource}" {
				t.Errorf("%s: %q: datasource %+v", d.UID, p.Title, p.Datasource)
			}
			if !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
				t.Errorf("%s: %q: unit %q", d.UID, p.Title, p.FieldConfig.Defaults.Unit)
			}
			if steps := p.FieldConfig.Defaults.Thresholds.Steps; p.Type != "heatmap" && (len(steps) == 0 || steps[0].Value != nil) {
				t.Errorf("%s: %q: the first threshold must have the value null: %+v", d.UID, p.Title, steps)
			}
			if len(p.Targets) == 0 {
				t.Errorf("%s: %q has no query", d.UID, p.Title)
			}
			refs := map[string]bool{}
			for _, q := range p.Targets {
				if refs[q.RefID] || q.Datasource == nil || q.Datasource.UID != "${datasource}" {
					t.Errorf("%s: %q: query %+v", d.UID, p.Title, q)
				}
				refs[q.RefID] = true
				lintQuery(t, d.UID, p.Title, q.Expr)
			}
		}
	}
}

// lintQuery: rates over Grafana's interval, counters never without one, targets narrowed by the
// variables. Recorded series and alerts have no job and no instance.
func lintQuery(t *testing.T, uid, panel, expr string) {
	t.Helper()
	e, err := promexpr.ParseVector(substitute(expr))
	if err != nil {
		t.Errorf("%s: %q: %v\n%s", uid, panel, err, expr)
		return
	}
	if regexp.MustCompile(`rate\([^)]*\[\d`).MatchString(expr) {
		t.Errorf("%s: %q: a rate over a fixed window: %s", uid, panel, expr)
	}
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok || strings.HasPrefix(v.Name, "slo:") || v.Name == "ALERTS" {
			return nil
		}
		for _, label := range []string{"job", "instance"} {
			if !strings.Contains(v.String(), label+`=~"`+"x") && !strings.Contains(v.String(), label+`=~".+"`) {
				t.Errorf("%s: %q: %s isn't narrowed by $%s", uid, panel, v, label)
			}
		}
		inFunction := false
		for _, p := range path {
			if c, ok := p.(*parser.Call); ok && slices.Contains([]string{"rate", "increase", "last_over_time"}, c.Func.Name) {
				inFunction = true
			}
		}
		if strings.HasSuffix(v.Name, "_total") && !inFunction {
			t.Errorf("%s: %q: a counter without rate: %s", uid, panel, v)
		}
		return nil
	})
}

// substitute puts in what Grafana would.
func substitute(expr string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$job", ".+", "$instance", ".+", "$model", ".*", "$slo", ".+", "$gpu", ".+", "$run", "r1").Replace(expr)
}

func page(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
