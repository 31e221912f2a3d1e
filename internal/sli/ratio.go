package sli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
	"firstbreach/internal/strictyaml"
)

const (
	suffixCount  = "_count"
	suffixSum    = "_sum"
	suffixBucket = "_bucket"
	labelLE      = "le"
)

// Grow turns the selector of counters into their growth: an increase over some window.
type Grow func(*parser.VectorSelector) promexpr.Expr

// IncreaseOver is the growth over the last d.
func IncreaseOver(d time.Duration) Grow {
	return func(s *parser.VectorSelector) promexpr.Expr { return promexpr.Increase(promexpr.Range(s, d)) }
}

// Ratio is a per-request objective in production: bad requests of all requests, over every series
// that the SLO file's selector picks.
type Ratio struct {
	Objective slo.Objective
	Source    Source
	Histogram string   // the metric that a latency is read from; "" for the other kinds
	Notes     []string // in what production differs from a load test, for a person to read

	forms []form // tried in order: the first with series answers
}

// form is one way to count, by one of the names that a metric has had.
type form struct {
	bad, total func(Grow) promexpr.Expr
	failed     func(Grow) promexpr.Expr // of a share: bad, without a 0 where there is none
	feed       []Feed
}

// NewRatio finds the series for a latency, success or timeout objective. The error is a
// *strictyaml.Error at the objective: no metric can answer it, or none exactly.
func NewRatio(f *slo.File, o slo.Objective) (Ratio, error) {
	r := Ratio{Objective: o}
	engine, err := engineOf(f)
	if err != nil {
		return r, err
	}
	r.Source = engine
	if !answers(engine.Entry, o) {
		if r.Source, err = probeOf(f); err != nil {
			return r, err
		}
		if engine.Name != signal.Probe {
			r.Notes = append(r.Notes, fmt.Sprintf("read from the probe: %s", engine.Entry.Reason(o.Signal)))
		}
	}
	if err := requireSelector(f, o, r.Source); err != nil {
		return r, err
	}
	for _, group := range variants(current(r.Source.Entry.Candidates(o.Signal))) {
		if o.Kind != slo.Latency {
			r.forms = append(r.forms, r.Source.share(group))
		} else if err := r.addLatency(f, group); err != nil {
			return r, err
		}
		if n := group[0].Note; n != "" && r.Source.Name != signal.Probe {
			r.Notes = append(r.Notes, group[0].Name+": "+n)
		}
	}
	return r, nil
}

// Ratios finds the series of every per-request objective. The error is a *strictyaml.Error that lists all
// objectives that no metric can answer, or none exactly.
func Ratios(f *slo.File) ([]Ratio, error) {
	var list []Ratio
	var errs []error
	for _, o := range f.PerRequest() {
		r, err := NewRatio(f, o)
		errs = append(errs, err)
		list = append(list, r)
	}
	return list, strictyaml.Join(errs...)
}

// answers reports whether an engine has a metric that can say of each request whether it was good. A
// mean can't.
func answers(e *signal.Engine, o slo.Objective) bool {
	ms := current(e.Candidates(o.Signal))
	return len(ms) > 0 && (o.Kind != slo.Latency || ms[0].Type == signal.Histogram)
}

// Bad is the bad requests, as growth counts them; 0 where there were none, nothing where there is no
// request at all to speak of.
func (r Ratio) Bad(grow Grow) promexpr.Expr {
	return r.either(func(f form) promexpr.Expr { return f.bad(grow) })
}

// Total is all requests.
func (r Ratio) Total(grow Grow) promexpr.Expr {
	return r.either(func(f form) promexpr.Expr { return f.total(grow) })
}

// Feed lists series that the first form reads.
func (r Ratio) Feed() []Feed { return r.forms[0].feed }

func (r Ratio) either(of func(form) promexpr.Expr) promexpr.Expr {
	e := of(r.forms[0])
	for _, f := range r.forms[1:] {
		e = promexpr.Or(e, of(f))
	}
	return e
}

// addLatency counts bad = slow + failed of the histogram's requests and the failed, as a load test
// does. Engines observe finished requests only, so that failed ones must be added from elsewhere.
func (r *Ratio) addLatency(f *slo.File, group []signal.Metric) error {
	o, m, src := r.Objective, group[0], r.Source
	edge, err := exactEdge(f, o, m)
	if err != nil {
		return err
	}
	r.Histogram = m.Name
	count := src.selector(own(group), suffixCount)
	bucket := src.selector(own(group), suffixBucket, promexpr.OneOf(labelLE, Edge(edge)...))
	fm := form{
		total: func(g Grow) promexpr.Expr { return promexpr.SumBy(g(count)) },
		bad:   func(g Grow) promexpr.Expr { return promexpr.Sub(promexpr.SumBy(g(count)), promexpr.SumBy(g(bucket))) },
		feed: []Feed{
			src.feed(m.Term, suffixCount, nil, perMinute, perMinute),
			src.feed(m.Term, suffixBucket, map[string]string{labelLE: Edge(edge)[0]}, perMinute, 0),
		},
	}
	if failed := src.failures(); failed != nil {
		r.forms = append(r.forms, fm.plus(failed))
		return nil
	}
	r.Notes = append(r.Notes, src.Entry.Title+" has no count of failed requests: in production only answered ones count, where a load test counts failed ones as bad")
	r.forms = append(r.forms, fm)
	return nil
}

