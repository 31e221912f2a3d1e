package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"firstbreach/analyze/report"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// Schema is the schema number of comparison.json.
const Schema = 1

// Outcome is what the comparison of two runs came to, or of one measure of them.
type Outcome string

// The outcomes. Only the first four are claims.
const (
	Regression    Outcome = "regression"
	Improvement   Outcome = "improvement"
	TradeOff      Outcome = "trade_off"     // one measure got better and another worse
	NoDifference  Outcome = "no_difference" // every measure is shown to differ by less than the margin
	Inconclusive  Outcome = "inconclusive"
	NotComparable Outcome = "not_comparable"
	NotTested     Outcome = "not_tested" // of a measure: shown, not decided on
)

const (
	alpha     = 0.05
	minEffect = 0.05 // the smallest change worth naming, as a share
	minShare  = 0.2  // the same for a share of requests, as a part of the objective's allowance
	minRounds = 2    // valid rounds of each run in a step that is compared
)

// Result is the comparison of run B with run A. It is comparison.json.
type Result struct {
	Schema      int          `json:"schema"`
	A           string       `json:"a"`
	B           string       `json:"b"`
	Outcome     Outcome      `json:"outcome"`
	Reason      string       `json:"reason"`
	Differences []Difference `json:"differences"`
	Levels      []string     `json:"levels"`          // compared, ascending
	Measures    []Measure    `json:"measures"`        // decided on, Holm-corrected together; then those not tested
	Slots       *Slots       `json:"slots,omitempty"` // nil where the engine ran about as many requests at once in both
	FirstBreach FirstBreach  `json:"first_breach"`
	Notes       []string     `json:"notes"`
}

// Measure is one thing that was compared over all levels at once.
type Measure struct {
	Name    string      `json:"name"`
	Outcome Outcome     `json:"outcome"`
	Reason  string      `json:"reason,omitempty"`
	Unit    string      `json:"unit"`   // ratio: Effect is B/A − 1; share: B − A, of all requests
	Effect  *float64    `json:"effect"` // null: not to be had
	CI      *[2]float64 `json:"ci"`     // 95 %
	P       *float64    `json:"p"`
	PHolm   *float64    `json:"p_holm"`
	Margin  float64     `json:"margin"` // a change must lie beyond it as a whole: the A/A floor, or what is worth naming
	PerStep []StepValue `json:"per_step"`

	worse float64 // +1 where higher is worse, −1 where lower is
}

// StepValue is a measure at one level: the mean of its rounds.
type StepValue struct {
	Level string   `json:"level"`
	A     *float64 `json:"a"`
	B     *float64 `json:"b"`
}

// Options say how two runs are compared.
type Options struct {
	Intended []string // conditions that may differ, since they are what is compared
	Same     []Run    // further runs of exactly what A ran: how far they are from A is the A/A floor
}

// Compare compares b with a.
func Compare(a, b Run, o Options) *Result {
	r := &Result{Schema: Schema, A: a.Report.Run, B: b.Report.Run, Differences: Differences(a, b, o.Intended), Levels: []string{}, Measures: []Measure{}, Notes: []string{}}
	r.FirstBreach = firstBreach(a, b)
	r.unknown(a, b)
	if undeclared := keys(r.Differences, false); len(undeclared) > 0 {
		r.Outcome, r.FirstBreach.Suspected = NotComparable, ""
		r.Reason = fmt.Sprintf("the runs differ in %s; declare what the comparison is about with --intended", strings.Join(undeclared, ", "))
		return r
	}
	for _, run := range []Run{a, b} {
		if s := run.Report.State; s == verdict.Invalid || s == verdict.NoData {
			r.Outcome, r.FirstBreach.Suspected = NotComparable, ""
			r.Reason = fmt.Sprintf("run %s is %s: %s", run.Report.Run, s, run.Report.Reason)
			return r
		}
	}
	pairs := match(a, b)
	if len(pairs) == 0 {
		r.Outcome = NotComparable
		r.Reason = fmt.Sprintf("no step of the ramp has %d valid rounds in both runs", minRounds)
		return r
	}
	for _, p := range pairs {
		r.Levels = append(r.Levels, p.name())
	}
	r.Measures = r.sameObjectives(measure(pairs))
	r.floor(a, o)
	r.Slots = r.compareSlots(pairs)
	r.decide()
	r.Measures = append(r.Measures, readings(pairs)...)
	r.Measures = append(r.Measures, recovery(a, b)...)
	return r
}

