package boards

import (
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/sli"
	"firstbreach/internal/slo"
)

// Windows that stand for Grafana's own while an expression is a tree; no rule has such a window.
const (
	rateInterval = 34*time.Hour + 17*time.Minute + 36*time.Second + 789*time.Millisecond
	wholeRange   = 34*time.Hour + 17*time.Minute + 36*time.Second + 788*time.Millisecond
)

// print prints an expression with Grafana's windows in it.
func print(e promexpr.Expr) string {
	return strings.NewReplacer("[1d10h17m36s789ms]", "[$__rate_interval]", "[1d10h17m36s788ms]", "[$__range]").Replace(e.String())
}

// chosen are the matchers of the variables at a dashboard's head.
func chosen() []promexpr.Matcher {
	return []promexpr.Matcher{promexpr.Like("job", "$job"), promexpr.Like("instance", "$instance")}
}

// source is a signal's source, narrowed by the variables.
func source(f *slo.File, s signal.Signal) (sli.Source, error) {
	src, err := sli.SourceOf(f, s)
	src.Variable = chosen()
	if modelLabel(src.Entry) != "" && src.Name == signal.SourceEngine {
		src.Variable = append(src.Variable, promexpr.Like(modelLabel(src.Entry), "$model"))
	}
	return src, err
}

// modelLabel is the label that tells an engine's models apart; "" where it has none.
func modelLabel(e *signal.Engine) string {
	for _, m := range e.Candidates(signal.SignalRequestsRunning) {
		for _, l := range m.Labels {
			if l == "model_name" {
				return l
			}
		}
	}
	return ""
}

func rate(s *parser.VectorSelector) promexpr.Expr {
	return promexpr.Rate(promexpr.Range(s, rateInterval))
}
func last(s *parser.VectorSelector) promexpr.Expr {
	return promexpr.LastOverTime(promexpr.Range(s, wholeRange))
}

// edge is how the bucket edge at an objective's threshold may be spelled.
func edge(o slo.Objective) []string { return sli.Edge(o.Threshold.Seconds()) }
