package signal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func everyEngine(t *testing.T) []*Engine {
	t.Helper()
	engines := []*Engine{Host(), GPU()}
	for _, name := range Names() {
		e, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if e.Name != name {
			t.Errorf("Lookup(%q) is called %q", name, e.Name)
		}
		engines = append(engines, e)
	}
	return engines
}

func TestSignals(t *testing.T) {
	layers := []string{LayerUser, LayerService, LayerResource}
	units := []string{UnitSeconds, UnitRatio, UnitBytes, UnitBytesPerSecond, UnitRequests, UnitRequestsPerSecond,
		UnitTokensPerSecond, UnitPerSecond, UnitProcesses, UnitWatts, UnitCelsius}
	seen := map[string]bool{}
	last := 0
	for _, s := range Signals() {
		if seen[s.Name] {
			t.Errorf("%s is there twice", s.Name)
		}
		seen[s.Name] = true
		layer := slices.Index(layers, s.Layer)
		if layer < last {
			t.Errorf("%s: layer %q is unknown or out of order", s.Name, s.Layer)
		}
		last = layer
		if !slices.Contains(units, s.Unit) {
			t.Errorf("%s: unit %q is not one of the catalogue's", s.Name, s.Unit)
		}
		if s.Help == "" || s.Source == "" {
			t.Errorf("%s has no help or no source", s.Name)
		}
		if !Known(s.Name) {
			t.Errorf("%s is not known", s.Name)
		}
	}
	if Known("vibes") {
		t.Error("vibes is known")
	}
}

func TestLookupUnknown(t *testing.T) {
	_, err := Lookup("vlm")
	if err == nil || !strings.Contains(err.Error(), "vllm, sglang, tgi, llamacpp, triton, otel, gateway, probe") {
		t.Errorf("the error does not list the known engines: %v", err)
	}
	if _, err := Lookup("ollama"); err == nil || !strings.Contains(err.Error(), "probe") {
		t.Errorf("ollama: %v", err)
	}
}

// Each engine has, for each signal of its sources, candidates or a reason, never both.
func TestEveryEngineAnswersForEverySignal(t *testing.T) {
	for _, e := range everyEngine(t) {
		for name := range e.candidates {
			if !Known(name) {
				t.Errorf("%s has candidates for the unknown signal %q", e.Name, name)
			}
		}
		for name := range e.missing {
			if !Known(name) {
				t.Errorf("%s has a reason for the unknown signal %q", e.Name, name)
			}
			if len(e.Candidates(name)) > 0 {
				t.Errorf("%s: %s has candidates and a reason to have none", e.Name, name)
			}
		}
		for _, s := range Signals() {
			own := s.Source == e.Name || s.Source == SourceEngine && e.Name != SourceHost && e.Name != SourceGPU
			switch have := len(e.Candidates(s.Name)) > 0; {
			case own && !have && e.missing[s.Name] == "":
				t.Errorf("%s: %s has neither a candidate nor a reason", e.Name, s.Name)
			case !own && have:
				t.Errorf("%s: %s belongs to %s", e.Name, s.Name, s.Source)
			case have != (e.Reason(s.Name) == ""):
				t.Errorf("%s: %s: Reason() = %q", e.Name, s.Name, e.Reason(s.Name))
			}
		}
	}
}

func TestCandidates(t *testing.T) {
	name := regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	for _, e := range everyEngine(t) {
		for _, s := range Signals() {
			seen := map[string]bool{}
			for _, m := range e.Candidates(s.Name) {
				at := e.Name + ": " + s.Name + ": " + m.Name
				if !name.MatchString(m.Name) {
					t.Errorf("%s: not a metric name", at)
				}
				if seen[m.Name] {
					t.Errorf("%s is there twice", at)
				}
				seen[m.Name] = true
				checkMetric(t, at, m)
			}
		}
	}
}

func checkMetric(t *testing.T, at string, m Metric) {
	t.Helper()
	fits := map[Reading][]Type{
		ReadValue:          {Gauge},
		ReadRate:           {Counter},
		ReadMean:           {Histogram, Summary},
		ReadRatio:          {Gauge},
		ReadRateRatio:      {Counter},
		ReadRemainder:      {Gauge},
		ReadRemainderRatio: {Gauge},
		ReadRateRemainder:  {Counter},
	}
	if !slices.Contains(fits[m.Reading], m.Type) {
		t.Errorf("%s: a %s can't be read as %q", at, m.Type, m.Reading)
	}
	needsOf := !slices.Contains([]Reading{ReadValue, ReadRate, ReadMean}, m.Reading)
	if needsOf != (len(m.Of) > 0) {
		t.Errorf("%s: reading %s with terms %v", at, m.Reading, m.Of)
	}
	if m.Aggregate != Sum && m.Aggregate != Max {
		t.Errorf("%s: aggregate %q", at, m.Aggregate)
	}
	if m.Scale <= 0 || m.Unit == "" {
		t.Errorf("%s: unit %q, scale %v", at, m.Unit, m.Scale)
	}
	if (m.Buckets != nil) && m.Type != Histogram {
		t.Errorf("%s: a %s has no buckets", at, m.Type)
	}
	if !slices.IsSorted(m.Buckets) || len(slices.Compact(slices.Clone(m.Buckets))) != len(m.Buckets) {
		t.Errorf("%s: buckets aren't sorted: %v", at, m.Buckets)
	}
	for _, labels := range []map[string][]string{m.Match, m.Except} {
		for l := range labels {
			if !slices.Contains(m.Labels, l) {
				t.Errorf("%s: matches on %q, which is not one of its labels %v", at, l, m.Labels)
			}
		}
	}
}

