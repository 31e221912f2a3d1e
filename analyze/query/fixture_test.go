package query_test

import (
	"context"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"firstbreach/analyze/query"
	"firstbreach/analyze/store"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// world is a Prometheus data directory that a test fills by hand.
type world struct {
	t   testing.TB
	dir string
	db  *tsdb.DB
	app storage.Appender
	t0  float64 // unix seconds; when the runs begin
	n   int

	edit func(*sample) // what happens to each sample on its way into the store; nil: nothing
}

// sample is one sample that a test is about to write.
type sample struct {
	t, v   float64 // seconds after the beginning, and its value
	name   string
	labels map[string]string
	drop   bool // it never gets there
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), t0: float64(time.Now().Add(-2 * time.Hour).Unix())}
	var err error
	if w.db, err = tsdb.Open(w.dir, nil, nil, tsdb.DefaultOptions(), nil); err != nil {
		t.Fatal(err)
	}
	w.app = w.db.Appender(t.Context())
	return w
}

// put adds one sample, t seconds after the beginning.
func (w *world) put(t, v float64, name string, kv ...string) {
	if w.edit != nil {
		s := sample{t: t, v: v, name: name, labels: map[string]string{}}
		for i := 0; i < len(kv); i += 2 {
			s.labels[kv[i]] = kv[i+1]
		}
		if w.edit(&s); s.drop {
			return
		}
		t, v, kv = s.t, s.v, nil
		for k, label := range s.labels {
			kv = append(kv, k, label)
		}
	}
	w.append(t, name, kv, func(l labels.Labels, ms int64) error {
		_, err := w.app.Append(0, l, ms, v)
		return err
	})
}

func (w *world) putHistogram(t float64, h *histogram.Histogram, name string, kv ...string) {
	w.append(t, name, kv, func(l labels.Labels, ms int64) error {
		_, err := w.app.AppendHistogram(0, l, ms, h, nil)
		return err
	})
}

func (w *world) append(t float64, name string, kv []string, add func(labels.Labels, int64) error) {
	l := labels.FromStrings(append([]string{labels.MetricName, name}, kv...)...)
	if err := add(l, int64(math.Round((w.t0+t)*1000))); err != nil {
		w.t.Fatalf("%s at %v: %v", l, t, err)
	}
	if w.n++; w.n%200_000 == 0 {
		w.commit()
	}
}

func (w *world) commit() {
	if err := w.app.Commit(); err != nil {
		w.t.Fatal(err)
	}
	w.app = w.db.Appender(context.Background())
}

// serve ends filling and returns the URL of a Prometheus API over the data.
func (w *world) serve() string {
	w.t.Helper()
	w.commit()
	if err := w.db.Close(); err != nil {
		w.t.Fatal(err)
	}
	s, err := store.Open(w.t.Context(), store.Options{Dir: w.dir, ReadOnly: true})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return s.URL()
}

// stepSpec is one step as it was measured.
type stepSpec struct {
	phase             string
	round, step, conc int
	rate              float64 // of an open loop; the label then stands instead of the concurrency
	class             string
	start, length     float64        // seconds; warmup is the first tenth, drain the last
	ttft              []float64      // of the measured ok requests
	failed            map[string]int // measured requests that weren't ok, by outcome
	late              int            // measured values that were read too late to tell
	outside           map[string]int // requests of the other windows; one for each slot when there is none
	tail              float64        // how long the series stay after the end; 2 s when 0
}

func (s stepSpec) id() []string {
	id := []string{signal.LabelPhase, s.phase, signal.LabelRound, strconv.Itoa(s.round), signal.LabelStep, strconv.Itoa(s.step)}
	if s.rate > 0 {
		id = append(id, signal.LabelRate, strconv.FormatFloat(s.rate, 'f', -1, 64))
	} else {
		id = append(id, signal.LabelConcurrency, strconv.Itoa(s.conc))
	}
	if s.class != "" {
		id = append(id, signal.LabelClass, s.class)
	}
	return id
}

func (s stepSpec) edges(window string) (from, to float64) {
	a, b, c, d := s.start, s.start+s.length/10, s.start+s.length*9/10, s.start+s.length
	switch window {
	case "warmup":
		return a, b
	case "measure":
		return b, c
	}
	return c, d
}

// values are the TTFTs of a window's ok requests; all are slow outside the measure window.
func (s stepSpec) values(window string) []float64 {
	if window == "measure" {
		return s.ttft
	}
	n, ok := s.outside[window]
	if !ok {
		n = s.conc
	}
	vs := make([]float64, n)
	for i := range vs {
		vs[i] = 9
	}
	return vs
}

func (s stepSpec) outcomes(window string) map[string]int {
	all := map[string]int{}
	for _, o := range wire.Outcomes() {
		all[string(o)] = 0
	}
	all["ok"] = len(s.values(window))
	if window == "measure" {
		for o, n := range s.failed {
			all[o] = n
		}
	}
	return all
}

