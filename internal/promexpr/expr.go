package promexpr

import "github.com/prometheus/prometheus/promql/parser"

// Number is a literal.
func Number(v float64) Expr { return &parser.NumberLiteral{Val: v} }

// Time is the evaluation time in unix seconds.
func Time() Expr { return call("time") }

// LastOverTime is the newest sample of each series, as it was scraped: no extrapolation.
func LastOverTime(m *parser.MatrixSelector) Expr { return call("last_over_time", m) }

// Resets counts how often each counter fell.
func Resets(m *parser.MatrixSelector) Expr { return call("resets", m) }

// Rate is the growth per second of each counter, extrapolated: for pictures, never for a verdict.
func Rate(m *parser.MatrixSelector) Expr { return call("rate", m) }

// HistogramQuantile estimates a quantile, 0–1, from classic buckets (which must keep le) or from
// native histograms.
func HistogramQuantile(q float64, e Expr) Expr { return call("histogram_quantile", Number(q), e) }

// HistogramCount is the number of observations in native histograms.
func HistogramCount(e Expr) Expr { return call("histogram_count", e) }

// HistogramSum is the sum of the observations in native histograms.
func HistogramSum(e Expr) Expr { return call("histogram_sum", e) }

// SumBy adds up, keeping the labels.
func SumBy(e Expr, labels ...string) Expr { return aggregate(parser.SUM, e, labels) }

// SumWithout adds up, dropping the labels.
func SumWithout(e Expr, labels ...string) Expr {
	return &parser.AggregateExpr{Op: parser.SUM, Expr: e, Grouping: labels, Without: true}
}

// MaxBy keeps the largest for each set of the labels.
func MaxBy(e Expr, labels ...string) Expr { return aggregate(parser.MAX, e, labels) }

// MinBy keeps the smallest for each set of the labels.
func MinBy(e Expr, labels ...string) Expr { return aggregate(parser.MIN, e, labels) }

// AvgBy averages for each set of the labels; unlike max it takes native histograms as well.
func AvgBy(e Expr, labels ...string) Expr { return aggregate(parser.AVG, e, labels) }

// CountBy counts the series for each set of the labels.
func CountBy(e Expr, labels ...string) Expr { return aggregate(parser.COUNT, e, labels) }

// Or is every series of a, and those of b whose labels a doesn't have.
func Or(a, b Expr) Expr {
	e := binary(parser.LOR, a, b)
	e.VectorMatching = &parser.VectorMatching{Card: parser.CardManyToMany}
	return e
}

// Div divides series with equal labels.
func Div(a, b Expr) Expr { return matched(parser.DIV, a, b) }

// Differs keeps the series of a that b has with another value.
func Differs(a, b Expr) Expr { return matched(parser.NEQ, a, b) }

// Above keeps the series above v.
func Above(e Expr, v float64) Expr { return binary(parser.GTR, e, Number(v)) }

func matched(op parser.ItemType, a, b Expr) Expr {
	e := binary(op, a, b)
	e.VectorMatching = &parser.VectorMatching{Card: parser.CardOneToOne}
	return e
}

func binary(op parser.ItemType, a, b Expr) *parser.BinaryExpr {
	return &parser.BinaryExpr{Op: op, LHS: operand(a), RHS: operand(b)}
}

// operand puts a nested operation in parentheses: the printer leaves them out, and precedence
// would then read another tree.
func operand(e Expr) Expr {
	switch e.(type) {
	case *parser.BinaryExpr, *parser.UnaryExpr:
		return &parser.ParenExpr{Expr: e}
	}
	return e
}

func call(name string, args ...Expr) Expr {
	return &parser.Call{Func: parser.MustGetFunction(name), Args: args}
}

func aggregate(op parser.ItemType, e Expr, labels []string) Expr {
	return &parser.AggregateExpr{Op: op, Expr: e, Grouping: labels}
}
