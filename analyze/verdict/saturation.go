package verdict

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"firstbreach/internal/level"
)

// risen is the share of a signal's whole rise by which a higher step must lie above another to count
// as a rise.
const risen = 0.05

// Saturation says from which level a signal no longer rises with load.
type Saturation struct {
	Signal, Layer, Unit string
	At                  *level.Level // nil: see Reason
	Value               *float64     // mean there
	Reason              string
}

// saturate looks at the mean of every service and resource reading along the ladder.
func (r *Result) saturate() {
	steps := r.measuredLadder()
	names := map[string]Reading{}
	for _, s := range steps {
		for name, x := range s.Readings {
			if old, ok := names[name]; !ok || old.Mean == nil {
				names[name] = x
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		r.Saturation = append(r.Saturation, saturation(name, names[name], steps))
	}
	slices.SortStableFunc(r.Saturation, func(a, b Saturation) int { return cmp.Compare(layerOrder(a.Layer), layerOrder(b.Layer)) })
}

func layerOrder(layer string) int { return slices.Index([]string{"user", "service", layer}, layer) }

func saturation(name string, first Reading, steps []StepResult) Saturation {
	s := Saturation{Signal: name, Layer: first.Layer, Unit: first.Unit}
	var levels []level.Level
	var means []float64
	for _, step := range steps {
		if m := step.Readings[name].Mean; m != nil {
			levels, means = append(levels, step.Level()), append(means, *m)
		}
	}
	switch {
	case len(means) == 0:
		s.Reason = cmp.Or(first.Missing, "no sample in a valid round")
		return s
	case len(means) < 3:
		s.Reason = "fewer than three steps have a reading"
		return s
	}
	low, high := means[0], slices.Max(means)
	if high-low < max(0.2*math.Abs(low), LeastRise(first.Unit)) {
		s.Reason = "it does not rise with the load"
		return s
	}
	for i := range means {
		if slices.Max(means[i:])-means[i] > risen*(high-low) {
			continue
		}
		if i == len(means)-1 {
			break
		}
		s.At, s.Value = &levels[i], &means[i]
		return s
	}
	s.Reason = "it still rises at the highest step"
	return s
}

// LeastRise is the least change of a signal that means anything, in its unit.
func LeastRise(unit string) float64 {
	switch unit {
	case "ratio":
		return 0.05
	case "requests", "processes":
		return 0.5
	case "seconds":
		return 0.005
	case "bytes":
		return 16 << 20
	case "bytes_per_second":
		return 1 << 20
	case "watts", "celsius":
		return 3
	}
	return 0.1
}

// FloorOf is the least σ of a signal's normal range: with it, a rise that matters is onsetSigmas away.
func FloorOf(unit string) float64 { return LeastRise(unit) / onsetSigmas }
