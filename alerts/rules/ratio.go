package rules

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"

	"firstbreach/internal/burnrate"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/sli"
	"firstbreach/internal/slo"
)

// hourly is the step in which long windows are summed. Hours cut from one another without overlap
// count every request once, and cost a store of weeks little.
const hourly = time.Hour

// ratio makes the rules of a per-request objective: requests and bad requests in each window, the
// share of the one in the other, the budget, and an alert for each pair of windows.
func (m maker) ratio(o slo.Objective) (sli.Source, error) {
	r, err := sli.NewRatio(m.file, o)
	if err != nil {
		return sli.Source{}, err
	}
	m.noteRatio(o, r)
	recorded := ratioRules{maker: m, objective: o, ratio: r}
	rules := recorded.windows()
	rules = append(rules, recorded.budget()...)
	var alerts []Alert
	if o.Alerts() {
		alerts = append(recorded.burns(), recorded.notMeasured())
	}
	m.group(o.Name, rules, alerts...)
	if o.Alerts() {
		m.ratioScenarios(o, r, alerts)
	}
	return r.Source, nil
}

func (m maker) noteRatio(o slo.Objective, r sli.Ratio) {
	for _, n := range r.Notes {
		m.notef("%s: %s", o.Name, n)
	}
	if !o.Alerts() {
		m.notef("%s: recorded, no alert: it has no owner and no action", o.Name)
	}
}

// ratioRules are the rules of one per-request objective.
type ratioRules struct {
	maker
	objective slo.Objective
	ratio     sli.Ratio
}

func (r ratioRules) labels() map[string]string {
	return map[string]string{LabelService: r.file.Service, LabelSLO: r.objective.Name}
}

// recorded selects a series that these rules record.
func (r ratioRules) recorded(name string) promexpr.Expr {
	return promexpr.Select(name, promexpr.Labels(r.labels())...)
}

func (r ratioRules) record(name string, e promexpr.Expr) rulefmt.Rule {
	return rulefmt.Rule{Record: name, Expr: e.String(), Labels: r.labels()}
}

// The series that are recorded of each per-request objective.
const (
	Requests    = "slo:requests:increase"     // + window
	BadRequests = "slo:bad_requests:increase" // + window
	BadRatio    = "slo:bad_requests:ratio"    // + window
	Budget      = "slo:error_budget:ratio"    // 1 − target
	BudgetLeft  = "slo:error_budget_remaining:ratio"
	BurnRate    = "slo:burn_rate:ratio1h"
	Threshold   = "slo:threshold:seconds" // of a latency objective
	Info        = "slo:info"
)

// windows records the counts and their ratio for every window that an alert or a person looks at.
func (r ratioRules) windows() []rulefmt.Rule {
	var rules []rulefmt.Rule
	for _, w := range burnrate.Windows() {
		if w <= 6*time.Hour {
			grow := sli.IncreaseOver(w)
			rules = append(rules,
				r.record(Requests+span(w), r.ratio.Total(grow)),
				r.record(BadRequests+span(w), r.ratio.Bad(grow)))
		} else {
			rules = append(rules, r.summed(w)...)
		}
		rules = append(rules, r.record(BadRatio+span(w), promexpr.Div(
			r.recorded(BadRequests+span(w)), promexpr.Above(r.recorded(Requests+span(w)), 0))))
	}
	return rules
}

// summed adds up hours: every request of the window counts once, however unevenly they came.
func (r ratioRules) summed(w time.Duration) []rulefmt.Rule {
	var rules []rulefmt.Rule
	for _, name := range []string{Requests, BadRequests} {
		hours := promexpr.Subquery(r.recorded(name+span(hourly)), w, hourly)
		rules = append(rules, r.record(name+span(w), promexpr.SumOverTime(hours)))
	}
	return rules
}

// budget records what is left of the period's error budget, how fast it burns, and who owns it.
func (r ratioRules) budget() []rulefmt.Rule {
	period := r.file.Window
	var rules []rulefmt.Rule
	if !slices.Contains(burnrate.Windows(), period) {
		rules = r.summed(period)
	}
	left := promexpr.Sub(promexpr.Number(1), promexpr.Div(
		promexpr.Div(r.recorded(BadRequests+span(period)), promexpr.Above(r.recorded(Requests+span(period)), 0)),
		promexpr.Number(float(burnrate.Budget(r.objective.Target)))))
	burn := promexpr.Div(r.recorded(BadRatio+span(hourly)), promexpr.Number(float(burnrate.Budget(r.objective.Target))))
	rules = append(rules,
		r.record(BudgetLeft, promexpr.Round(left, 1e-6)), // a float's residue would show as −0.0000000000047 %
		r.record(BurnRate, burn),
		r.record(Budget, promexpr.Vector(float(burnrate.Budget(r.objective.Target)))))
	if r.objective.Kind == slo.Latency {
		rules = append(rules, r.record(Threshold, promexpr.Vector(r.objective.Threshold.Seconds())))
	}
	return append(rules, r.info())
}

// info carries what a dashboard shows beside the numbers. It is a series of its own, so that a new
// owner doesn't cut the history of the others.
func (r ratioRules) info() rulefmt.Rule {
	labels := r.labels()
	maps.Copy(labels, map[string]string{
		LabelLayer: string(r.objective.Layer), LabelOwner: literal(r.objective.Owner), "signal": r.objective.Signal,
		"target": r.objective.Target.Text(), "runbook": literal(r.objective.Runbook),
	})
	for name, value := range labels {
		if value == "" {
			delete(labels, name)
		}
	}
	return rulefmt.Rule{Record: Info, Expr: promexpr.Vector(1).String(), Labels: labels}
}

