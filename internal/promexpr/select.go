package promexpr

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Expr is any PromQL expression.
type Expr = parser.Expr

// Matcher picks series by one label.
type Matcher = *labels.Matcher

// Eq matches series whose label has exactly this value.
func Eq(label, value string) Matcher { return matcher(labels.MatchEqual, label, value) }

// NotEq matches series whose label has any other value, or none.
func NotEq(label, value string) Matcher { return matcher(labels.MatchNotEqual, label, value) }

// OneOf matches series whose label has one of the values, taken literally.
func OneOf(label string, values ...string) Matcher {
	if len(values) == 1 {
		return Eq(label, values[0])
	}
	return matcher(labels.MatchRegexp, label, alternatives(values))
}

// NoneOf matches series whose label has none of the values, taken literally.
func NoneOf(label string, values ...string) Matcher {
	if len(values) == 1 {
		return NotEq(label, values[0])
	}
	return matcher(labels.MatchNotRegexp, label, alternatives(values))
}

// Like matches series whose label matches the regular expression, which may be a dashboard's
// variable such as $job. An expression that doesn't compile is a mistake of the program.
func Like(label, pattern string) Matcher { return matcher(labels.MatchRegexp, label, pattern) }

// Labels turns a set of labels into matchers, in the order of their names.
func Labels(set map[string]string) []Matcher {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	matchers := make([]Matcher, len(names))
	for i, name := range names {
		matchers[i] = Eq(name, set[name])
	}
	return matchers
}

// Select picks the series of one metric.
func Select(metric string, matchers ...Matcher) *parser.VectorSelector {
	return &parser.VectorSelector{
		Name:          metric,
		LabelMatchers: append([]Matcher{Eq(labels.MetricName, metric)}, matchers...),
	}
}

// SelectNames picks the series of several metrics at once.
func SelectNames(metrics []string, matchers ...Matcher) *parser.VectorSelector {
	if len(metrics) == 1 {
		return Select(metrics[0], matchers...)
	}
	return &parser.VectorSelector{
		LabelMatchers: append([]Matcher{OneOf(labels.MetricName, metrics...)}, matchers...),
	}
}

// SelectPrefixed picks the series of one metric under any of the prefixes that its name may have.
func SelectPrefixed(prefixes []string, rest string, matchers ...Matcher) *parser.VectorSelector {
	if len(prefixes) == 1 {
		return Select(prefixes[0]+rest, matchers...)
	}
	name := matcher(labels.MatchRegexp, labels.MetricName, "("+alternatives(prefixes)+")"+regexp.QuoteMeta(rest))
	return &parser.VectorSelector{LabelMatchers: append([]Matcher{name}, matchers...)}
}

// Range is the raw samples of a selector over the last d, which is rounded up to a millisecond,
// the resolution of PromQL.
func Range(s *parser.VectorSelector, d time.Duration) *parser.MatrixSelector {
	return &parser.MatrixSelector{VectorSelector: s, Range: ceilMillis(d)}
}

// Subquery evaluates an expression every step over the last d.
func Subquery(e Expr, d, step time.Duration) *parser.SubqueryExpr {
	return &parser.SubqueryExpr{Expr: operand(e), Range: ceilMillis(d), Step: ceilMillis(step)}
}

func ceilMillis(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

func alternatives(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = regexp.QuoteMeta(v)
	}
	return strings.Join(quoted, "|")
}

// matcher doesn't fail: plain values need no compiling, alternatives are quoted, and the patterns of
// Like are the program's own.
func matcher(t labels.MatchType, label, value string) Matcher {
	return parser.MustLabelMatcher(t, label, value)
}