// runSpec is how a run looks on the page and in Prometheus.
type runSpec struct {
	id              string
	native, classic bool
	edges           []float64            // classic edges; nil leaves +Inf alone
	le              func(float64) string // as this Prometheus writes edges
	labels          []string             // of the scrape; instance and job when nil
	every           float64              // between scrapes; 1 s when 0
	skip            func(t float64) bool // scrapes that didn't happen
	threshold       float64              // of the objective ttft
	steps           []stepSpec
	held            float64 // share of the load that was in flight; 1 when 0
}

func (r runSpec) scrapes(s stepSpec) []float64 {
	every, tail := r.every, s.tail
	if every == 0 {
		every = 1
	}
	if tail == 0 {
		tail = 2 * every
	}
	var ts []float64
	for t := math.Ceil(s.start/every) * every; t < s.start+s.length+tail+every/2; t += every {
		if r.skip == nil || !r.skip(t) {
			ts = append(ts, t)
		}
	}
	return ts
}

// write puts the run's series into the world, scrape by scrape, from 0 up to the totals.
func (w *world) write(r runSpec) {
	if r.labels == nil {
		r.labels = []string{"instance", "127.0.0.1:10511", "job", "loadgen", "role", "client"}
	}
	if r.le == nil {
		r.le = labelsFloat
	}
	for _, s := range r.steps {
		for _, t := range r.scrapes(s) {
			base := append(append([]string{signal.LabelRun, r.id}, s.id()...), r.labels...)
			flight := 0.0
			if t >= s.start && t < s.start+s.length {
				flight = float64(s.conc)
			}
			w.put(t, flight, signal.LoadgenInFlight, base...)
			for _, win := range []string{"warmup", "measure", "drain"} {
				w.writeWindow(r, s, win, t, append(base, signal.LabelWindow, win))
			}
		}
	}
}

