package query

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/prometheus/common/model"

	"firstbreach/analyze/verdict"
)

// line is one series of values over time.
type line struct {
	name   string
	points []verdict.Point // rising in time
}

// points turns samples into points; NaN is no value.
func points(samples []model.SamplePair) []verdict.Point {
	out := make([]verdict.Point, 0, len(samples))
	for _, s := range samples {
		if v := float64(s.Value); !math.IsNaN(v) {
			out = append(out, verdict.Point{T: float64(s.Timestamp) / 1000, V: v})
		}
	}
	return out
}

// window returns the range of indices whose times lie in [from, to].
func window(ps []verdict.Point, from, to float64) (i, j int) {
	i = sort.Search(len(ps), func(n int) bool { return ps[n].T >= from })
	j = sort.Search(len(ps), func(n int) bool { return ps[n].T > to })
	return i, max(i, j)
}

// track is one series of a metric. A counter's points never fall: what a reset took away is
// added again.
type track struct {
	labels model.Metric
	key    string // tells the series of one metric apart, copies of it aside
	points []verdict.Point
	last   int // where before looked last
}

// tracks turns a matrix into tracks by metric name. Copies of one series, as the replicas of a
// Prometheus keep them, are taken once: the one with the most samples.
func tracks(m model.Matrix) map[string][]track {
	type id struct{ name, key string }
	best := map[id]*model.SampleStream{}
	for _, s := range m {
		k := id{string(s.Metric[model.MetricNameLabel]), identity(s.Metric)}
		old := best[k]
		if old == nil || len(s.Values) > len(old.Values) ||
			len(s.Values) == len(old.Values) && s.Metric.String() < old.Metric.String() {
			best[k] = s
		}
	}
	out := map[string][]track{}
	for k, s := range best {
		out[k.name] = append(out[k.name], track{labels: s.Metric, key: k.key, points: points(s.Values)})
	}
	for _, ts := range out {
		slices.SortFunc(ts, func(a, b track) int {
			if a.key < b.key {
				return -1
			}
			return 1
		})
	}
	return out
}

// identity is a series' labels without its name and without those that tell copies apart.
func identity(m model.Metric) string {
	own := m.Clone()
	delete(own, model.MetricNameLabel)
	for _, label := range replicaLabels() {
		delete(own, model.LabelName(label))
	}
	return own.String()
}

// unwrapped is a counter's track with its resets undone.
func (t track) unwrapped() track {
	ps := slices.Clone(t.points)
	lost := 0.0
	for i := 1; i < len(ps); i++ {
		if t.points[i].V < t.points[i-1].V {
			lost += t.points[i-1].V
		}
		ps[i].V += lost
	}
	t.points = ps
	return t
}

// before is the index of the newest point at or before x; −1 when there is none. Looking up times in
// rising order is cheap.
func (t *track) before(x float64) int {
	i := t.last
	if i >= len(t.points) || t.points[i].T > x {
		i = 0
	}
	for steps := 0; i < len(t.points) && t.points[i].T <= x; i++ {
		if steps++; steps > 4 {
			i += sort.Search(len(t.points)-i, func(n int) bool { return t.points[i+n].T > x })
			break
		}
	}
	t.last = max(i-1, 0)
	return i - 1
}

// at is the newest value at or before x that is not older than stale.
func (t *track) at(x, stale float64) (float64, bool) {
	i := t.before(x)
	if i < 0 || x-t.points[i].T > stale {
		return 0, false
	}
	return t.points[i].V, true
}

// grown is by how much an unwrapped counter grew between two times; ok is false when it wasn't
// there between them.
func (t *track) grown(x0, x1 float64) (float64, bool) {
	n := len(t.points)
	if n == 0 || t.points[0].T > x1 || t.points[n-1].T < x0 {
		return 0, false
	}
	from := t.points[max(t.before(x0), 0)].V
	return t.points[t.before(x1)].V - from, true
}

// gap is the median time between two samples of the tracks, in seconds; 0 when there are none.
func gap(ts []*track) float64 {
	var gaps []float64
	for _, t := range ts {
		for i := 1; i < len(t.points); i++ {
			gaps = append(gaps, t.points[i].T-t.points[i-1].T)
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// grid is the times of the scrapes: those of the longest track, and of the others where that one
// has none yet or no more.
func grid(ts []*track) []float64 {
	var longest []verdict.Point
	for _, t := range ts {
		if len(t.points) > len(longest) {
			longest = t.points
		}
	}
	if len(longest) == 0 {
		return nil
	}
	times := make([]float64, 0, len(longest))
	for _, p := range longest {
		times = append(times, p.T)
	}
	first, last := times[0], times[len(times)-1]
	for _, t := range ts {
		for _, p := range t.points {
			if p.T < first || p.T > last {
				times = append(times, p.T)
			}
		}
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// seconds turns a number of seconds into a duration of whole milliseconds.
func seconds(s float64) time.Duration {
	return time.Duration(math.Round(s*1000)) * time.Millisecond
}
