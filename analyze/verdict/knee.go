package verdict

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"firstbreach/internal/figures"
	"firstbreach/internal/level"
)

// kneeGain is the share of further load that must still come out as further throughput: at an
// elasticity of 0.3 a doubling of the load brings 23 %.
const kneeGain = 0.3

// curveSteps is how many steps of a ladder a fitted curve needs. On four, Kneedle finds a knee in a
// flat line, and the peak of a USL fit lies anywhere.
const curveSteps = 6

// uslMisfit is by how much a fitted curve may miss a value.
const uslMisfit = 0.1

// The findings about a knee.
const (
	KneeFound     State = "found"
	KneeNone      State = "none" // throughput still grew at the highest step
	KneeUndecided State = "undecided"
)

// Scaling is how throughput grew with load. It describes the ladder; the verdict is not its business.
type Scaling struct {
	Throughput Knee
	Goodput    Knee
	Laws       []Law
	Kneedle    Curve
	USL        Curve
}

// Knee is the smallest level from which more load no longer brings throughput, by the marginal gain
// between neighbouring steps.
type Knee struct {
	State  State
	At     *level.Level // the knee, when found
	Above  *level.Level // undecided: it lies above this one …
	Upto   *level.Level // … and at or below this one; nil where it may lie above the ladder
	Gains  []Gain
	Reason string
}

// Gain is the elasticity of throughput between two neighbouring steps: Δ ln X / Δ ln N. 1 is linear
// growth, 0 is none. Low and High are its one-sided 95 % bounds.
type Gain struct {
	From, To   level.Level
	Elasticity *float64
	Low, High  *float64
	Change     *float64 // X after / X before − 1
	Grows      State    // ok: still grows; breach: no more; inconclusive
}

// Law is Little's law at one step: L = X·R, means over the valid rounds.
type Law struct {
	Level     level.Level
	X, R      *float64 // requests per second, of every outcome; seconds a request is in the system
	L         *float64
	InFlight  *float64 // as counted
	OfPlanned *float64 // L ÷ concurrency; nil in an open loop
}

// Curve is a knee or peak by a fitted curve, or why there is none.
type Curve struct {
	Used    bool
	At      *float64 // concurrency
	AtLeast bool     // At is a lower bound
	Text    string
}

func (r *Result) scale(run Run) {
	steps := r.measuredLadder()
	r.Scaling = &Scaling{
		Throughput: kneeOf(steps, func(m Measured) *float64 { return m.RequestsPerSecond }),
		Goodput:    kneeOf(steps, func(m Measured) *float64 { return m.GoodputPerSecond }),
	}
	for _, s := range steps {
		r.Scaling.Laws = append(r.Scaling.Laws, lawOf(run, s))
	}
	r.Scaling.Kneedle = kneedle(steps, r.Scaling.Throughput)
	r.Scaling.USL = usl(steps)
}

// measuredLadder are the steps of the ladder with a valid round.
func (r *Result) measuredLadder() []StepResult {
	var out []StepResult
	for _, i := range r.ladder() {
		if r.Steps[i].ValidRounds > 0 && r.Steps[i].Class == "" {
			out = append(out, r.Steps[i])
		}
	}
	return out
}

func loadOf(l level.Level) float64 { return math.Max(float64(l.Concurrency), l.Rate) }