func TestAliases(t *testing.T) {
	e, err := Lookup(SGLang)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range e.Candidates(SignalSuccessRatio) {
		names = append(names, m.Name, m.Of[0].Name)
	}
	want := []string{"sglang:http_responses_total", "sglang:http_responses_total", "sglang_http_responses_total", "sglang_http_responses_total"}
	if !slices.Equal(names, want) {
		t.Errorf("names = %v, want %v", names, want)
	}
}

func TestNearestEdge(t *testing.T) {
	e, _ := Lookup(VLLM)
	ttft := e.Candidates(SignalTTFT)[0]
	e, _ = Lookup(Triton)
	ms := e.Candidates(SignalTTFT)[0]
	e, _ = Lookup(Probe)
	unknown := e.Candidates(SignalTTFT)[0]
	for _, c := range []struct {
		m         Metric
		threshold float64
		edge      float64
		exact, ok bool
	}{
		{ttft, 0.75, 0.75, true, true},
		{ttft, 0.8, 0.75, false, true},
		{ttft, 2, 2.5, false, true},
		{ttft, 1.75, 1, false, true}, // equally near: the stricter
		{ttft, 1e-9, 0.001, false, true},
		{ttft, 1e9, 2560, false, true},
		{ms, 0.5, 0.5, true, true},
		{ms, 0.1, 0.1, true, true},
		{ms, 0.7, 0.5, false, true},
		{unknown, 0.75, 0, false, false},
	} {
		edge, exact, ok := c.m.NearestEdge(c.threshold)
		if edge != c.edge || exact != c.exact || ok != c.ok {
			t.Errorf("%s: NearestEdge(%v) = %v, %v, %v; want %v, %v, %v", c.m.Name, c.threshold, edge, exact, ok, c.edge, c.exact, c.ok)
		}
	}
}

// ownNames returns the constants of own.go that are metric names.
func ownNames(t *testing.T) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "own.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, id := range spec.Names {
			lit, isLit := spec.Values[i].(*ast.BasicLit)
			if !isLit || strings.HasPrefix(id.Name, "Label") || strings.HasPrefix(id.Name, "Role") {
				continue
			}
			value, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			names[id.Name] = value
		}
		return true
	})
	return names
}

// promlint knows neither watts nor ratios, so our own names have rules of their own here.
func TestOwnNames(t *testing.T) {
	names := ownNames(t)
	if len(names) < 40 {
		t.Fatalf("only %d names found in own.go", len(names))
	}
	name := regexp.MustCompile(`^(loadgen|host|nvidia_gpu|nvml|exporter)_[a-z0-9_]*[a-z0-9]$`)
	foreign := regexp.MustCompile(`_(ms|milliseconds|minutes|percent|kb|mb|mib|kib|megahertz|milliwatts|count)(_|$)`)
	seen := map[string]string{}
	for id, n := range names {
		if other, ok := seen[n]; ok {
			t.Errorf("%s and %s are both %s", id, other, n)
		}
		seen[n] = id
		if !name.MatchString(n) {
			t.Errorf("%s: %q does not fit our naming", id, n)
		}
		if foreign.MatchString(n) {
			t.Errorf("%s: %q is not in base units, or has a reserved suffix", id, n)
		}
	}
}

// Our own names are candidates under the same spelling, with a suffix that fits their type.
func TestOwnCandidatesUseOwnNames(t *testing.T) {
	own := map[string]bool{}
	for _, n := range ownNames(t) {
		own[n] = true
	}
	for _, e := range everyEngine(t) {
		for _, s := range e.Signals() {
			for _, m := range e.Candidates(s.Name) {
				ours := regexp.MustCompile(`^(loadgen|host|nvidia_gpu)_`).MatchString(m.Name)
				if ours != own[m.Name] {
					t.Errorf("%s: %s is spelled here and not in own.go", e.Name, m.Name)
				}
				if ours && (m.Type == Counter) != strings.HasSuffix(m.Name, "_total") {
					t.Errorf("%s is a %s", m.Name, m.Type)
				}
			}
		}
	}
}