// unknown notes the conditions that neither run recorded: they can't be told to be the same.
func (r *Result) unknown(a, b Run) {
	var keys []string
	for _, key := range []string{"model_digest", "engine_version"} {
		if a.Report.Conditions[key] == "" && b.Report.Conditions[key] == "" {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		r.Notes = append(r.Notes, "Neither run recorded "+strings.Join(keys, " and ")+": that it was the same is taken on trust.")
	}
}

// pair is one level of the ramp in both runs.
type pair struct{ a, b report.Step }

func (p pair) name() string {
	if p.a.Class != "" {
		return p.a.Level().String() + " " + p.a.Class
	}
	return p.a.Level().String()
}

// match are the levels of the ramp that count in both runs, ascending.
func match(a, b Run) []pair {
	var out []pair
	for _, sa := range a.Report.Steps {
		if sa.Phase != "ramp" || sa.RoundsValid < minRounds {
			continue
		}
		for _, sb := range b.Report.Steps {
			if sb.Phase == "ramp" && sb.Level() == sa.Level() && sb.Class == sa.Class && sb.RoundsValid >= minRounds {
				out = append(out, pair{sa, sb})
			}
		}
	}
	slices.SortStableFunc(out, func(x, y pair) int { return x.a.Level().Compare(y.a.Level()) })
	return out
}

// quantity is a number that each round of a step has.
type quantity struct {
	name  string
	worse float64
	of    func(report.Round) *float64
}

func quantities() []quantity {
	return []quantity{
		{"TTFT P95", +1, func(r report.Round) *float64 { return r.Latency.TTFT.P95 }},
		{"E2E P95", +1, func(r report.Round) *float64 { return r.Latency.E2E.P95 }},
		{"TPOT P95", +1, func(r report.Round) *float64 { return r.Latency.TPOT.P95 }},
		{"output tokens per second", -1, func(r report.Round) *float64 { return r.Throughput.Tokens }},
		requestRate,
	}
}

var requestRate = quantity{"requests per second", -1, func(r report.Round) *float64 { return r.Throughput.Requests }}

// measure are the measures that a test decides on, not yet corrected.
func measure(pairs []pair) []Measure {
	var out []Measure
	for _, q := range quantities() {
		if m, ok := ratio(q, pairs); ok {
			out = append(out, m)
		}
	}
	return append(out, shares(pairs)...)
}

func ratio(q quantity, pairs []pair) (Measure, bool) {
	m := Measure{Name: q.name, Unit: "ratio", Margin: minEffect, worse: q.worse}
	var strata []stratum
	for _, p := range pairs {
		s := stratum{values(p.a, q.of), values(p.b, q.of)}
		m.PerStep = append(m.PerStep, StepValue{p.name(), mean(s.a), mean(s.b)})
		if len(s.a) >= minRounds && len(s.b) >= minRounds {
			strata = append(strata, s)
		}
	}
	effect, ci, ok := logRatio(strata)
	if !ok {
		return m, false
	}
	p := vanElteren(strata)
	m.Effect, m.CI, m.P = at(math.Expm1(effect)), &[2]float64{math.Expm1(ci[0]), math.Expm1(ci[1])}, &p
	return m, true
}

// values are those of the valid rounds; only what has a logarithm.
func values(s report.Step, of func(report.Round) *float64) []float64 {
	var out []float64
	for _, r := range s.Rounds {
		if v := of(r); r.Valid && v != nil && *v > 0 {
			out = append(out, *v)
		}
	}
	return out
}

// shares compares, for each objective, the share of requests that missed it.
func shares(pairs []pair) []Measure {
	var out []Measure
	for _, o := range pairs[0].a.Objectives {
		m := Measure{Name: missed(o.Name), Unit: "share", Margin: minShare * o.Allowance, worse: +1}
		var tables []table
		for _, p := range pairs {
			a, b := objective(p.a, o.Name), objective(p.b, o.Name)
			if a == nil || b == nil || a.Total == 0 || b.Total == 0 {
				continue
			}
			m.PerStep = append(m.PerStep, StepValue{p.name(), a.Share, b.Share})
			pa, pb := math.Max(1, a.Dispersion), math.Max(1, b.Dispersion)
			tables = append(tables, table{float64(a.Bad) / pa, float64(a.Total) / pa, float64(b.Bad) / pb, float64(b.Total) / pb})
		}
		p, diff, ci, ok := mantelHaenszel(tables)
		if !ok {
			continue
		}
		m.Effect, m.CI, m.P = &diff, &ci, &p
		out = append(out, m)
	}
	return out
}

// sameObjectives leaves out the shares of an objective that isn't the same in both runs: declared or not, a share that
// missed 700 ms says nothing about one that missed 900 ms.
func (r *Result) sameObjectives(ms []Measure) []Measure {
	for _, d := range r.Differences {
		name, ok := strings.CutPrefix(d.Key, "slo.")
		i := slices.IndexFunc(ms, func(m Measure) bool { return m.Name == missed(name) })
		if !ok || i < 0 {
			continue
		}
		ms = slices.Delete(ms, i, i+1)
		r.Notes = append(r.Notes, fmt.Sprintf("The share that missed %s isn't compared: the objective is not the same in both runs.", name))
	}
	return ms
}

func missed(objective string) string { return "share that missed " + objective }

func objective(s report.Step, name string) *report.ObjectiveResult {
	for i := range s.Objectives {
		if s.Objectives[i].Name == name {
			return &s.Objectives[i]
		}
	}
	return nil
}

// floor raises each margin to how far runs of the very same thing were from A.
func (r *Result) floor(a Run, o Options) {
	used := 0
	for _, same := range o.Same {
		if other := keys(Differences(a, same, nil), false); len(other) > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("Run %s is no A/A run of %s and wasn't used: they differ in %s.", same.Report.Run, a.Report.Run, strings.Join(other, ", ")))
			continue
		}
		pairs := match(a, same)
		if len(pairs) == 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("Run %s wasn't used for the A/A floor: it shares no step with %d valid rounds.", same.Report.Run, minRounds))
			continue
		}
		used++
		for _, m := range measure(pairs) {
			for i := range r.Measures {
				if r.Measures[i].Name == m.Name {
					r.Measures[i].Margin = math.Max(r.Measures[i].Margin, math.Abs(*m.Effect))
				}
			}
		}
	}
	if used == 0 {
		r.Notes = append(r.Notes, "No A/A floor was measured: a change beyond 5 % is taken as more than two runs of the same thing differ by. Name a second run of what A ran with --same to measure it.")
	}
}