// perRound are the values of a step's valid rounds that are there and above zero; all is false when
// one is not.
func perRound(s StepResult, of func(RoundResult) *float64) (values []float64, all bool) {
	all = true
	for _, r := range s.Rounds {
		if !r.Valid {
			continue
		}
		v := of(r)
		if v == nil || !(*v > 0) || math.IsInf(*v, 0) {
			all = false
			continue
		}
		values = append(values, *v)
	}
	return values, all && len(values) > 0
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// kneeOf is the marginal-gain rule.
func kneeOf(steps []StepResult, of func(Measured) *float64) Knee {
	if len(steps) < 2 {
		return Knee{State: KneeUndecided, Reason: "one step has no neighbour to compare it with"}
	}
	k := Knee{}
	for i := range len(steps) - 1 {
		k.Gains = append(k.Gains, gainOf(steps[i], steps[i+1], of))
	}
	for _, g := range k.Gains {
		switch {
		case g.Grows == Breach && k.Above == nil:
			k.State, k.At = KneeFound, &g.From
			return k
		case g.Grows == Breach:
			k.State, k.Upto = KneeUndecided, &g.From
			k.Reason = fmt.Sprintf("between %s and %s the rounds differ too much to tell", *k.Above, g.From)
			return k
		case g.Grows != OK && k.Above == nil:
			k.Above = &g.From
		}
	}
	if k.Above != nil {
		k.State, k.Reason = KneeUndecided, fmt.Sprintf("from %s on the rounds differ too much to tell", *k.Above)
		return k
	}
	k.State, k.Reason = KneeNone, fmt.Sprintf("it still grew at %s, the highest step", steps[len(steps)-1].Level())
	return k
}

// gainOf compares two neighbouring steps over their rounds: Student's t on ln X, pooled degrees of
// freedom.
func gainOf(a, b StepResult, of func(Measured) *float64) Gain {
	g := Gain{From: a.Level(), To: b.Level(), Grows: Inconclusive}
	value := func(r RoundResult) *float64 { return of(r.Measured) }
	xs, okA := perRound(a, value)
	ys, okB := perRound(b, value)
	if x, y := of(a.Measured), of(b.Measured); x != nil && y != nil && *x > 0 && finite(*y / *x) {
		change := *y / *x - 1
		g.Change = &change
	}
	if !okA {
		return g
	}
	if !okB { // nothing came out at the higher step
		if len(ys) == 0 {
			g.Grows = Breach
		}
		return g
	}
	span := math.Log(loadOf(b.Level()) / loadOf(a.Level()))
	if !(span > 0) {
		return g
	}
	mx, vx := logMean(xs)
	my, vy := logMean(ys)
	e := (my - mx) / span
	g.Elasticity = &e
	df := len(xs) + len(ys) - 2
	if len(xs) < 2 || len(ys) < 2 {
		return g
	}
	se := math.Sqrt(vx/float64(len(xs))+vy/float64(len(ys))) / span
	t := distuv.StudentsT{Sigma: 1, Nu: float64(df)}.Quantile(1 - Alpha)
	low, high := e-t*se, e+t*se
	g.Low, g.High = &low, &high
	switch {
	case high < kneeGain:
		g.Grows = Breach
	case low > kneeGain:
		g.Grows = OK
	}
	return g
}

// logMean is the mean and the variance of the logarithms.
func logMean(xs []float64) (mean, variance float64) {
	for _, x := range xs {
		mean += math.Log(x) / float64(len(xs))
	}
	if len(xs) < 2 {
		return mean, 0
	}
	for _, x := range xs {
		d := math.Log(x) - mean
		variance += d * d / float64(len(xs)-1)
	}
	return mean, variance
}

// lawOf applies Little's law to the valid rounds of one step.
func lawOf(run Run, s StepResult) Law {
	law := Law{Level: s.Level()}
	var seconds, occupancy, flight float64
	for _, r := range s.Rounds {
		if r.Valid && r.Occupancy != nil && finite(*r.Occupancy) && finite(r.Measured.Seconds) {
			w := r.Measured.Seconds
			seconds += w
			occupancy += *r.Occupancy * w
			flight += *r.InFlight * w
		}
	}
	if n := float64(s.Measured.Requests); seconds > 0 && n > 0 {
		x, residence, l, f := n/seconds, occupancy/n, occupancy/seconds, flight/seconds
		law.X, law.R, law.L, law.InFlight = &x, &residence, &l, &f
		if s.Concurrency > 0 {
			share := l / float64(s.Concurrency)
			law.OfPlanned = &share
		}
	}
	return law
}

// tooFew is why no curve is fitted to a short ladder.
func tooFew(steps []StepResult) (Curve, bool) {
	switch {
	case len(steps) < curveSteps:
		return Curve{Text: fmt.Sprintf("not used: it needs %d steps, and %d were measured", curveSteps, len(steps))}, true
	case steps[0].Rate > 0:
		return Curve{Text: "not used: in an open loop throughput is the rate until it breaks"}, true
	}
	return Curve{}, false
}

// kneedle looks for the knee of X(N) as Satopaa et al. (2011) do, on N itself: on its logarithm a
// straight line has a knee too.
func kneedle(steps []StepResult, marginal Knee) Curve {
	if c, few := tooFew(steps); few {
		return c
	}
	if marginal.State == KneeNone {
		return Curve{Text: "not used: throughput has no plateau"}
	}
	var ns, xs, rs []float64
	for _, s := range steps {
		if s.Measured.RequestsPerSecond == nil || *s.Measured.RequestsPerSecond <= 0 {
			return Curve{Text: "not used: a step without throughput"}
		}
		ns = append(ns, float64(s.Concurrency))
		xs = append(xs, *s.Measured.RequestsPerSecond)
		rs = append(rs, float64(s.Concurrency) / *s.Measured.RequestsPerSecond)
	}
	if slices.Max(xs) < 1.3*xs[0] {
		return Curve{Text: "not used: throughput rises by less than 30 % over the whole ladder"}
	}
	concave, okX := kneedleOf(ns, xs, false)
	convex, okR := kneedleOf(ns, rs, true)
	switch {
	case !okX:
		return Curve{Used: true, Text: "no knee in X(N)"}
	case okR && max(concave, convex)-min(concave, convex) > 1:
		return Curve{Used: true, Text: fmt.Sprintf("between %g and %g: throughput and latency disagree", ns[min(concave, convex)], ns[max(concave, convex)])}
	}
	at := ns[concave]
	return Curve{Used: true, At: &at, Text: fmt.Sprintf("knee of X(N) at %g", at)}
}

// kneedleOf returns the index of the first local maximum of the difference curve that the curve
// leaves by more than the mean spacing (sensitivity 1). The last point can't be one.
func kneedleOf(ns, ys []float64, convex bool) (int, bool) {
	n := len(ns)
	low, high := slices.Min(ys), slices.Max(ys)
	if high == low {
		return 0, false
	}
	d := make([]float64, n)
	for i := range ns {
		x, y := (ns[i]-ns[0])/(ns[n-1]-ns[0]), (ys[i]-low)/(high-low)
		if d[i] = y - x; convex {
			d[i] = x - y
		}
	}
	for i := 1; i < n-1; i++ {
		if d[i] <= d[i-1] || d[i] < d[i+1] {
			continue
		}
		threshold := d[i] - 1/float64(n-1)
		for j := i + 1; j < n && d[j] <= d[i]; j++ {
			if d[j] < threshold {
				return i, true
			}
		}
	}
	return 0, false
}

// usl fits Gunther's universal scalability law, X = λN / (1 + σ(N−1) + κN(N−1)), whose peak is at
// √((1−σ)/κ). N/X is linear in its parameters; weighing it by X/N treats relative errors alike.
func usl(steps []StepResult) Curve {
	if c, few := tooFew(steps); few {
		return c
	}
	rounds := math.MaxInt
	for _, s := range steps {
		xs, all := perRound(s, func(r RoundResult) *float64 { return r.Measured.RequestsPerSecond })
		if !all {
			return Curve{Text: "not used: a step without throughput"}
		}
		rounds = min(rounds, len(xs))
	}
	if rounds < 2 {
		return Curve{Text: "not used: its error can't be told from one round"}
	}
	peaks := make([]float64, 0, rounds)
	for leave := -1; leave < rounds; leave++ {
		var ns, xs []float64
		for _, s := range steps {
			all, _ := perRound(s, func(r RoundResult) *float64 { return r.Measured.RequestsPerSecond })
			for i, x := range all {
				if i != leave {
					ns, xs = append(ns, float64(s.Concurrency)), append(xs, x)
				}
			}
		}
		peak, why := uslPeak(ns, xs)
		if why != "" {
			return Curve{Text: "not used: " + why}
		}
		peaks = append(peaks, peak)
	}
	top := float64(steps[len(steps)-1].Concurrency)
	low, high := slices.Min(peaks), slices.Max(peaks)
	switch {
	case low > 1.5*top:
		return Curve{Text: fmt.Sprintf("not used: its peak, about %s, lies far above the highest step", figures.Write(peaks[0], 3))}
	case high > 2*low || high > top:
		return Curve{Used: true, At: &low, AtLeast: true, Text: fmt.Sprintf("peak at or above %s; the ladder does not show how far", figures.Write(low, 3))}
	}
	return Curve{Used: true, At: &peaks[0], Text: fmt.Sprintf("peak at %s (%s–%s, each round left out in turn)", figures.Write(peaks[0], 3), figures.Write(low, 3), figures.Write(high, 3))}
}

// uslPeak fits once; why says what makes the fit unusable.
func uslPeak(ns, xs []float64) (peak float64, why string) {
	var a [3][4]float64
	for i, n := range ns {
		y, w := n/xs[i], xs[i]/n
		row := [3]float64{1, n - 1, n * (n - 1)}
		for p := range 3 {
			for q := range 3 {
				a[p][q] += w * w * row[p] * row[q]
			}
			a[p][3] += w * w * row[p] * y
		}
	}
	c, ok := solve3(a)
	if !ok || c[0] <= 0 {
		return 0, "the fit has no solution"
	}
	sigma, kappa := c[1]/c[0], c[2]/c[0]
	switch {
	case sigma < -0.05 || sigma > 1:
		return 0, fmt.Sprintf("the fitted contention, %s, is not between 0 and 1: the system is not of that shape", figures.Write(sigma, 2))
	case kappa <= 0:
		return 0, "the fit has no peak"
	}
	signs, last, most := 0, 0.0, 0.0
	for i, n := range ns {
		d := n/xs[i] - c[0] - c[1]*(n-1) - c[2]*n*(n-1)
		most = math.Max(most, math.Abs(d)*xs[i]/n)
		if d*last < 0 {
			signs++
		}
		if d != 0 {
			last = d
		}
	}
	if most > uslMisfit {
		return 0, fmt.Sprintf("the fit is off by up to %s: the system is not of that shape, as with a fixed number of slots", percent(most))
	}
	if signs < 2 {
		return 0, "the residuals don't alternate: the system is not of that shape, as with a fixed number of slots"
	}
	return math.Sqrt((1 - math.Max(0, sigma)) / kappa), ""
}

// solve3 solves three linear equations by elimination with pivots.
func solve3(a [3][4]float64) (x [3]float64, ok bool) {
	for i := range 3 {
		p := i
		for j := i + 1; j < 3; j++ {
			if math.Abs(a[j][i]) > math.Abs(a[p][i]) {
				p = j
			}
		}
		a[i], a[p] = a[p], a[i]
		if math.Abs(a[i][i]) < 1e-12 {
			return x, false
		}
		for j := range 3 {
			if j == i {
				continue
			}
			f := a[j][i] / a[i][i]
			for k := i; k < 4; k++ {
				a[j][k] -= f * a[i][k]
			}
		}
	}
	for i := range 3 {
		x[i] = a[i][3] / a[i][i]
	}
	return x, true
}
