package level

import (
	"math"
	"slices"
)

// The forms of a Curve.
const (
	Square = "square" // half a period low, half a period high
	Spike  = "spike"  // low, but for one stretch
	Sine   = "sine"   // from low to high and back in a period
)

// Curve is a load that changes over time. Times are in seconds since it began; Low and High are in
// requests in flight, or in requests per second where PerSecond says so.
type Curve struct {
	Shape     string  `json:"shape"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	PerSecond bool    `json:"per_second,omitempty"`
	Period    float64 `json:"period_s,omitempty"` // of square and sine
	At        float64 `json:"at_s,omitempty"`     // of a spike: when it begins
	For       float64 `json:"for_s,omitempty"`    // of a spike: how long it lasts
}

// Levels are the lowest and the highest load.
func (c Curve) Levels() (low, high Level) {
	if c.PerSecond {
		return Level{Rate: c.Low}, Level{Rate: c.High}
	}
	return Level{Concurrency: int(c.Low)}, Level{Concurrency: int(c.High)}
}

// Value is the load at a time; before the curve begins it is low.
func (c Curve) Value(t float64) float64 {
	high := false
	switch {
	case t < 0:
	case c.Shape == Sine:
		return c.Low + (c.High-c.Low)*(1-math.Cos(2*math.Pi*t/c.Period))/2
	case c.Shape == Square:
		high = math.Mod(t, c.Period) >= c.Period/2
	default:
		high = t >= c.At && t < c.At+c.For
	}
	if high {
		return c.High
	}
	return c.Low
}

// Slots is the load at a time as a whole number of requests in flight.
func (c Curve) Slots(t float64) int { return int(math.Round(c.Value(t))) }

// Mean is the mean load over a time from the beginning.
func (c Curve) Mean(seconds float64) float64 {
	const parts = 2000
	sum := 0.0
	for i := range parts {
		sum += c.Value((float64(i) + 0.5) / parts * seconds)
	}
	return sum / parts
}

// Stretch is a time in which a curve is low, or high.
type Stretch struct {
	From, To float64
	High     bool
}

// Stretches are the times up to an end in which the curve is low and high. Of a sine they are the
// quarters of a period around its troughs and crests; between them it is neither.
func (c Curve) Stretches(end float64) []Stretch {
	var all []Stretch
	add := func(from, to float64, high bool) {
		from, to = max(from, 0), min(to, end)
		if to > from {
			all = append(all, Stretch{from, to, high})
		}
	}
	switch c.Shape {
	case Spike:
		add(0, c.At, false)
		add(c.At, c.At+c.For, true)
		add(c.At+c.For, end, false)
	case Square:
		for t := 0.0; t < end; t += c.Period {
			add(t, t+c.Period/2, false)
			add(t+c.Period/2, t+c.Period, true)
		}
	case Sine:
		for t := 0.0; t < end; t += c.Period {
			add(t-c.Period/8, t+c.Period/8, false)
			add(t+c.Period*3/8, t+c.Period*5/8, true)
		}
	}
	return slices.Clip(all)
}