// decide corrects the p values for having been asked together and puts the measures into one outcome.
func (r *Result) decide() {
	var ps []float64
	for _, m := range r.Measures {
		ps = append(ps, *m.P)
	}
	var worse, better, open []string
	for i, p := range verdict.Holm(ps) {
		m := &r.Measures[i]
		m.PHolm = &p
		switch m.judge(); m.Outcome {
		case Regression:
			worse = append(worse, m.Name)
		case Improvement:
			better = append(better, m.Name)
		case Inconclusive:
			open = append(open, m.Name)
		}
	}
	switch {
	case len(worse) > 0 && len(better) > 0:
		r.Outcome, r.Reason = TradeOff, "better: "+strings.Join(better, ", ")+"; worse: "+strings.Join(worse, ", ")
	case len(worse) > 0:
		r.Outcome, r.Reason = Regression, "worse: "+strings.Join(worse, ", ")
	case len(better) > 0:
		r.Outcome, r.Reason = Improvement, "better: "+strings.Join(better, ", ")
	case len(open) > 0 || len(r.Measures) == 0:
		r.Outcome, r.Reason = Inconclusive, "more rounds are needed to decide on "+strings.Join(open, ", ")
		if len(r.Measures) == 0 {
			r.Reason = "no measure is there in two rounds of both runs"
		}
	default:
		r.Outcome, r.Reason = NoDifference, "every measure is within its margin"
	}
	if len(open) > 0 && r.Outcome != Inconclusive {
		r.Reason += "; undecided: " + strings.Join(open, ", ")
	}
}

