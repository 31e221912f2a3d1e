package promexpr_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	px "firstbreach/internal/promexpr"
)

func TestPrintsAndParsesBack(t *testing.T) {
	sel := func() *parser.VectorSelector { return px.Select("requests_total", px.Eq("run", `a"b\c`)) }
	last := func() px.Expr { return px.LastOverTime(px.Range(sel(), 90*time.Minute)) }
	for _, c := range []struct {
		expr px.Expr
		want string
	}{
		{sel(), `requests_total{run="a\"b\\c"}`},
		{px.Select("up"), `up`},
		{px.Select("up", px.NotEq("job", "x"), px.NoneOf("mode", "idle", "io.wait")), `up{job!="x",mode!~"idle|io\\.wait"}`},
		{px.SelectNames([]string{"a", "b:c"}, px.Eq("job", "vllm")), `{__name__=~"a|b:c",job="vllm"}`},
		{px.SelectNames([]string{"a"}), `a`},
		{px.Select("up", px.Like("job", "$job")), `up{job=~"$job"}`},
		{px.SelectPrefixed([]string{"v:", "v_"}, "x", px.Eq("job", "vllm")), `{__name__=~"(v:|v_)x",job="vllm"}`},
		{px.SelectPrefixed([]string{"v:"}, "x"), `v:x`},
		{px.Select("x_bucket", px.OneOf("le", "1", "1.0", "1e+06")), `x_bucket{le=~"1|1\\.0|1e\\+06"}`},
		{px.Select("x", px.OneOf("le", "1")), `x{le="1"}`},
		{px.Select("x", px.Labels(map[string]string{"b": "2", "a": "1"})...), `x{a="1",b="2"}`},
		{px.Range(px.Select("up"), 1500*time.Microsecond), `up[2ms]`},
		{last(), `last_over_time(requests_total{run="a\"b\\c"}[1h30m])`},
		{px.MaxBy(last(), "phase", "round"), `max by (phase, round) (last_over_time(requests_total{run="a\"b\\c"}[1h30m]))`},
		{px.MaxBy(px.Select("up")), `max(up)`},
		{px.SumWithout(px.Select("x"), "cpu"), `sum without (cpu) (x)`},
		{px.MaxOverTime(px.Range(px.Select("x"), time.Minute)), `max_over_time(x[1m])`},
		{px.Resets(px.Range(px.Select("x_total"), time.Minute)), `resets(x_total[1m])`},
		{px.Rate(px.Range(px.Select("x_total"), time.Minute)), `rate(x_total[1m])`},
		{px.HistogramQuantile(0.95, px.SumBy(px.Select("x_bucket"), "le")), `histogram_quantile(0.95, sum by (le) (x_bucket))`},
		{px.HistogramCount(px.Select("x")), `histogram_count(x)`},
		{px.HistogramSum(px.AvgBy(px.Select("x"), "step")), `histogram_sum(avg by (step) (x))`},
		{px.CountBy(px.Select("x"), "__name__"), `count by (__name__) (x)`},
		{px.MinBy(px.Select("x"), "utf.8"), `min by ("utf.8") (x)`},
		{px.Time(), `time()`},
		{px.Above(px.Select("x"), 0), `x > 0`},
		{px.Or(px.Above(px.Select("x"), 0), px.Select("y")), `(x > 0) or y`},
		{px.Differs(px.Select("a"), px.Div(px.Select("b"), px.Select("c"))), `a != (b / c)`},
		{px.And(px.Select("a"), px.Above(px.Select("b"), 0.5)), `a and (b > 0.5)`},
		{px.And(px.Select("a"), px.Select("b"), "service", "slo"), `a and on (service, slo) b`},
		{px.UnlessAny(px.Select("a"), px.Select("b")), `a unless on () b`},
		{px.Mul(px.Number(0), px.Select("a")), `0 * a`},
		{px.Sub(px.Number(1), px.Div(px.Select("a"), px.Number(0.05))), `1 - (a / 0.05)`},
		{px.Add(px.Select("a"), px.Or(px.Select("b"), px.Vector(0))), `a + (b or vector(0))`},
		{px.Equals(px.Select("up"), 0), `up == 0`},
		{px.Below(px.Select("a"), 1), `a < 1`},
		{px.AtLeast(px.Increase(px.Range(px.Select("a"), time.Hour)), 7), `increase(a[1h]) >= 7`},
		{px.SumOverTime(px.Subquery(px.Select("a"), 30*24*time.Hour, time.Hour)), `sum_over_time(a[30d:1h])`},
		{px.Absent(px.Select("up", px.Eq("job", "x"))), `absent(up{job="x"})`},
		{px.Round(px.Select("a"), 1e-6), `round(a, 0.000001)`},
		{px.Subquery(px.Div(px.Select("a"), px.Select("b")), time.Hour, time.Second), `(a / b)[1h:1s]`},
		{px.Subquery(px.SumBy(px.Select("a"), "job"), time.Hour, time.Second), `sum by (job) (a)[1h:1s]`},
	} {
		got := c.expr.String()
		if got != c.want {
			t.Errorf("printed %s, want %s", got, c.want)
		}
		again, err := px.Parse(got)
		if err != nil {
			t.Errorf("%s: %v", got, err)
			continue
		}
		if parser.Tree(again) != parser.Tree(c.expr) {
			t.Errorf("%s reads back as another tree:\n%s\nwant\n%s", got, parser.Tree(again), parser.Tree(c.expr))
		}
	}
}

func TestParseVector(t *testing.T) {
	for text, wrong := range map[string]string{
		`sum(rate(x[1m]))`:               "",
		`1 + 1`:                          "",
		`histogram_quantile(0.9, x`:      "parse error",
		`up{job="a"`:                     "parse error",
		`"text"`:                         "string",
		`up[5m]`:                         "range vector",
		``:                               "no expression",
		`no_such_function(up)`:           "no_such_function",
		`sum by (le) (x) / on () vector`: "",
	} {
		_, err := px.ParseVector(text)
		switch {
		case wrong == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%q: error %v, want one about %q", text, err, wrong)
		}
	}
}
