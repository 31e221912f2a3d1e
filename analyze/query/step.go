package query

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// labelShard tells the load generators of one sharded run apart; without shards there is none.
const labelShard = signal.LabelShard

// stepLabels are the labels that the totals of a step are kept apart by. Everything else, such as
// instance, replica and prometheus, tells copies of the same series apart, and is taken by max.
func stepLabels(more ...string) []string {
	return append(append(oneStepLabels(), labelShard), more...)
}

// oneStepLabels are the labels of one step of one round, over its shards.
func oneStepLabels() []string {
	return []string{signal.LabelPhase, signal.LabelRound, signal.LabelStep, signal.LabelConcurrency, signal.LabelRate, signal.LabelClass}
}

// pooledLabels are the labels of one level of one phase, over its rounds, steps and shards.
func pooledLabels() []string {
	return []string{signal.LabelPhase, signal.LabelConcurrency, signal.LabelRate, signal.LabelClass}
}

// stepKey names one step of one round; where a plan has classes of requests, one class of it.
type stepKey struct {
	phase       string
	round, step int
	level       level.Level
	class       string
}

func (k stepKey) String() string {
	text := fmt.Sprintf("%s, round %d, step %d, %s", k.phase, k.round, k.step, k.level.Words())
	if k.class != "" {
		text += ", class " + k.class
	}
	return text
}

// compare orders the steps of which it isn't known when they began.
func (k stepKey) compare(o stepKey) int {
	return cmp.Or(cmp.Compare(k.round, o.round), cmp.Compare(phaseRank(k.phase), phaseRank(o.phase)),
		cmp.Compare(k.phase, o.phase), cmp.Compare(k.step, o.step), k.level.Compare(o.level), cmp.Compare(k.class, o.class))
}

func phaseRank(phase string) int {
	order := []string{string(plan.PhaseBaseline), string(plan.PhaseRamp), string(plan.PhaseConfirm), string(plan.PhaseRecovery)}
	if i := slices.Index(order, phase); i >= 0 {
		return i
	}
	return len(order)
}

// keyOf reads the step labels of a series.
func keyOf(m model.Metric) (k stepKey, err error) {
	number := func(label model.LabelName) int {
		n, e := strconv.Atoi(string(m[label]))
		if e != nil && err == nil {
			err = fmt.Errorf("series %s: the label %s is not a whole number", m, label)
		}
		return n
	}
	k = stepKey{phase: string(m[signal.LabelPhase]), round: number(signal.LabelRound), step: number(signal.LabelStep), class: string(m[signal.LabelClass])}
	if err != nil {
		return k, err
	}
	k.level, err = levelOf(m)
	return k, err
}

// levelOf reads the level of a series: its rate, or its concurrency.
func levelOf(m model.Metric) (level.Level, error) {
	if text := string(m[signal.LabelRate]); text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate > 0) {
			return level.Level{}, fmt.Errorf("series %s: the label %s is not a number above 0", m, signal.LabelRate)
		}
		return level.Level{Rate: rate}, nil
	}
	n, err := strconv.Atoi(string(m[signal.LabelConcurrency]))
	if err != nil {
		return level.Level{}, fmt.Errorf("series %s: the label %s is not a whole number", m, signal.LabelConcurrency)
	}
	return level.Level{Concurrency: n}, nil
}

// step is one step while it is being read.
type step struct {
	verdict.Step
	windows   map[string]*totals // by window, as Prometheus has them
	values    map[string]latency // by histogram, of the measure window
	undefined map[string]int64   // by objective, of the measure window
	counters  counters           // sample by sample
}

func (s *step) key() stepKey {
	return stepKey{s.Phase, s.Round, s.Step.Step, s.Level(), s.Class}
}

// totals are the counts of one window.
type totals struct {
	outcomes, timeouts   map[string]int64
	late                 map[string]int64 // by objective: values that the client read too late to tell
	good, output, prompt int64
}

// latency is how many values a histogram holds. shards counts the label sets that they came from.
type latency struct {
	count  int64
	shards int
}

// window returns the totals of a window, made on first use.
func (s *step) window(name string) *totals {
	t := s.windows[name]
	if t == nil {
		t = &totals{outcomes: map[string]int64{}, timeouts: map[string]int64{}, late: map[string]int64{}}
		s.windows[name] = t
	}
	return t
}

// stepOf returns the step of that key, made on first use.
func (l *loader) stepOf(k stepKey) *step {
	s := l.steps[k]
	if s == nil {
		s = &step{
			Step:    verdict.Step{Phase: k.phase, Round: k.round, Step: k.step, Concurrency: k.level.Concurrency, Rate: k.level.Rate, Class: k.class},
			windows: map[string]*totals{}, values: map[string]latency{}, undefined: map[string]int64{},
		}
		l.steps[k] = s
	}
	return s
}

// each calls f for every series of a vector of step labels, with the step it belongs to. NaN is no
// number: such a series is as good as absent.
func (l *loader) each(a answer, f func(s *step, m model.Metric, v float64)) error {
	v, err := a.vector()
	if err != nil {
		return err
	}
	for _, sample := range v {
		if math.IsNaN(float64(sample.Value)) {
			continue
		}
		k, err := keyOf(sample.Metric)
		if err != nil {
			return err
		}
		f(l.stepOf(k), sample.Metric, float64(sample.Value))
	}
	return nil
}

