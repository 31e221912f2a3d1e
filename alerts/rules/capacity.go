package rules

import (
	"fmt"
	"slices"
	"time"

	"firstbreach/internal/promexpr"
	"firstbreach/internal/sli"
	"firstbreach/internal/slo"
)

// capacityFor is how long an instance may hold more requests than were measured: a burst is what a
// queue is for.
const capacityFor = 5 * time.Minute

// capacity makes the alert that an instance has more requests in it than a load test showed to hold.
// Without that measured number there is none: a guess would page for nothing, or never.
func (m maker) capacity(o slo.Objective) (sli.Source, error) {
	n, err := sli.NewInFlight(m.file, o)
	if err != nil {
		return sli.Source{}, err
	}
	c := m.Capacity
	if c == nil {
		m.notef("%s: no alert until a load test has measured what holds: analyze report --run DIR --write-capacity alerts/capacity.yaml", o.Name)
		return sli.Source{}, nil
	}
	if c.Concurrency < o.MinConcurrency {
		m.notef("%s: run %s held only up to %d, less than min_concurrency: %d; the alert stands at what held", o.Name, c.Run, c.Concurrency, o.MinConcurrency)
	}
	alert := m.alert(AlertCapacity, o, Ticket, promexpr.Above(n.Value(), float64(c.Concurrency)), capacityFor, nil,
		fmt.Sprintf("%s: more requests than were measured to hold", m.file.Service),
		fmt.Sprintf("{{ $labels.instance }} has {{ $value | humanize }} requests in it, running and waiting, for %s. Run %s of %s held its objectives up to %d.",
			span(capacityFor), c.Run, c.At.UTC().Format(time.DateOnly), c.Concurrency))
	m.group(o.Name, nil, alert)
	m.valueScenarios(o, full(n.Feed, c.Concurrency), 1, capacityFor, []Alert{alert})
	return n.Source, nil
}

// full is the feed with just as many requests as hold and, broken, with one more.
func full(feed []sli.Feed, concurrency int) []sli.Feed {
	full := slices.Clone(feed)
	for i := range full {
		full[i].Healthy, full[i].Broken = 0, 0
	}
	full[0].Healthy, full[0].Broken = float64(concurrency), float64(concurrency)
	full[len(full)-1].Broken++
	return full
}
