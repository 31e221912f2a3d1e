package probe

import (
	"fmt"
	"time"

	"firstbreach/internal/burnrate"
	"firstbreach/internal/slo"
)

const (
	// Slowest is the greatest default interval: beyond it a short alert window of 5 minutes would
	// hold fewer than five requests, and an alert would end and begin with each of them.
	Slowest = time.Minute
	// Fastest is the least interval that is sent without a word from a person: a probe is no load.
	Fastest = 5 * time.Second
)

// Rate is a default rate with its reason.
type Rate struct {
	Every     time.Duration
	Objective string // the one that asks for the most; "" where Slowest is enough for all
	Reason    string // a sentence for a person
	Short     bool   // not enough for Objective: Fastest stands in its way
}

// DefaultRate is the lowest rate at which the alerts of every per-request objective can decide: in
// the long window of each pair that can fire, there must be so many requests that one bad one among
// them stays below the pair's limit (burnrate.Pair.Floor). With fewer, one lost request would either
// page or have to be ignored.
func DefaultRate(f *slo.File) Rate {
	r := Rate{Every: Slowest}
	var need int64
	var window time.Duration
	for _, o := range f.PerRequest() {
		for _, p := range burnrate.Pairs() {
			if !p.Fires(f.Window, o.Target) {
				continue
			}
			n := p.Floor(f.Window, o.Target)
			if every := (p.Long / time.Duration(n)).Truncate(time.Millisecond); every < r.Every {
				r.Every, r.Objective, need, window = every, o.Name, n, p.Long
			}
		}
	}
	switch {
	case r.Objective == "":
		r.Reason = fmt.Sprintf("one request every %s: enough for the alerts of every objective", r.Every)
	case r.Every < Fastest:
		r.Reason = fmt.Sprintf("one request every %s, the most that is sent unasked; the alert on %s needs %d in %s, one every %s: name --every to send that, or lower the target",
			Fastest, r.Objective, need, window, r.Every)
		r.Every, r.Short = Fastest, true
	default:
		r.Every = r.Every.Truncate(100 * time.Millisecond)
		r.Reason = fmt.Sprintf("one request every %s: the alert on %s needs %d in %s to tell one lost request from a breach", r.Every, r.Objective, need, window)
	}
	return r
}