// windowTimes are the starts or the ends of the windows of each step, in unix seconds.
type windowTimes map[*step]map[string]float64

// takeTimes reads them; of several shards, pick chooses.
func (l *loader) takeTimes(a answer, times windowTimes, pick func(x, y float64) float64) error {
	return l.each(a, func(s *step, m model.Metric, v float64) {
		if v <= 0 {
			return // not yet
		}
		if times[s] == nil {
			times[s] = map[string]float64{}
		}
		w := string(m[signal.LabelWindow])
		if old, ok := times[s][w]; ok {
			v = pick(old, v)
		}
		times[s][w] = v
	})
}

// setEdges derives the step's times. It has ended when the window it got to has ended; a step that
// is stopped never gets to drain.
func (s *step) setEdges(from, to map[string]float64) {
	value := func(m map[string]float64, w record.Window) *float64 {
		if v, ok := m[string(w)]; ok {
			return &v
		}
		return nil
	}
	s.MeasureFrom, s.MeasureTo = value(from, record.Measure), value(to, record.Measure)
	for _, w := range record.Windows() {
		if f := value(from, w); f != nil {
			if s.Start == nil {
				s.Start = f
			}
			s.End = value(to, w)
		}
	}
}

// oneGenerator refuses a run ID that two load generators used: their counts can't be told apart.
func (l *loader) oneGenerator(a answer) error {
	v, err := a.vector()
	if err != nil || len(v) == 0 {
		return err
	}
	var where []string
	for _, s := range v {
		k, err := keyOf(s.Metric)
		if err != nil {
			return err
		}
		where = append(where, fmt.Sprintf("(%s; %s)", k, s.Metric[signal.LabelWindow]))
	}
	slices.Sort(where)
	return fmt.Errorf("more than one load generator wrote series of run %q: %s began at different times: give each run its own ID, and the parts of one run their own shard",
		l.RunID, strings.Join(where[:min(3, len(where))], ", "))
}

// addManifestSteps adds what only the manifest knows.
func (l *loader) addManifestSteps() {
	if l.Manifest == nil {
		return
	}
	for _, ms := range l.Manifest.Steps {
		s := l.stepOf(manifestKey(ms))
		s.Unscraped, s.Stopped, s.Limited = ms.Unscraped, ms.Stopped, slices.Clone(ms.Limited)
		s.Name, s.Load = ms.Name, ms.Load
		if t := ms.Trace; t != nil {
			s.Trace = &verdict.Trace{Rate: t.Rate, Busiest: t.Busiest, InputTokens: t.InputTokens, OutputTokens: t.OutputTokens}
		}
		for _, e := range ms.Events {
			s.Events = append(s.Events, verdict.Event{Event: e.Event, From: unix(e.StartedAt), To: unix(e.EndedAt), Error: e.Error})
		}
	}
}

func manifestKey(ms record.ManifestStep) stepKey {
	return stepKey{ms.Phase, ms.Round, ms.Step, ms.Level(), ms.Class}
}

// ordered returns the steps in order of start; those of which nobody knows when they began come
// last.
func (l *loader) ordered() []*step {
	started := map[stepKey]float64{}
	if l.Manifest != nil {
		for _, ms := range l.Manifest.Steps {
			started[manifestKey(ms)] = unix(ms.StartedAt)
		}
	}
	keys := make([]stepKey, 0, len(l.steps))
	for k, s := range l.steps {
		if s.Start != nil {
			started[k] = *s.Start
		} else if _, ok := started[k]; !ok {
			started[k] = math.Inf(1)
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b stepKey) int {
		return cmp.Or(cmp.Compare(started[a], started[b]), a.compare(b))
	})
	steps := make([]*step, len(keys))
	for i, k := range keys {
		steps[i] = l.steps[k]
	}
	return steps
}

// notFound says which runs are there instead. With a manifest the run was there, and Prometheus
// has nothing of it: that is a finding, and a warning says it.
func (l *loader) notFound(ctx context.Context, back time.Duration) error {
	var there []string
	err := l.ask(ctx, question{
		name: "runs that are there", label: signal.LabelRun, expr: promexpr.Select(signal.LoadgenStepStart), at: l.now, back: back,
		take: func(a answer) error {
			for _, v := range a.values {
				there = append(there, string(v))
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	slices.Sort(there)
	const most = 20
	list := "no run at all: is loadgen among its scrape targets?"
	if n := len(there); n > 0 {
		list = "runs " + strings.Join(there[max(0, n-most):], ", ")
		if n > most {
			list += fmt.Sprintf(" and %d more", n-most)
		}
	}
	text := fmt.Sprintf("Prometheus at %s has no series of run %q in the last %s; it has %s", l.address, l.RunID, model.Duration(back), list)
	if l.Manifest == nil {
		return &NotFoundError{RunID: l.RunID, There: there, text: text}
	}
	l.run.Warnings = append(l.run.Warnings, text)
	return nil
}

// NotFoundError says that Prometheus has nothing of a run, and which runs it has.
type NotFoundError struct {
	RunID string
	There []string
	text  string
}

func (e *NotFoundError) Error() string { return e.text }
