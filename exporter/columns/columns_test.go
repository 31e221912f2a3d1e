package columns

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	promparser "github.com/prometheus/prometheus/promql/parser"
)

// catalogue is every name in the catalogue of own metrics.
func catalogue(t *testing.T) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../internal/signal/own.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			name, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			names[name] = true
		}
		return true
	})
	return names
}

// Each expression is PromQL, reads the metrics that the column names and no other, takes rates of
// counters only, and never a gauge's.
func TestExpressions(t *testing.T) {
	known := catalogue(t)
	prom := promparser.NewParser(promparser.Options{})
	for _, c := range All() {
		at := c.Tool + ": " + c.Name
		expr, err := prom.ParseExpr(c.PromQL("1m"))
		if err != nil {
			t.Errorf("%s: %s: %v", at, c.Expr, err)
			continue
		}
		read := map[string]bool{}
		promparser.Inspect(expr, func(node promparser.Node, path []promparser.Node) error {
			v, ok := node.(*promparser.VectorSelector)
			if !ok {
				return nil
			}
			read[v.Name] = true
			counter := strings.HasSuffix(v.Name, "_total")
			ranged := len(path) > 0 && isMatrix(path[len(path)-1])
			absolute := slices.Contains([]string{"sbecc", "dbecc", "pci"}, c.Name)
			if counter != ranged && !absolute {
				t.Errorf("%s: %s is a counter: %v, and read over a range: %v", at, v.Name, counter, ranged)
			}
			return nil
		})
		for _, m := range c.Metrics {
			if !known[m] {
				t.Errorf("%s: %s is not in the catalogue", at, m)
			}
			if !read[m] {
				t.Errorf("%s: %s is named and not read", at, m)
			}
			delete(read, m)
		}
		for m := range read {
			t.Errorf("%s: %s is read and not named", at, m)
		}
	}
}

func isMatrix(n promparser.Node) bool {
	_, ok := n.(*promparser.MatrixSelector)
	return ok
}

// The columns are those that the tools print, in their order.
func TestHeaders(t *testing.T) {
	got := map[string][]string{}
	for _, c := range All() {
		got[c.Tool] = append(got[c.Tool], c.Name)
	}
	want := map[string][]string{
		DMon:   strings.Fields("gpu pwr gtemp mtemp sm mem enc dec jpg ofa mclk pclk pviol tviol fb bar1 ccpm sbecc dbecc pci rxpci txpci"),
		VMStat: strings.Fields("r b swpd free buff cache si so bi bo in cs us sy id wa st gu"),
		IOStat: strings.Fields("r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz " +
			"d/s dkB/s drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// docs/exporter-columns.md is this page; with -args update it is written anew.
func TestPage(t *testing.T) {
	const path = "../../docs/exporter-columns.md"
	if slices.Contains(flag.Args(), "update") {
		if err := os.WriteFile(path, []byte(Page()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Page(), string(page)); diff != "" {
		t.Errorf("run: go test ./exporter/columns -args update\n%s", diff)
	}
}
