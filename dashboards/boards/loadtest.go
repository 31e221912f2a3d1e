package boards

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/dashboards/board"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
)

const suffixBucket = "_bucket"

// LoadTest is the dashboard of a service's load tests: the ladder, where it first went over an
// allowance, the run over time, and what service and machines did meanwhile.
func LoadTest(f *slo.File) (board.Board, error) {
	b := board.Board{
		UID: f.LoadTestUID(), Title: "Load test: " + f.Service,
		Description: "One run of loadgen. Shares are counts; the verdict with its error rate is in the run's report.",
		From:        "now-1h",
		Variables: []board.Variable{
			{Name: "run", Label: "Run", Query: fmt.Sprintf("label_values(%s, run)", signal.LoadgenRunInfo), Single: true},
			{Name: "job", Label: "Job", Query: "label_values(up, job)"},
			{Name: "instance", Label: "Instance", Query: `label_values(up{job=~"$job"}, instance)`},
		},
	}
	entry, err := signal.Lookup(f.Engine)
	if err != nil {
		return b, err
	}
	if modelLabel(entry) != "" {
		b.Variables = append(b.Variables, serviceVariables(f)[2])
	}
	mark := steps()
	mark.Expr = promexpr.Mul(own(signal.LoadgenStepStart, promexpr.Eq(signal.LabelWindow, measure)), promexpr.Number(1000)).String()
	b.Annotations = []board.Annotation{mark}
	b.Rows = []board.Row{
		{Title: "The ladder", Panels: ladderPanels(f)},
		{Title: "The run over time", Panels: runPanels(f)},
	}
	for _, layer := range []string{signal.LayerService, signal.LayerResource} {
		panels, err := signalPanels(f, layer)
		if err != nil {
			return b, err
		}
		if len(panels) > 0 {
			b.Rows = append(b.Rows, board.Row{Title: title(layer), Panels: panels})
		}
	}
	b.Rows = append(b.Rows, board.Row{Title: "The client itself", Panels: clientPanels()})
	return b, nil
}

// measure is the window label of the requests that count.
const measure = "measure"

// own selects a series of loadgen in the chosen run.
func own(name string, ms ...promexpr.Matcher) *parser.VectorSelector {
	return promexpr.Select(name, append([]promexpr.Matcher{promexpr.Like(signal.LabelRun, "$run"), promexpr.Like("job", "$job"), promexpr.Like("instance", "$instance")}, ms...)...)
}

// ramp selects what was measured on the ladder.
func ramp(name string, ms ...promexpr.Matcher) *parser.VectorSelector {
	return own(name, append([]promexpr.Matcher{promexpr.Eq(signal.LabelPhase, "ramp"), promexpr.Eq(signal.LabelWindow, measure)}, ms...)...)
}

// level are the labels of a step of the ladder: one of the two is there.
func level() []string { return []string{signal.LabelConcurrency, "rate"} }

// perLevel adds the last values of counters up over the rounds of each level. A step's series end
// with it, so that its last value is its total.
func perLevel(s *parser.VectorSelector, more ...string) promexpr.Expr {
	return promexpr.SumBy(last(s), append(level(), more...)...)
}

func counted() promexpr.Expr {
	return perLevel(ramp(signal.LoadgenRequests, promexpr.NotEq(signal.LabelOutcome, "aborted")))
}

func failed() promexpr.Expr {
	return perLevel(ramp(signal.LoadgenRequests, promexpr.NoneOf(signal.LabelOutcome, "aborted", "ok")))
}

// badShare is an objective's share of bad requests for each level, with the formula of the verdict.
func badShare(o slo.Objective) promexpr.Expr {
	switch o.Kind {
	case slo.Success:
		return promexpr.Div(failed(), promexpr.Above(counted(), 0))
	case slo.Timeouts:
		return promexpr.Div(perLevel(ramp(signal.LoadgenRequests, promexpr.Eq(signal.LabelOutcome, "timeout"))), promexpr.Above(counted(), 0))
	}
	metric := histogramOf(o.Signal)
	observed := perLevel(ramp(metric + "_count"))
	inTime := perLevel(ramp(metric+suffixBucket, promexpr.OneOf("le", edge(o)...)))
	return promexpr.Div(
		promexpr.Add(promexpr.Sub(observed, inTime), failed()),
		promexpr.Above(promexpr.Add(observed, failed()), 0))
}

// histogramOf is the load generator's name for a latency, as the catalogue has it.
func histogramOf(name string) string {
	entry, err := signal.Lookup(signal.Probe)
	if err != nil {
		return "" // the catalogue has the probe
	}
	return entry.Candidates(name)[0].Name
}

