package boards

import (
	"firstbreach/dashboards/board"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
)

// signalPanels draws every signal of a layer that the file's sources have. Where there is an
// objective on one, its bound is a line.
func signalPanels(f *slo.File, layer string) ([]board.Panel, error) {
	var panels []board.Panel
	for _, s := range signal.Signals() {
		if s.Layer != layer {
			continue
		}
		src, err := source(f, s)
		if err != nil {
			return nil, err
		}
		e, ok := src.Reading(s.Name, rateInterval)
		if !ok || len(src.Matchers) == 0 {
			continue
		}
		p := board.Panel{Title: title(s.Name), Description: sentence(s.Help), Unit: unit(s.Unit), Width: 8, Height: 7,
			Queries: []board.Query{{Expr: print(e), Legend: "{{instance}}"}}, NoValue: absence(src.Entry, s)}
		p.Bound = boundOf(f, s.Name)
		if s.Unit == signal.UnitRatio {
			p.Min, p.Max = number(0), number(1)
		}
		panels = append(panels, p)
	}
	return panels, nil
}

// absence says why a panel may be empty though all is well.
func absence(e *signal.Engine, s signal.Signal) string {
	m := e.Candidates(s.Name)[0]
	switch {
	case s.Source == signal.SourceGPU:
		return "No GPU is seen by an exporter"
	case m.Name == signal.LoadgenQueueWait:
		return "The service's answers do not tell how long a request waited"
	case m.Optional:
		return "This engine does not export it by default"
	case m.Reading == signal.ReadMean || m.Reading == signal.ReadRateRatio:
		return "No requests"
	}
	return ""
}

// boundOf is the limit of the first gauge objective on a signal.
func boundOf(f *slo.File, name string) *board.Bound {
	for _, o := range f.Objectives {
		if o.Kind != slo.Gauge || o.Signal != name {
			continue
		}
		if o.Max != nil {
			return &board.Bound{Value: *o.Max}
		}
		return &board.Bound{Value: *o.Min, Below: true}
	}
	return nil
}

// expressionPanels draws the objectives of a layer that are PromQL of their own.
func expressionPanels(f *slo.File, layer slo.Layer) ([]board.Panel, error) {
	var panels []board.Panel
	for _, o := range f.Objectives {
		if o.Kind != slo.Expression || o.Layer != layer {
			continue
		}
		e, err := promexpr.ParseVector(o.PromQL)
		if err != nil {
			return nil, err
		}
		p := board.Panel{Title: o.Name, Description: "An objective with PromQL of its own. " + o.Action, Unit: board.NoUnit, Width: 8, Height: 7,
			Queries: []board.Query{{Expr: e.String(), Legend: o.Name}}, NoValue: "The expression gives nothing"}
		if o.Max != nil {
			p.Bound = &board.Bound{Value: *o.Max}
		} else {
			p.Bound = &board.Bound{Value: *o.Min, Below: true}
		}
		panels = append(panels, p)
	}
	return panels, nil
}

// unit is Grafana's name for a signal's unit.
func unit(u string) string {
	switch u {
	case signal.UnitSeconds:
		return board.Seconds
	case signal.UnitRatio:
		return board.Share
	case signal.UnitBytes:
		return board.Bytes
	case signal.UnitBytesPerSecond:
		return board.BytesPS
	case signal.UnitRequestsPerSecond:
		return board.PerSec
	case signal.UnitPerSecond:
		return board.OpsPS
	case signal.UnitWatts:
		return board.Watts
	case signal.UnitCelsius:
		return board.Celsius
	}
	return board.Short
}

func number(v float64) *float64 { return &v }
