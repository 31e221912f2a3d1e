package boards

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/alerts/rules"
	"firstbreach/dashboards/board"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/sli"
	"firstbreach/internal/slo"
)

// Service is the dashboard of a service in production. Its rows are read from the top: what users
// feel, what the service says of itself, what the machine does. The error is a *strictyaml.Error that
// lists every objective whose share of good requests no series gives exactly: its panel would stay empty.
func Service(f *slo.File) (board.Board, error) {
	b := board.Board{
		UID: f.DashboardUID(), Title: "SLOs: " + f.Service,
		Description: "Objectives of " + f.Service + ", their budgets and owners; then what the service and its machines say. Needs the rules that alerts generates from the same SLO file.",
		From:        "now-6h",
		Variables:   serviceVariables(f),
		Annotations: []board.Annotation{firing(f), steps()},
	}
	engine, err := source(f, signal.Signal{Source: signal.SourceEngine})
	if err != nil {
		return b, err
	}
	ratios, err := sli.Ratios(f)
	if err != nil {
		return b, err
	}
	b.Rows = []board.Row{
		{Title: "Objectives", Panels: objectivePanels(f)},
		{Title: "User: share of bad requests", Panels: sharePanels(f)},
	}
	if latency := latencyPanels(ratios, engine); len(latency) > 0 {
		b.Rows = append(b.Rows, board.Row{Title: "User: latency", Panels: latency})
	}
	for _, layer := range []slo.Layer{slo.Service, slo.Resource} {
		panels, err := signalPanels(f, string(layer))
		if err != nil {
			return b, err
		}
		more, err := expressionPanels(f, layer)
		if err != nil {
			return b, err
		}
		if panels = append(panels, more...); len(panels) > 0 {
			b.Rows = append(b.Rows, board.Row{Title: title(string(layer)), Panels: panels})
		}
	}
	b.Rows = append(b.Rows, board.Row{Title: "Alerts and scrapes", Panels: healthPanels(f)})
	return b, nil
}

// serviceVariables narrow the panels that read the targets themselves.
func serviceVariables(f *slo.File) []board.Variable {
	vs := []board.Variable{
		{Name: "job", Label: "Job", Query: "label_values(up, job)"},
		{Name: "instance", Label: "Instance", Query: `label_values(up{job=~"$job"}, instance)`},
	}
	entry, err := signal.Lookup(f.Engine)
	if err == nil && modelLabel(entry) != "" {
		// Of a metric that only engines have: other exporters have a label model_name as well.
		vs = append(vs, board.Variable{Name: "model", Label: "Model", AllValue: ".*",
			Query: fmt.Sprintf(`label_values(%s{job=~"$job"}, %s)`, entry.Candidates(signal.SignalRequestsRunning)[0].Name, modelLabel(entry))})
	}
	return append(vs, board.Variable{Name: "slo", Label: "Objective", Query: fmt.Sprintf("label_values(%s, slo)", recorded(f, rules.Info))})
}

// recorded is a series that the rules record of this service, for the objectives that are chosen.
func recorded(f *slo.File, name string, ms ...promexpr.Matcher) *parser.VectorSelector {
	return promexpr.Select(name, append([]promexpr.Matcher{promexpr.Eq(rules.LabelService, f.Service)}, ms...)...)
}

func chosenSLO() promexpr.Matcher { return promexpr.Like(rules.LabelSLO, "$slo") }

func firing(f *slo.File) board.Annotation {
	e := promexpr.Select("ALERTS", promexpr.Eq("alertstate", "firing"), promexpr.Eq(rules.LabelService, f.Service))
	return board.Annotation{Name: "Alerts", Expr: e.String(), Title: "{{alertname}} {{slo}}", Text: "{{severity}}, owner {{owner}}", Tags: "severity,owner", Color: "red"}
}

// steps marks the steps of load tests, so that one in production's graphs explains itself.
func steps() board.Annotation {
	e := promexpr.Mul(promexpr.Select(signal.LoadgenStepStart, promexpr.Eq(signal.LabelWindow, "measure")), promexpr.Number(1000))
	return board.Annotation{Name: "Load test steps", Expr: e.String(), Title: "{{phase}} {{concurrency}}{{rate}}", Text: "run {{run}}, round {{round}}", Tags: "run,phase", Color: "blue", ValueIsTime: true}
}