// judge decides on one measure: a change is one if it is no chance and lies beyond the margin as a whole; none is
// one if the whole interval lies within the margin.
func (m *Measure) judge() {
	low, high := m.CI[0], m.CI[1]
	down := -m.Margin
	if m.Unit == "ratio" {
		down = 1/(1+m.Margin) - 1
	}
	sure := *m.PHolm < alpha
	switch {
	case sure && low > m.Margin:
		m.Outcome = side(m.worse > 0)
	case sure && high < down:
		m.Outcome = side(m.worse < 0)
	case low >= down && high <= m.Margin:
		m.Outcome = NoDifference
		if at := m.apart(down); at != "" {
			m.Outcome, m.Reason = Inconclusive, "none over all levels, but "+at+" alone differs by more than the margin"
		}
	case (low > m.Margin || high < down) && !sure:
		m.Outcome, m.Reason = Inconclusive, "beyond the margin, but chance isn't ruled out"
	default:
		m.Outcome, m.Reason = Inconclusive, "the interval reaches over the margin"
	}
}

// apart is the first level at which the runs differ by more than the margin: over all levels a change at one of them
// is diluted, and opposite ones cancel out.
func (m *Measure) apart(down float64) string {
	for _, s := range m.PerStep {
		if s.A == nil || s.B == nil {
			continue
		}
		change := *s.B - *s.A
		if m.Unit == "ratio" {
			change = *s.B / *s.A - 1
		}
		if change > m.Margin || change < down {
			return "level " + s.Level
		}
	}
	return ""
}

func side(worse bool) Outcome {
	if worse {
		return Regression
	}
	return Improvement
}

// readings are the costs per token of each step. A step has one reading of each over its rounds, so there is
// nothing to test them with.
func readings(pairs []pair) []Measure {
	var out []Measure
	for _, c := range []struct{ name, signal string }{{"energy per token (J)", "gpu_power"}, {"CPU per token (share of the host × s)", "cpu_utilization"}} {
		m := Measure{Name: c.name, Outcome: NotTested, Unit: "ratio", Reason: "one reading per step, so no test"}
		var sum float64
		n := 0
		for _, p := range pairs {
			a, b := perToken(p.a, c.signal), perToken(p.b, c.signal)
			m.PerStep = append(m.PerStep, StepValue{p.name(), a, b})
			if a != nil && b != nil && *a > 0 && *b > 0 {
				sum += math.Log(*b / *a)
				n++
			}
		}
		if n == 0 {
			m.Reason, m.PerStep = "not measured in both runs", []StepValue{}
		} else {
			m.Effect = at(math.Expm1(sum / float64(n)))
		}
		out = append(out, m)
	}
	return out
}

func perToken(s report.Step, signal string) *float64 {
	reading, ok := s.Resources[signal]
	if !ok || reading.Mean == nil || s.Throughput.Tokens == nil || *s.Throughput.Tokens <= 0 {
		return nil
	}
	return at(*reading.Mean / *s.Throughput.Tokens)
}

// recovery is the latency after the load over that before it, in both runs.
func recovery(a, b Run) []Measure {
	m := Measure{Name: "TTFT P95 after the load / before it", Outcome: NotTested, Unit: "ratio", PerStep: []StepValue{}, Reason: "not measured in both runs"}
	x, y := returned(a), returned(b)
	if x != nil && y != nil {
		m.Effect, m.Reason = at(*y / *x - 1), "one value per run, so no test"
		m.PerStep = append(m.PerStep, StepValue{"recovery", x, y})
	}
	return []Measure{m}
}

