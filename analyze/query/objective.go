package query

import (
	"firstbreach/analyze/verdict"
	"firstbreach/internal/slo"
)

// objectives turns the SLO file's objectives into what the judge needs of them.
func objectives(f *slo.File) []verdict.Objective {
	out := make([]verdict.Objective, len(f.Objectives))
	for i, o := range f.Objectives {
		out[i] = verdict.Objective{
			Name: o.Name, Layer: string(o.Layer), Kind: kindName(o.Kind), Signal: o.Signal,
			Threshold: o.Threshold.Seconds(), Target: o.Target.Ratio(), TargetText: o.Target.Text(),
			Min: o.Min, Max: o.Max, MinConcurrency: o.MinConcurrency, Within: o.Within.Seconds(),
			Owner: o.Owner, Action: o.Action, Runbook: o.Runbook,
		}
	}
	return out
}

func kindName(k slo.Kind) string {
	switch k {
	case slo.Latency:
		return "latency"
	case slo.Success:
		return "success"
	case slo.Timeouts:
		return "timeouts"
	case slo.Capacity:
		return "capacity"
	case slo.Recovery:
		return "recovery"
	case slo.Gauge:
		return "gauge"
	case slo.Expression:
		return "expression"
	}
	return ""
}
