package sli

import (
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
)

// InFlight is the number of requests in each instance of the service, running and waiting together:
// what a load test calls the concurrency.
type InFlight struct {
	Objective slo.Objective
	Source    Source
	Feed      []Feed // running and waiting at one instance

	expr promexpr.Expr
}

// NewInFlight finds the series for a capacity objective. A probe sees its own requests only, so that
// the error for it says what could answer.
func NewInFlight(f *slo.File, o slo.Objective) (InFlight, error) {
	n := InFlight{Objective: o}
	src, err := engineOf(f)
	if err != nil {
		return n, err
	}
	n.Source = src
	running, waiting := current(src.Entry.Candidates(signal.SignalRequestsRunning)), current(src.Entry.Candidates(signal.SignalRequestsWaiting))
	if src.Name == signal.Probe || len(running)+len(waiting) == 0 {
		return n, refuse(f, o, "signal", "remove its owner and action: the objective then counts in load tests only",
			"%s can't say how many requests are in the service", src.Entry.Title)
	}
	if err := requireSelector(f, o, src); err != nil {
		return n, err
	}
	for _, ms := range [][]signal.Metric{running, waiting} {
		if len(ms) == 0 {
			continue
		}
		feed := src.feed(ms[0].Term, "", map[string]string{labelInstance: "a:1"}, 0, 0)
		feed.Gauge = true
		n.Feed = append(n.Feed, feed)
		e := src.Read(ms, gaugeWindow)
		if n.expr == nil {
			n.expr = e
		} else {
			n.expr = promexpr.Add(n.expr, e)
		}
	}
	return n, nil
}

// Value is the requests in each instance.
func (n InFlight) Value() promexpr.Expr { return n.expr }