func returned(r Run) *float64 {
	d := r.Report.Recovery
	if d == nil || d.Baseline == nil || d.After == nil {
		return nil
	}
	before, after := d.Baseline.Latency.TTFT.P95, d.After.Latency.TTFT.P95
	if before == nil || after == nil || *before <= 0 || *after <= 0 {
		return nil
	}
	return at(*after / *before)
}

// FirstBreach is where each run first broke. It is an order of few steps with an open end, too coarse to decide on.
type FirstBreach struct {
	A         string   `json:"a"` // in words
	B         string   `json:"b"`
	RoundsA   []string `json:"rounds_a"` // first level over an allowance in each round; "none"
	RoundsB   []string `json:"rounds_b"`
	P         *float64 `json:"p"`       // exact rank-sum test over the rounds, none ranked last
	PFloor    *float64 `json:"p_floor"` // the smallest p that so few rounds can give
	Suspected string   `json:"suspected,omitempty"`
}

func firstBreach(a, b Run) FirstBreach {
	f := FirstBreach{A: breachWords(a), B: breachWords(b)}
	ra, rb := perRound(a), perRound(b)
	f.RoundsA, f.RoundsB = names(ra), names(rb)
	if len(ra) == 0 || len(rb) == 0 {
		return f
	}
	p := vanElteren([]stratum{{ranked(ra), ranked(rb)}})
	f.P = &p
	f.PFloor = at(2 / choose(len(ra)+len(rb), len(rb)))
	highA, lowA := slices.Max(ranked(ra)), slices.Min(ranked(ra))
	highB, lowB := slices.Max(ranked(rb)), slices.Min(ranked(rb))
	switch {
	case highB < lowA:
		f.Suspected = fmt.Sprintf("moved down in all %d rounds: suspected, the latency tests decide", len(rb))
	case lowB > highA:
		f.Suspected = fmt.Sprintf("moved up in all %d rounds: suspected, the latency tests decide", len(rb))
	}
	return f
}

func breachWords(r Run) string {
	b := r.Report.FirstBreach
	if b == nil {
		return string(r.Report.State)
	}
	if l, ok := b.LastOKLevel(); ok {
		return fmt.Sprintf("%s (%s), last ok %s", b.Level().Words(), b.Objective, l)
	}
	return fmt.Sprintf("%s (%s), no step below held", b.Level().Words(), b.Objective)
}

// perRound is, for each round, the lowest level of the ramp at which an objective was over its allowance; the zero
// level where there was none.
func perRound(r Run) []level.Level {
	first := map[int]level.Level{}
	for _, s := range r.Report.Steps {
		if s.Phase != "ramp" {
			continue
		}
		for _, o := range s.Objectives {
			for _, c := range o.PerRound {
				l, seen := first[c.Round]
				if c.Over && (!seen || l.IsZero() || s.Level().Compare(l) < 0) {
					first[c.Round] = s.Level()
				} else if !seen {
					first[c.Round] = level.Level{}
				}
			}
		}
	}
	var out []level.Level
	for _, round := range slices.Sorted(maps.Keys(first)) {
		out = append(out, first[round])
	}
	return out
}

func names(ls []level.Level) []string {
	out := []string{}
	for _, l := range ls {
		if l.IsZero() {
			out = append(out, "none")
		} else {
			out = append(out, l.String())
		}
	}
	return out
}

// ranked are the levels as numbers; none is above all.
func ranked(ls []level.Level) []float64 {
	var out []float64
	for _, l := range ls {
		if l.IsZero() {
			out = append(out, math.Inf(1))
		} else {
			out = append(out, float64(l.Concurrency)+l.Rate)
		}
	}
	return out
}

func choose(n, k int) float64 {
	c := 1.0
	for i := 1; i <= k; i++ {
		c = c * float64(n-k+i) / float64(i)
	}
	return c
}

func mean(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	return at(sum / float64(len(values)))
}

func at(v float64) *float64 { return &v }