// labelsFloat writes an edge as Prometheus 3 does.
func labelsFloat(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e6 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func (w *world) writeWindow(r runSpec, s stepSpec, win string, t float64, base []string) {
	with := func(kv ...string) []string { return append(append([]string(nil), base...), kv...) }
	from, to := s.edges(win)
	done := math.Min(1, math.Max(0, (t-from)/(to-from)))
	held := r.held
	if held == 0 {
		held = 1
	}
	part := func(n int) float64 { return math.Floor(done * float64(n)) }
	if t >= from {
		w.put(t, w.t0+from, signal.LoadgenStepStart, base...)
	}
	if t >= to {
		w.put(t, w.t0+to, signal.LoadgenStepEnd, base...)
	}
	for _, o := range wire.Outcomes() {
		w.put(t, part(s.outcomes(win)[string(o)]), signal.LoadgenRequests, with(signal.LabelOutcome, string(o))...)
	}
	for _, k := range wire.TimeoutKinds() {
		n := 0
		if k == wire.TimeoutTotal {
			n = s.outcomes(win)["timeout"]
		}
		w.put(t, part(n), signal.LoadgenTimeouts, with(signal.LabelKind, string(k))...)
	}
	values := s.values(win)[:int(part(len(s.values(win))))]
	ok := float64(len(values))
	w.put(t, float64(within(values, r.threshold)), signal.LoadgenGoodRequests, base...)
	w.put(t, 64*ok, signal.LoadgenOutputTokens, base...)
	w.put(t, 256*ok, signal.LoadgenPromptTokens, base...)
	w.put(t, 10*ok, signal.LoadgenCachedPromptTokens, base...)
	w.put(t, 0, signal.LoadgenUndefined, with(signal.LabelObjective, "ttft")...)
	if win == "measure" {
		w.put(t, part(s.late), signal.LoadgenLateReads, with(signal.LabelObjective, "ttft")...)
	}
	w.put(t, held*done*(to-from)*float64(s.conc), signal.LoadgenInFlightSeconds, base...)
	w.put(t, held*done*(to-from)*float64(s.conc), signal.LoadgenOccupancySeconds, base...)
	w.put(t, 0.01*done*(to-from)*float64(s.conc), signal.LoadgenBackoffSeconds, base...)
	for _, h := range []string{signal.LoadgenTTFT, signal.LoadgenDuration, signal.LoadgenTPOT, signal.LoadgenICL} {
		if r.native {
			w.putHistogram(t, nativeHistogram(values), h, base...)
		}
		if r.classic {
			w.putClassic(r, t, values, h, base)
		}
	}
}

func (w *world) putClassic(r runSpec, t float64, values []float64, name string, base []string) {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	w.put(t, float64(len(values)), name+"_count", base...)
	w.put(t, sum, name+"_sum", base...)
	for _, e := range r.edges {
		w.put(t, float64(within(values, e)), name+"_bucket", append(append([]string(nil), base...), "le", r.le(e))...)
	}
	w.put(t, float64(len(values)), name+"_bucket", append(append([]string(nil), base...), "le", "+Inf")...)
}

func within(values []float64, edge float64) int {
	n := 0
	for _, v := range values {
		if v <= edge {
			n++
		}
	}
	return n
}

// nativeHistogram is what the client library exposes after these values.
func nativeHistogram(values []float64) *histogram.Histogram {
	ph := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", NativeHistogramBucketFactor: 1.1})
	for _, v := range values {
		ph.Observe(v)
	}
	m := &dto.Metric{}
	if err := ph.Write(m); err != nil {
		panic(err)
	}
	d := m.Histogram
	h := &histogram.Histogram{
		Schema: d.GetSchema(), ZeroThreshold: d.GetZeroThreshold(), ZeroCount: d.GetZeroCount(),
		Count: d.GetSampleCount(), Sum: d.GetSampleSum(), PositiveBuckets: d.PositiveDelta,
	}
	for _, s := range d.PositiveSpan {
		h.PositiveSpans = append(h.PositiveSpans, histogram.Span{Offset: s.GetOffset(), Length: s.GetLength()})
	}
	return h
}

// manifest is what loadgen would have written of the run.
func (w *world) manifest(r runSpec) *record.Manifest {
	m := &record.Manifest{
		Schema: record.ManifestSchema, Run: r.id, State: record.Complete, Rounds: 3, Ladder: []int{1, 2, 4},
		StartedAt: w.time(r.steps[0].start), Conditions: map[string]string{"model": "m"},
	}
	for _, s := range r.steps {
		ms := record.ManifestStep{
			Phase: s.phase, Round: s.round, Step: s.step, Concurrency: s.conc, Rate: s.rate, Class: s.class, StartedAt: w.time(s.start), Totals: map[string]record.Totals{},
		}
		ended := w.time(s.start + s.length)
		ms.EndedAt, m.EndedAt = &ended, &ended
		for _, win := range []string{"warmup", "measure", "drain"} {
			o := s.outcomes(win)
			timeouts := map[string]int{}
			for _, k := range wire.TimeoutKinds() {
				timeouts[string(k)] = 0
			}
			timeouts["total"] = o["timeout"]
			ms.Totals[win] = record.Totals{Outcomes: o, Timeouts: timeouts, Good: within(s.values(win), r.threshold), OutputTokens: 64 * o["ok"], PromptTokens: 256 * o["ok"]}
		}
		m.Steps = append(m.Steps, ms)
	}
	return m
}

func (w *world) time(t float64) time.Time {
	return time.UnixMilli(int64(math.Round((w.t0 + t) * 1000)))
}

// spread is n values, of which the first slow are 2 s and the others 0.1 s.
func spread(n, slow int) []float64 {
	vs := make([]float64, n)
	for i := range vs {
		vs[i] = 0.1
		if i < slow {
			vs[i] = 2
		}
	}
	return vs
}

// demoRun is three rounds of two steps.
func demoRun(id string) runSpec {
	r := runSpec{id: id, native: true, classic: true, edges: []float64{0.1, 0.5, 1, 5}, threshold: 1}
	at := 0.0
	for round := 1; round <= 3; round++ {
		r.steps = append(r.steps,
			stepSpec{phase: "baseline", round: round, step: 1, conc: 1, start: at + 0.25, length: 10, ttft: spread(40, 0)},
			stepSpec{phase: "ramp", round: round, step: 1, conc: 2, start: at + 12.25, length: 10, ttft: spread(100, 3), failed: map[string]int{"rejected": 2, "timeout": 1, "aborted": 5}})
		at += 24
	}
	return r
}

func target(t testing.TB, text string) slo.Target {
	t.Helper()
	x, err := slo.ParseTarget(text)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// sloFile has one objective of each per-request kind.
func sloFile(t testing.TB, more ...slo.Objective) *slo.File {
	t.Helper()
	return &slo.File{
		Service: "chat", Engine: signal.VLLM, Path: "slo.yaml",
		Selectors: slo.Selectors{
			Engine: map[string]string{"job": "vllm"}, Host: map[string]string{"job": "exporter"}, GPU: map[string]string{"job": "exporter"},
		},
		Objectives: append([]slo.Objective{
			{Name: "ttft", Layer: slo.User, Kind: slo.Latency, Signal: slo.SignalTTFT, Threshold: time.Second, Target: target(t, "95%")},
			{Name: "success", Layer: slo.User, Kind: slo.Success, Signal: slo.SignalSuccess, Target: target(t, "99%")},
			{Name: "timeouts", Layer: slo.User, Kind: slo.Timeouts, Signal: slo.SignalTimeouts, Target: target(t, "99%")},
		}, more...),
	}
}

// load reads a run that must be readable.
func load(t *testing.T, o query.Options) (*verdict.Run, *query.Log) {
	t.Helper()
	run, log, err := query.Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return run, log
}

func find(t *testing.T, run *verdict.Run, phase string, round int) verdict.Step {
	t.Helper()
	for _, s := range run.Steps {
		if s.Phase == phase && s.Round == round {
			return s
		}
	}
	t.Fatalf("no step %s %d in %d steps", phase, round, len(run.Steps))
	return verdict.Step{}
}