func objectivePanels(f *slo.File) []board.Panel {
	instant := func(e promexpr.Expr) board.Query { return board.Query{Expr: e.String(), Instant: true} }
	return []board.Panel{
		{
			Kind: board.Table, Title: "Objectives", Description: "One line for each objective. Budget left is that of the whole window; a burn rate above 1 spends it before the window is over.",
			Unit: board.NoUnit, Width: 24, Height: 8,
			Queries: []board.Query{
				instant(recorded(f, rules.Info, chosenSLO())),
				instant(promexpr.Sub(promexpr.Number(1), recorded(f, rules.BadRatio+"1h", chosenSLO()))),
				instant(recorded(f, rules.BudgetLeft, chosenSLO())),
				instant(recorded(f, rules.BurnRate, chosenSLO())),
			},
			NoValue: "Prometheus has not evaluated the generated rules yet",
			Columns: []board.Column{
				{Field: rules.LabelSLO, Title: "Objective"},
				{Field: "target", Title: "Target"},
				{Field: "Value #B", Title: "Good, last hour", Unit: board.Share},
				{Field: "Value #C", Title: "Budget left", Unit: board.Share, Bound: &board.Bound{Value: 0, Below: true}},
				{Field: "Value #D", Title: "Burn rate, last hour", Unit: board.NoUnit, Bound: &board.Bound{Value: 1}},
				{Field: rules.LabelOwner, Title: "Owner", Wide: true},
				{Field: "runbook", Title: "Runbook", Link: "${__value.raw}", Wide: true},
			},
		},
		{
			Title: "Budget left", Description: "Share of the window's error budget that is left. Below 0 the objective is missed.", Unit: board.Share,
			Width: 12, Height: 7, Bound: &board.Bound{Value: 0, Below: true}, Max: number(1),
			Queries: []board.Query{{Expr: recorded(f, rules.BudgetLeft, chosenSLO()).String(), Legend: "{{slo}}"}},
			NoValue: "The rules need an hour of data",
		},
		{
			Title: "Burn rate", Description: "How many times faster than evenly the budget is spent, over the last hour. At 14.4 a month's budget is gone in two days.", Unit: board.NoUnit,
			Width: 12, Height: 7, Bound: &board.Bound{Value: 1}, Min: number(0),
			Queries: []board.Query{{Expr: recorded(f, rules.BurnRate, chosenSLO()).String(), Legend: "{{slo}}"}},
			NoValue: "No requests in the last hour",
		},
	}
}

// sharePanels draws each objective's bad share against its budget.
func sharePanels(f *slo.File) []board.Panel {
	var panels []board.Panel
	for _, o := range f.PerRequest() {
		this := promexpr.Eq(rules.LabelSLO, o.Name)
		budget := 1 - o.Target.Float()
		panels = append(panels, board.Panel{
			Title: fmt.Sprintf("%s: %s good", o.Name, o.Target.Text()), Unit: board.Share, Width: 8, Height: 7, Min: number(0),
			Description: "Share of bad requests: " + badMeans(o) + ". The line is what the objective allows. " + o.Action,
			Bound:       &board.Bound{Value: budget},
			Queries: []board.Query{
				{Expr: recorded(f, rules.BadRatio+"5m", this).String(), Legend: "last 5m"},
				{Expr: recorded(f, rules.BadRatio+"1h", this).String(), Legend: "last 1h"},
			},
			NoValue: noShare(f, o),
		})
	}
	return panels
}

// noShare says why an objective may have no share of bad requests.
func noShare(f *slo.File, o slo.Objective) string {
	ratio, err := sli.NewRatio(f, o)
	if err != nil {
		return "The rules refuse this objective: run alerts to see why"
	}
	if m := ratio.Source.Entry.Candidates(o.Signal)[0]; m.Optional {
		return "No requests, or the service does not export " + m.Name
	}
	return "No requests"
}

func badMeans(o slo.Objective) string {
	switch o.Kind {
	case slo.Success:
		return "not answered in full"
	case slo.Timeouts:
		return "timed out"
	}
	return fmt.Sprintf("over %s, or failed", o.Threshold)
}

// latencyPanels draws quantiles of every latency with an objective: for reading, since an objective
// is a share of requests. Its threshold is the line.
func latencyPanels(ratios []sli.Ratio, engine sli.Source) []board.Panel {
	var panels []board.Panel
	for _, ratio := range ratios {
		o, src := ratio.Objective, ratio.Source
		if o.Kind != slo.Latency {
			continue
		}
		src.Variable = engine.Variable
		if src.Name == signal.Probe {
			src.Variable = chosen()
		}
		p := board.Panel{Title: title(o.Signal), Unit: board.Seconds, Width: 8, Height: 7, Min: number(0),
			Description: "Quantiles as the histogram's buckets allow them, to read and not to judge by. The line is the threshold of " + o.Name + ".",
			Bound:       &board.Bound{Value: o.Threshold.Seconds()}, NoValue: "No requests"}
		for _, q := range []float64{0.5, 0.95, 0.99} {
			if e, ok := src.Quantile(o.Signal, q, rateInterval); ok {
				p.Queries = append(p.Queries, board.Query{Expr: print(e), Legend: fmt.Sprintf("P%g", q*100)})
			}
		}
		if len(p.Queries) > 0 {
			panels = append(panels, p)
		}
	}
	return panels
}

func healthPanels(f *slo.File) []board.Panel {
	alerts := promexpr.SumBy(promexpr.Select("ALERTS", promexpr.Eq("alertstate", "firing"), promexpr.Eq(rules.LabelService, f.Service)), "alertname", "slo")
	up := promexpr.MinBy(promexpr.Select("up", chosen()...), "job", "instance")
	return []board.Panel{
		{Kind: board.States, Title: "Firing alerts", Description: "When each alert of this service fired.", Unit: board.NoUnit, Width: 12, Height: 8,
			Queries: []board.Query{{Expr: alerts.String(), Legend: "{{alertname}} {{slo}}"}}, Bound: &board.Bound{Value: 1}, NoValue: "No alert has fired"},
		{Kind: board.States, Title: "Scrapes", Description: "1 while Prometheus reaches the target. What is read from one that it doesn't reach is missing above.", Unit: board.NoUnit, Width: 12, Height: 8,
			Queries: []board.Query{{Expr: up.String(), Legend: "{{job}} {{instance}}"}}, Bound: &board.Bound{Value: 1, Below: true}},
	}
}