// ladderPanels: one line a level, worst shares in red, and the lowest level that has one.
func ladderPanels(f *slo.File) []board.Panel {
	table := board.Panel{
		Kind: board.Table, Title: "The ladder", Unit: board.NoUnit, Width: 18, Height: 9,
		Description: "All rounds of a level together. A red share is over what its objective allows; whether that is a breach or chance is for the report to say.",
		NoValue:     "No run is chosen, or none in this time range",
		Columns:     []board.Column{{Field: signal.LabelConcurrency, Title: "Concurrency"}, {Field: "rate", Title: "Requests per second"}},
	}
	add := func(e promexpr.Expr, c board.Column) {
		c.Field = "Value #" + string(rune('A'+len(table.Queries)))
		table.Queries = append(table.Queries, board.Query{Expr: print(e), Instant: true})
		table.Columns = append(table.Columns, c)
	}
	add(counted(), board.Column{Title: "Requests", Unit: board.NoUnit})
	var over promexpr.Expr
	for _, o := range f.PerRequest() {
		budget := 1 - o.Target.Float()
		share := badShare(o)
		add(share, board.Column{Title: "Bad: " + o.Name, Unit: board.Share, Bound: &board.Bound{Value: budget}})
		if above := promexpr.Above(share, budget); over == nil {
			over = above
		} else {
			over = promexpr.Or(over, above)
		}
	}
	ttft := promexpr.HistogramQuantile(0.95, perLevel(ramp(signal.LoadgenTTFT+suffixBucket), "le"))
	add(ttft, board.Column{Title: "TTFT P95", Unit: board.Seconds})
	// The label holds the level as text; the greatest number in flight is the same as a number.
	inFlight := promexpr.MaxBy(promexpr.MaxOverTime(promexpr.Range(own(signal.LoadgenInFlight, promexpr.Eq(signal.LabelPhase, "ramp")), wholeRange)), level()...)
	first := promexpr.MinBy(promexpr.And(inFlight, over))
	return []board.Panel{table, {
		Kind: board.Number, Title: "First level over an allowance", Unit: board.NoUnit, Width: 6, Height: 9,
		Description: "The lowest number in flight at which an objective's counted share of bad requests is over its allowance. The report says whether it is the first breach, in how many rounds, and with which certainty.",
		Queries:     []board.Query{{Expr: print(first), Instant: true}}, NoValue: "None in this run", Bound: &board.Bound{Value: 0},
	}}
}

// runPanels draw the run as it went.
func runPanels(f *slo.File) []board.Panel {
	panels := []board.Panel{
		{Title: "Requests in flight", Description: "What the client kept in the service: the concurrency of the step.", Unit: board.Short, Width: 8, Height: 7,
			Queries: []board.Query{{Expr: promexpr.SumBy(own(signal.LoadgenInFlight), signal.LabelPhase).String(), Legend: "{{phase}}"}}},
		{Title: "Requests by outcome", Description: "Ended requests a second.", Unit: board.PerSec, Width: 8, Height: 7, Stacked: true,
			Queries: []board.Query{{Expr: print(promexpr.Above(promexpr.SumBy(rate(own(signal.LoadgenRequests)), signal.LabelOutcome), 0)), Legend: "{{outcome}}"}}},
		{Title: "Tokens", Description: "Output tokens a second, as the server counted them.", Unit: board.Short, Width: 8, Height: 7,
			Queries: []board.Query{{Expr: print(promexpr.SumBy(rate(own(signal.LoadgenOutputTokens)))), Legend: "output tokens"}}},
	}
	drawn := map[string]bool{}
	for _, o := range f.PerRequest() {
		if o.Kind != slo.Latency || drawn[o.Signal] {
			continue
		}
		drawn[o.Signal] = true
		p := board.Panel{Title: title(o.Signal), Unit: board.Seconds, Width: 8, Height: 7, Min: number(0),
			Description: "As the client measured it. The line is the threshold of " + o.Name + ".", Bound: &board.Bound{Value: o.Threshold.Seconds()}}
		for _, q := range []float64{0.5, 0.95, 0.99} {
			e := promexpr.HistogramQuantile(q, promexpr.SumBy(rate(own(histogramOf(o.Signal)+suffixBucket)), "le"))
			p.Queries = append(p.Queries, board.Query{Expr: print(e), Legend: fmt.Sprintf("P%g", q*100)})
		}
		panels = append(panels, p)
	}
	heat := promexpr.SumBy(rate(own(signal.LoadgenTTFT+suffixBucket)), "le")
	return append(panels, board.Panel{Kind: board.Heatmap, Title: "Time to first token, every request", Description: "Two bands are two kinds of request: served at once, and queued.",
		Unit: board.Seconds, Width: 24, Height: 8, Queries: []board.Query{{Expr: print(heat), Legend: "{{le}}"}}})
}

// clientPanels tell whether the client could have been the slow part.
func clientPanels() []board.Panel {
	delay := promexpr.HistogramQuantile(0.99, promexpr.SumBy(rate(own(signal.LoadgenDispatchDelay+suffixBucket)), "le"))
	limited := promexpr.MaxBy(own(signal.LoadgenClientLimited), signal.LabelReason)
	return []board.Panel{
		{Title: "Dispatch delay, P99", Description: "How late the client itself sent. Far below the service's latency, or the run is void.", Unit: board.Seconds, Width: 12, Height: 7, Min: number(0),
			Queries: []board.Query{{Expr: print(delay), Legend: "P99"}}},
		{Kind: board.States, Title: "Client limited", Description: "1 where a step can't be judged because the client was the bottleneck, by reason.", Unit: board.NoUnit, Width: 12, Height: 7,
			Queries: []board.Query{{Expr: limited.String(), Legend: "{{reason}}"}}, Bound: &board.Bound{Value: 1}, NoValue: "No step was limited by the client"},
	}
}