// plus adds requests that failed to those that the form counts.
func (f form) plus(failed func(Grow) promexpr.Expr) form {
	return form{
		bad:   func(g Grow) promexpr.Expr { return promexpr.Add(f.bad(g), orNone(failed(g), f.total(g))) },
		total: func(g Grow) promexpr.Expr { return promexpr.Add(f.total(g), orNone(failed(g), f.total(g))) },
		feed:  f.feed,
	}
}

// share counts by outcome, all requests being those of the terms that the ratio is taken of. What is
// bad is there as it is (a remainder), or is the rest of the same metric, or one of the terms.
func (s Source) share(group []signal.Metric) form {
	m := group[0]
	top := s.selector(own(group), "")
	terms := make([]*parser.VectorSelector, len(m.Of))
	for i := range terms {
		terms[i] = s.selector(of(group, i), "")
	}
	total := func(g Grow) promexpr.Expr {
		sum := promexpr.SumBy(g(terms[0]))
		for _, t := range terms[1:] {
			sum = promexpr.Add(sum, orNone(promexpr.SumBy(g(t)), sum))
		}
		return sum
	}
	bad := func(g Grow) promexpr.Expr { return promexpr.SumBy(g(top)) }
	if m.Reading != signal.ReadRateRemainder {
		rest := s.rest(group)
		bad = func(g Grow) promexpr.Expr { return promexpr.SumBy(g(rest)) }
	}
	return form{
		bad:   func(g Grow) promexpr.Expr { return orNone(bad(g), total(g)) },
		total: total, failed: bad, feed: s.feedShare(m),
	}
}

// rest selects the requests that a metric of good ones leaves out: other outcomes of the same metric,
// or the metric beside it.
func (s Source) rest(group []signal.Metric) *parser.VectorSelector {
	m := group[0]
	for i, t := range m.Of {
		if t.Name != m.Name {
			return s.selector(of(group, i), "")
		}
	}
	var others []promexpr.Matcher
	for _, label := range sortedKeys(m.Match) {
		if _, also := m.Of[0].Match[label]; !also {
			others = append(others, promexpr.NoneOf(label, m.Match[label]...))
		}
	}
	return s.selector(of(group, 0), "", others...)
}

// orNone is e, or 0 where e has no series yet and all has: a counter of failures is often not there
// before the first one.
func orNone(e, all promexpr.Expr) promexpr.Expr {
	return promexpr.Or(e, promexpr.Mul(promexpr.Number(0), all))
}

// failures counts the failed requests among those that the source's histograms leave out; nil where
// it has no such count.
func (s Source) failures() func(Grow) promexpr.Expr {
	groups := variants(current(s.Entry.Candidates(signal.SignalSuccessRatio)))
	if len(groups) == 0 {
		return nil
	}
	shares := make([]form, len(groups))
	for i, g := range groups {
		shares[i] = s.share(g)
	}
	return func(grow Grow) promexpr.Expr {
		e := shares[0].failed(grow)
		for _, f := range shares[1:] {
			e = promexpr.Or(e, f.failed(grow))
		}
		return e
	}
}

// exactEdge is the bucket edge at the threshold, in the metric's unit. A threshold between two edges
// is refused: every answer from such a histogram would be interpolated, that is, made up.
func exactEdge(f *slo.File, o slo.Objective, m signal.Metric) (float64, error) {
	at := o.Threshold.Seconds()
	_, exact, known := m.NearestEdge(at)
	if !known || exact {
		return at / m.Scale, nil
	}
	below, above := around(m.Edges(), at)
	fix := "write " + below
	switch {
	case below == "":
		fix = "write " + above
	case above != "":
		fix = fmt.Sprintf("write %s or %s", below, above)
	}
	return 0, refuse(f, o, "threshold", fix+", or read the objective from the probe (engine: probe), which has an edge at every threshold",
		"%s is between two bucket edges of %s, so that no rule could answer it exactly", duration(o.Threshold), m.Name)
}

func around(edges []float64, at float64) (below, above string) {
	for _, e := range edges {
		text := duration(time.Duration(e * float64(time.Second)).Round(time.Microsecond))
		if e < at {
			below = text
		} else if above == "" {
			above = text
		}
	}
	return below, above
}

// duration prints 2m0s as 2m and 750ms as it is.
func duration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Edge is how a bucket's upper edge may be spelled in le: Prometheus 2 keeps what the exporter wrote,
// 1, and Prometheus 3 writes every one as a float, 1.0.
func Edge(edge float64) []string {
	text := strconv.FormatFloat(edge, 'f', -1, 64)
	if short := strconv.FormatFloat(edge, 'g', -1, 64); strings.Contains(short, "e") {
		return unique([]string{text, text + ".0", short})
	}
	if strings.Contains(text, ".") {
		return []string{text}
	}
	return []string{text, text + ".0"}
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
