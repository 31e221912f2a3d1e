package promexpr

import "github.com/prometheus/prometheus/promql/parser"

// Number is a literal.
func Number(v float64) Expr { return &parser.NumberLiteral{Val: v} }

// Time is the evaluation time in unix seconds.
func Time() Expr { return call("time") }

// LastOverTime is the newest sample of each series, as it was scraped: no extrapolation.
func LastOverTime(m *parser.MatrixSelector) Expr { return call("last_over_time", m) }

// MaxOverTime is the largest sample of each series.
func MaxOverTime(m *parser.MatrixSelector) Expr { return call("max_over_time", m) }

// Resets counts how often each counter fell.
func Resets(m *parser.MatrixSelector) Expr { return call("resets", m) }

// Rate is the growth per second of each counter, extrapolated: for pictures, never for a verdict.
func Rate(m *parser.MatrixSelector) Expr { return call("rate", m) }

// Increase is the growth of each counter over the range, extrapolated to its ends: for alerts, never
// for a verdict.
func Increase(m *parser.MatrixSelector) Expr { return call("increase", m) }

// SumOverTime adds up the values of an expression at each step of a subquery.
func SumOverTime(s *parser.SubqueryExpr) Expr { return call("sum_over_time", s) }

// Absent is 1 where the expression gives nothing.
func Absent(e Expr) Expr { return call("absent", e) }

// Vector is a number as a series without labels.
func Vector(v float64) Expr { return call("vector", Number(v)) }

// Round rounds to the nearest multiple of to.
func Round(e Expr, to float64) Expr { return call("round", e, Number(to)) }

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

// And keeps the series of a that have a partner in b: one with equal labels or, where labels are
// named, with equal values of these.
func And(a, b Expr, on ...string) Expr {
	e := binary(parser.LAND, a, b)
	e.VectorMatching = &parser.VectorMatching{Card: parser.CardManyToMany, On: len(on) > 0, MatchingLabels: on}
	return e
}

// UnlessAny keeps the series of a where b gives nothing at all.
func UnlessAny(a, b Expr) Expr {
	e := binary(parser.LUNLESS, a, b)
	e.VectorMatching = &parser.VectorMatching{Card: parser.CardManyToMany, On: true}
	return e
}

// Div divides series with equal labels, or a series by a number.
func Div(a, b Expr) Expr { return arithmetic(parser.DIV, a, b) }

// Mul multiplies, Add adds and Sub subtracts series with equal labels, or a series and a number.
func Mul(a, b Expr) Expr { return arithmetic(parser.MUL, a, b) }

// Add: see Mul.
func Add(a, b Expr) Expr { return arithmetic(parser.ADD, a, b) }

// Sub: see Mul.
func Sub(a, b Expr) Expr { return arithmetic(parser.SUB, a, b) }

// Differs keeps the series of a that b has with another value.
func Differs(a, b Expr) Expr { return matched(parser.NEQ, a, b) }

// Above keeps the series above v.
func Above(e Expr, v float64) Expr { return binary(parser.GTR, e, Number(v)) }

// Below keeps the series below v.
func Below(e Expr, v float64) Expr { return binary(parser.LSS, e, Number(v)) }

// AtLeast keeps the series at or above v.
func AtLeast(e Expr, v float64) Expr { return binary(parser.GTE, e, Number(v)) }

// Equals keeps the series that are v.
func Equals(e Expr, v float64) Expr { return binary(parser.EQLC, e, Number(v)) }

// arithmetic matches labels only where both sides are series: with a number there are none.
func arithmetic(op parser.ItemType, a, b Expr) Expr {
	if a.Type() == parser.ValueTypeScalar || b.Type() == parser.ValueTypeScalar {
		return binary(op, a, b)
	}
	return matched(op, a, b)
}

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
