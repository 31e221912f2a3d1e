package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"firstbreach/internal/strictyaml"
)

// Distribution is how a number of tokens is spread.
type Distribution string

// The distributions.
const (
	Uniform   Distribution = "uniform"   // between Min and Max
	Normal    Distribution = "normal"    // of Mean and Deviation, cut to Min and Max
	Lognormal Distribution = "lognormal" // the same; Mean and Deviation are those of the numbers, not of their logarithms
	Histogram Distribution = "histogram" // the numbers of Bins, as often as their weights say
)

// Lengths are numbers of tokens that differ from prompt to prompt.
type Lengths struct {
	Distribution    Distribution
	Mean, Deviation float64
	Min, Max        int
	Bins            []Bin // rising
}

// Bin is one bar of a histogram.
type Bin struct {
	Tokens, Weight int
}

// String is the description that a manifest keeps.
func (l Lengths) String() string {
	switch l.Distribution {
	case Uniform:
		return fmt.Sprintf("uniform %d to %d", l.Min, l.Max)
	case Histogram:
		text := "histogram"
		for _, b := range l.Bins {
			text += fmt.Sprintf(" %d:%d", b.Tokens, b.Weight)
		}
		return text
	}
	return fmt.Sprintf("%s, mean %g, deviation %g, %d to %d", l.Distribution, l.Mean, l.Deviation, l.Min, l.Max)
}

// draw takes one number.
func (l Lengths) draw(random *rand.Rand) int {
	switch l.Distribution {
	case Uniform:
		return l.Min + random.IntN(l.Max-l.Min+1)
	case Histogram:
		sum := 0
		for _, b := range l.Bins {
			sum += b.Weight
		}
		at := random.IntN(sum)
		for _, b := range l.Bins {
			if at -= b.Weight; at < 0 {
				return b.Tokens
			}
		}
	}
	x := l.Mean + l.Deviation*random.NormFloat64()
	if l.Distribution == Lognormal {
		// The parameters of the logarithm, by the moments of the lognormal distribution.
		s2 := math.Log(1 + l.Deviation*l.Deviation/(l.Mean*l.Mean))
		x = math.Exp(math.Log(l.Mean) - s2/2 + math.Sqrt(s2)*random.NormFloat64())
	}
	return int(math.Round(min(max(x, float64(l.Min)), float64(l.Max))))
}

// most is the greatest number that can be drawn.
func (l Lengths) most() int {
	if n := len(l.Bins); n > 0 {
		return l.Bins[n-1].Tokens
	}
	return l.Max
}

func (r *reader) lengths(v strictyaml.Value) *Lengths {
	m := v.Map("distribution", "mean", "deviation", "min", "max", "histogram")
	l := &Lengths{Min: 1, Max: MaxTokens}
	if h := m.Get("histogram"); h.Present() {
		for _, k := range []string{"distribution", "mean", "deviation", "min", "max"} {
			if o := m.Get(k); o.Present() {
				o.Reject("has no meaning beside histogram", "remove it")
			}
		}
		l.Distribution = Histogram
		l.bins(h)
		return l
	}
	d := m.Get("distribution")
	if !d.Require("write uniform, normal or lognormal; or histogram: {128: 3, 512: 1}") {
		return l
	}
	word, ok := d.OneOf(string(Uniform), string(Normal), string(Lognormal))
	if !ok {
		return l
	}
	l.Distribution = Distribution(word)
	readInt(m.Get("min"), &l.Min, 1, MaxTokens)
	readInt(m.Get("max"), &l.Max, 1, MaxTokens)
	mean, deviation := m.Get("mean"), m.Get("deviation")
	if l.Distribution == Uniform {
		m.Get("min").Require("write the least number of tokens")
		m.Get("max").Require("write the greatest number of tokens")
		for _, o := range []strictyaml.Value{mean, deviation} {
			if o.Present() {
				o.Reject("has no meaning in a uniform distribution", "remove it")
			}
		}
	} else {
		readPositive(mean, &l.Mean, "write the mean number of tokens")
		readPositive(deviation, &l.Deviation, "write the standard deviation in tokens")
		m.Get("max").Require("write the greatest number of tokens: the model's context is bounded")
	}
	if l.Min > l.Max {
		m.Get("min").Reject(fmt.Sprintf("%d is more than max %d", l.Min, l.Max), "swap the two")
	}
	if l.Mean > 0 && (l.Mean < float64(l.Min) || l.Mean > float64(l.Max)) {
		mean.Reject(fmt.Sprintf("%g is not between min %d and max %d", l.Mean, l.Min, l.Max), "write one that is")
	}
	return l
}

func readPositive(v strictyaml.Value, into *float64, fix string) {
	if !v.Require(fix) {
		return
	}
	if x, ok := v.Float(); ok {
		if !(x > 0 && x <= MaxTokens) {
			v.Reject(fmt.Sprintf("%g is not between 0 and %d", x, MaxTokens), "write a number in that range")
			return
		}
		*into = x
	}
}

func (l *Lengths) bins(v strictyaml.Value) {
	last := 0
	entries := v.Entries()
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name)
		switch {
		case err != nil || n < 1 || n > MaxTokens:
			e.Value.Reject("is no number of tokens", fmt.Sprintf("write 1 to %d before the colon, and its weight behind", MaxTokens))
			continue
		case n <= last:
			e.Value.Reject(fmt.Sprintf("%d doesn't rise", n), "write the numbers of tokens in rising order")
			continue
		}
		b := Bin{Tokens: n, Weight: 1}
		readInt(e.Value, &b.Weight, 1, 1_000_000)
		l.Bins, last = append(l.Bins, b), n
	}
	if v.IsMap() && len(entries) == 0 {
		v.Reject("is empty", "write {128: 3, 512: 1}: numbers of tokens and their weights")
	}
}
