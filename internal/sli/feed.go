package sli

import (
	"maps"
	"slices"

	"firstbreach/internal/signal"
)

// perMinute is the traffic of a Feed.
const perMinute = 60

// Feed is a series as a target would export it: what a rule test is fed with. A counter grows by
// Healthy a minute while every request is good, and by Broken while every one is bad; a gauge stands
// at Healthy and at Broken.
type Feed struct {
	Name            string
	Labels          map[string]string
	Healthy, Broken float64
	Gauge           bool
}

// feed is a series that a term's selector picks.
func (s Source) feed(t signal.Term, suffix string, more map[string]string, healthy, broken float64) Feed {
	labels := map[string]string{}
	maps.Copy(labels, s.Matchers)
	for label, values := range t.Match {
		if values[0] != "" {
			labels[label] = values[0]
		}
	}
	for label, values := range t.Except {
		if slices.Contains(values, "") {
			labels[label] = "error"
		}
	}
	maps.Copy(labels, more)
	return Feed{Name: t.Name + suffix, Labels: labels, Healthy: healthy, Broken: broken}
}

// feedShare are the series of a metric that is read as a share of requests.
func (s Source) feedShare(m signal.Metric) []Feed {
	good, bad := float64(perMinute), float64(perMinute)
	topGood := m.Reading != signal.ReadRateRemainder
	top := s.feed(m.Term, "", nil, good, 0)
	if !topGood {
		top.Healthy, top.Broken = 0, bad
	}
	list := []Feed{top}
	for _, t := range m.Of {
		switch {
		case t.Name != m.Name && topGood:
			list = append(list, s.feed(t, "", nil, 0, bad))
		case t.Name != m.Name:
			list = append(list, s.feed(t, "", nil, good, bad))
		default:
			if rest, ok := s.complement(m, t, topGood); ok {
				rest.Healthy, rest.Broken = top.Broken, top.Healthy
				list = append(list, rest)
			}
		}
	}
	return list
}

// complement is a series of the whole that the metric's own selector leaves out.
func (s Source) complement(m signal.Metric, whole signal.Term, topGood bool) (Feed, bool) {
	more := map[string]string{}
	for label := range m.Match {
		if _, also := whole.Match[label]; !also {
			more[label] = otherValue(label, topGood)
		}
	}
	f := s.feed(signal.Term{Name: whole.Name, Match: whole.Match}, "", more, 0, 0)
	return f, len(more) > 0 || len(m.Except) > 0
}

// otherValue is what an outcome label says of the requests that a selector leaves out.
func otherValue(label string, ofBad bool) string {
	switch {
	case !ofBad:
		return "ok"
	case label == "status":
		return "5xx"
	case label == "status_code":
		return "503"
	}
	return "server_error"
}