// burns makes one alert for each pair of windows that can fire and is worth firing.
func (r ratioRules) burns() []Alert {
	period, target := r.file.Window, r.objective.Target
	one := big.NewRat(1, 1)
	var alerts []Alert
	for _, p := range burnrate.Pairs() {
		name := fmt.Sprintf("%s: no alert over %s and %s", r.objective.Name, span(p.Long), span(p.Short))
		limit := p.Limit(period, target)
		switch {
		case p.Factor(period).Cmp(one) < 0:
			r.notef("%s: with a window of %s, a budget that burns at %s times its even rate lasts longer than the window", name, span(period), decimal(p.Factor(period)))
		case limit.Cmp(one) >= 0:
			r.notef("%s: it would need more than %s%% bad requests, which there can't be (%s × %s)",
				name, decimal(new(big.Rat).Mul(limit, big.NewRat(100, 1))), decimal(p.Factor(period)), target.BadRatio())
		default:
			alerts = append(alerts, r.burn(p))
		}
	}
	return alerts
}

// probeHold bridges the time between two requests of the slowest probe that is sent by default. It must
// stay well below the waits of recovery objectives, which count how long a page has been firing. What
// comes and goes over longer times, the Alertmanager's group_interval keeps from being told each time.
const probeHold = time.Minute

func (r ratioRules) burn(p burnrate.Pair) Alert {
	limit := p.Limit(r.file.Window, r.objective.Target)
	over := func(w time.Duration) promexpr.Expr {
		return promexpr.Above(r.recorded(BadRatio+span(w)), float(limit))
	}
	on := []string{LabelService, LabelSLO}
	e := promexpr.And(promexpr.And(over(p.Long), over(p.Short), on...), r.enough(p), on...)
	a := r.alert(AlertBurn, r.objective, severity(p), e, 0,
		map[string]string{LabelLong: span(p.Long), LabelShort: span(p.Short)},
		fmt.Sprintf("%s: %s misses its objective of %s", r.file.Service, r.objective.Name, r.objective.Target.Text()),
		fmt.Sprintf("{{ $value | humanizePercentage }} of requests were bad in the last %s, and over %s%% still are in the last %s (%s). At %s times its even rate the error budget of %s is gone in %s.",
			span(p.Long), decimal(new(big.Rat).Mul(limit, big.NewRat(100, 1))), span(p.Short), goodMeans(r.objective),
			decimal(p.Factor(r.file.Window)), span(r.file.Window), lasts(r.file.Window, p)))
	if r.ratio.Source.Name == signal.Probe {
		a.Rule.KeepFiringFor = model.Duration(probeHold)
	}
	return a
}

func severity(p burnrate.Pair) string {
	if p.Page {
		return Page
	}
	return Ticket
}

// enough is the floor under which the ratio says nothing. A probe is never muted by it: its requests
// are few by intent, and each was due; two bad ones are enough.
func (r ratioRules) enough(p burnrate.Pair) promexpr.Expr {
	if r.ratio.Source.Name == signal.Probe {
		return promexpr.Above(r.recorded(BadRequests+span(p.Long)), 1.5) // an increase of one is extrapolated to a little more
	}
	return promexpr.AtLeast(r.recorded(Requests+span(p.Long)), float64(p.Floor(r.file.Window, r.objective.Target)))
}

// lasts is how long a full budget lasts at the pair's burn rate.
func lasts(period time.Duration, p burnrate.Pair) string {
	d := new(big.Rat).Quo(big.NewRat(int64(period), 1), p.Factor(period))
	n := new(big.Int).Quo(d.Num(), d.Denom()).Int64()
	return span(time.Duration(n).Round(time.Hour))
}

// goodMeans says in words what a good request is.
func goodMeans(o slo.Objective) string {
	switch o.Kind {
	case slo.Success:
		return "good: answered in full"
	case slo.Timeouts:
		return "good: no timeout"
	}
	return fmt.Sprintf("good: %s at most %s", o.Signal, o.Threshold)
}

// unknownFor is longer than a service needs to start and answer its first request.
const unknownFor = 15 * time.Minute

// notMeasured fires where requests are seen and the objective's ratio isn't: a bucket edge was
// dropped, a metric renamed. An objective that nobody measures must not look kept.
func (r ratioRules) notMeasured() Alert {
	seen := promexpr.Equals(promexpr.MaxBy(r.ratio.Source.Up()), 1)
	e := promexpr.UnlessAny(seen, r.recorded(BadRequests+span(5*time.Minute)))
	a := r.alert(AlertUnknown, r.objective, Ticket, e, unknownFor, nil,
		fmt.Sprintf("%s: %s is not measured", r.file.Service, r.objective.Name),
		fmt.Sprintf("The %s is scraped, but the series that %s is read from aren't there%s. Until they are, the objective neither holds nor breaks.",
			r.ratio.Source.Name, r.objective.Name, missingHint(r.ratio)))
	a.Source = r.ratio.Source.Name
	return a
}

func missingHint(r sli.Ratio) string {
	if r.Histogram == "" {
		return ""
	}
	return fmt.Sprintf(": %s with a bucket edge at %s", r.Histogram, r.Objective.Threshold)
}
