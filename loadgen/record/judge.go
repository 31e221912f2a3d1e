package record

import (
	"time"

	"firstbreach/internal/slo"
	"firstbreach/loadgen/wire"
)

// judge decides of one request whether it met every per-request user objective at once, and for
// which latency objectives an ok request has no value.
type judge struct {
	objectives []slo.Objective // the per-request user objectives, in the order of the file
	held       []slo.Objective // those of them that the requests are held to: all, or those of their class
}

func newJudge(all, held []slo.Objective) judge { return judge{perRequest(all), perRequest(held)} }

func perRequest(objectives []slo.Objective) (out []slo.Objective) {
	for _, o := range objectives {
		if o.Layer == slo.User && o.Kind.PerRequest() {
			out = append(out, o)
		}
	}
	return out
}

// latencyNames are the names of the latency objectives, in the order of the file.
func (j judge) latencyNames() []string {
	var names []string
	for _, o := range j.objectives {
		if o.Kind == slo.Latency {
			names = append(names, o.Name)
		}
	}
	return names
}

// good reports whether the request counts as goodput: an ok answer that is within the threshold
// of every latency objective for which it has a value.
func (j judge) good(r wire.Result) bool {
	if r.Outcome != wire.OK {
		return false
	}
	for _, o := range j.held {
		if o.Kind != slo.Latency {
			continue
		}
		if v := valueOf(o.Signal, r); v != nil && *v > o.Threshold {
			return false
		}
	}
	return true
}

// undefined names the latency objectives for which an ok request has no value.
func (j judge) undefined(r wire.Result) []string {
	if r.Outcome != wire.OK {
		return nil
	}
	var names []string
	for _, o := range j.objectives {
		if o.Kind == slo.Latency && valueOf(o.Signal, r) == nil {
			names = append(names, o.Name)
		}
	}
	return names
}

// late counts, for each latency objective, the values of an ok request that met the threshold if its
// chunks came as early as they can have, and missed it if they came as late: the client read too late
// to tell.
func (j judge) late(r wire.Result) map[string]int {
	if r.Outcome != wire.OK {
		return nil
	}
	var counts map[string]int
	for _, o := range j.objectives {
		if o.Kind != slo.Latency {
			continue
		}
		if n := lateValues(o, r); n > 0 {
			if counts == nil {
				counts = map[string]int{}
			}
			counts[o.Name] = n
		}
	}
	return counts
}

// lateValues is at most 1 but for the inter-chunk latency, of which a request has many.
func lateValues(o slo.Objective, r wire.Result) int {
	var latest, earliest *time.Duration
	switch o.Signal {
	case slo.SignalTTFT:
		latest, earliest = r.TTFT, r.TTFTMin
	case slo.SignalDuration:
		latest, earliest = r.E2E, r.E2EMin
	case slo.SignalTPOT:
		latest, earliest = r.TPOT, r.TPOTMin
	case slo.SignalICL:
		n := 0
		for i, shortest := range r.GapsMin {
			if shortest <= o.Threshold && r.Gaps[i] > o.Threshold {
				n++
			}
		}
		return n
	}
	if latest != nil && earliest != nil && *earliest <= o.Threshold && *latest > o.Threshold {
		return 1
	}
	return 0
}

// valueOf is the request's value of a latency signal; for the inter-chunk latency, of which a
// request has many, the greatest.
func valueOf(signal string, r wire.Result) *time.Duration {
	switch signal {
	case slo.SignalTTFT:
		return r.TTFT
	case slo.SignalDuration:
		return r.E2E
	case slo.SignalTPOT:
		return r.TPOT
	case slo.SignalICL:
		if len(r.Gaps) == 0 {
			return nil
		}
		longest := r.Gaps[0]
		for _, g := range r.Gaps[1:] {
			longest = max(longest, g)
		}
		return &longest
	default:
		return nil
	}
}
