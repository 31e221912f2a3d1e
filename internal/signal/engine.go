package signal

import (
	"fmt"
	"strings"
)

// Engine is one catalogue entry: something that exports metrics, and what it calls each signal.
type Engine struct {
	Name  string // as in slo.yaml
	Title string // as its makers write it
	// Enable says what must be switched on before there is a page; "" when it always is.
	Enable string
	// Layer is the layer of what it reports: an engine's latency is a service reading even where
	// the user's objective has the same name, because the engine doesn't see what lies before it.
	Layer string

	candidates map[string][]Metric
	missing    map[string]string
}

// The catalogue entries.
const (
	VLLM     = "vllm"
	SGLang   = "sglang"
	TGI      = "tgi"
	LlamaCPP = "llamacpp"
	Triton   = "triton"
	OTel     = "otel"
	Gateway  = "gateway"
	Probe    = "probe"
)

// Names returns the engines that slo.yaml may name.
func Names() []string {
	return []string{VLLM, SGLang, TGI, LlamaCPP, Triton, OTel, Gateway, Probe}
}

// Lookup returns the catalogue entry of an engine; the error lists the known ones.
func Lookup(engine string) (*Engine, error) {
	switch engine {
	case VLLM:
		return vllm(), nil
	case SGLang:
		return sglang(), nil
	case TGI:
		return tgi(), nil
	case LlamaCPP:
		return llamacpp(), nil
	case Triton:
		return triton(), nil
	case OTel:
		return otel(), nil
	case Gateway:
		return gateway(), nil
	case Probe:
		return probe(), nil
	case "ollama":
		return nil, fmt.Errorf("engine %q has no metrics of its own: use %q, which reads what `loadgen probe` measures", engine, Probe)
	}
	return nil, fmt.Errorf("unknown engine %q: use one of %s", engine, strings.Join(Names(), ", "))
}

// Candidates returns the metrics that may carry the signal, the newest name first; nil when the
// engine has none, for which Reason has the reason.
func (e *Engine) Candidates(signal string) []Metric { return e.candidates[signal] }

// Reason says why the engine has no metric for the signal; "" when it has one.
func (e *Engine) Reason(signal string) string {
	if len(e.candidates[signal]) > 0 {
		return ""
	}
	if r, ok := e.missing[signal]; ok {
		return r
	}
	return e.Title + " has no metric for it"
}

// Signals returns the signals that the engine has candidates for, in the catalogue's order.
func (e *Engine) Signals() []Signal {
	var have []Signal
	for _, s := range Signals() {
		if len(e.candidates[s.Name]) > 0 {
			have = append(have, s)
		}
	}
	return have
}

// gauge is a gauge read as it is.
func gauge(name, unit string, agg Aggregate, labels ...string) Metric {
	return Metric{Term: Term{Name: name}, Type: Gauge, Unit: unit, Scale: 1, Labels: labels, Aggregate: agg, Reading: ReadValue}
}

// counter is a counter read as a rate, summed over its series.
func counter(name, unit string, labels ...string) Metric {
	return Metric{Term: Term{Name: name}, Type: Counter, Unit: unit, Scale: 1, Labels: labels, Aggregate: Sum, Reading: ReadRate}
}

// histogram is a histogram of seconds, read as its mean.
func histogram(name string, buckets []float64, labels ...string) Metric {
	return Metric{Term: Term{Name: name}, Type: Histogram, Unit: UnitSeconds, Scale: 1, Labels: labels, Buckets: buckets, Aggregate: Sum, Reading: ReadMean}
}

func (m Metric) since(v string) Metric    { m.Since = v; return m }
func (m Metric) until(v string) Metric    { m.Until = v; return m }
func (m Metric) optional() Metric         { m.Optional = true; return m }
func (m Metric) note(text string) Metric  { m.Note = text; return m }
func (m Metric) scale(x float64) Metric   { m.Scale = x; return m }
func (m Metric) read(r Reading) Metric    { m.Reading = r; return m }
func (m Metric) of(terms ...Term) Metric  { m.Of = terms; return m }
func (m Metric) maybeAbsent() Metric      { m.MayBeAbsent = true; return m }
func (m Metric) named(name string) Metric { m.Name = name; return m }

func (m Metric) match(label string, values ...string) Metric {
	m.Match = map[string][]string{label: values}
	return m
}

// aliased returns the candidates with, after each one, the same under the names that exporters
// and proxies give it: old is the prefix in the catalogue, prefixes replace it.
func aliased(ms []Metric, old, why string, prefixes ...string) []Metric {
	var out []Metric
	for _, m := range ms {
		out = append(out, m)
		rest, ok := strings.CutPrefix(m.Name, old)
		if !ok {
			continue
		}
		for _, p := range prefixes {
			a := m.named(p + rest).note(why)
			a.Alias = true
			a.Of = nil
			for _, t := range m.Of {
				t.Name = strings.Replace(t.Name, old, p, 1)
				a.Of = append(a.Of, t)
			}
			out = append(out, a)
		}
	}
	return out
}
