package signal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// maxPage bounds what is read of a page, in bytes.
const maxPage = 64 << 20

// Page is one metrics page, read once.
type Page struct {
	families map[string]*dto.MetricFamily
}

// ReadPage parses a page in Prometheus's text format.
func ReadPage(r io.Reader) (*Page, error) {
	limited := &io.LimitedReader{R: r, N: maxPage + 1}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(limited)
	if limited.N <= 0 {
		return nil, fmt.Errorf("the metrics page is larger than %d MiB: is it the right URL?", maxPage>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("not a page in Prometheus's text format: %w", err)
	}
	return &Page{families: families}, nil
}

// FetchPage reads the page at url.
func FetchPage(ctx context.Context, client *http.Client, url string) (*Page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err // names the method and the URL already
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", req.URL.Redacted(), resp.Status)
	}
	page, err := ReadPage(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", req.URL.Redacted(), err)
	}
	return page, nil
}

// Names returns the names of the page's metric families, sorted.
func (p *Page) Names() []string {
	names := make([]string, 0, len(p.families))
	for name := range p.families {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Presence says which of an engine's signals a page carries.
type Presence struct {
	Engine string
	// Found has, for each signal that is there, the newest candidate present. Its buckets are
	// those of the page where the page has the histogram.
	Found map[string]Metric
	// Missing has the reason for each signal that is not.
	Missing map[string]string
	// Warnings name what is there but not as the catalogue has it.
	Warnings []string
}

// ErrNoSignal is wrapped by the error of a page that carries none of the engine's signals.
var ErrNoSignal = errors.New("none of the engine's metrics are there")

// Presence looks for the engine's signals on the page. It is an error when none is there.
func (p *Page) Presence(e *Engine) (*Presence, error) {
	found := &Presence{Engine: e.Name, Found: map[string]Metric{}, Missing: map[string]string{}}
	for _, s := range Signals() {
		candidates := e.Candidates(s.Name)
		if len(candidates) == 0 {
			found.Missing[s.Name] = e.Reason(s.Name)
			continue
		}
		i := slices.IndexFunc(candidates, p.has)
		if i < 0 {
			found.Missing[s.Name] = absent(candidates)
			continue
		}
		m := candidates[i]
		if w := p.differs(&m); w != "" {
			found.Warnings = append(found.Warnings, w)
		}
		found.Found[s.Name] = m
	}
	if len(found.Found) == 0 {
		return nil, p.nothing(e)
	}
	return found, nil
}

// Probe reads a page once and looks for the engine's signals on it.
func (e *Engine) Probe(r io.Reader) (*Presence, error) {
	page, err := ReadPage(r)
	if err != nil {
		return nil, e.hint(err)
	}
	return page.Presence(e)
}

// ProbeURL is Probe of the page at url.
func (e *Engine) ProbeURL(ctx context.Context, client *http.Client, url string) (*Presence, error) {
	page, err := FetchPage(ctx, client, url)
	if err != nil {
		return nil, e.hint(err)
	}
	return page.Presence(e)
}

func (e *Engine) hint(err error) error {
	if e.Enable == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, e.Enable)
}

// Detect returns the engines whose signals the page carries, the one with the most first.
func (p *Page) Detect() []*Engine {
	var engines []*Engine
	signals := map[string]int{}
	for _, name := range Names() {
		e, err := Lookup(name)
		if err != nil {
			continue
		}
		if found, err := p.Presence(e); err == nil {
			engines = append(engines, e)
			signals[name] = len(found.Found)
		}
	}
	slices.SortStableFunc(engines, func(a, b *Engine) int { return signals[b.Name] - signals[a.Name] })
	return engines
}

// has reports whether the page carries the metric and what it is taken of.
func (p *Page) has(m Metric) bool {
	if _, ok := m.Family(p.hasFamily); !ok {
		return false
	}
	for _, t := range m.Of {
		if _, ok := t.Family(p.hasFamily); !ok && !t.MayBeAbsent {
			return false
		}
	}
	return true
}

func (p *Page) hasFamily(name string) bool { return p.families[name] != nil }

// differs takes over the page's own bucket edges and says what else is not as catalogued.
func (p *Page) differs(m *Metric) string {
	name, _ := m.Family(p.hasFamily)
	family := p.families[name]
	if got, ok := typeOf(family); ok && name == m.Name && got != m.Type {
		return fmt.Sprintf("%s is a %s, the catalogue has a %s", name, got, m.Type)
	}
	if m.Type != Histogram || name != m.Name {
		return ""
	}
	edges := edgesOf(family)
	known := m.Buckets
	if len(edges) == 0 {
		return fmt.Sprintf("%s has no classic buckets", name)
	}
	m.Buckets = edges
	if known != nil && !slices.EqualFunc(known, edges, nearly) {
		return fmt.Sprintf("%s has other bucket edges than the catalogue: %v", name, edges)
	}
	return ""
}

// nearly ignores the last digits: an edge may be printed shorter than it is computed.
func nearly(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(math.Abs(a), math.Abs(b)) }

// typeOf returns the type of a family; not ok where the page leaves it open.
func typeOf(f *dto.MetricFamily) (Type, bool) {
	switch f.GetType() {
	case dto.MetricType_GAUGE:
		return Gauge, true
	case dto.MetricType_COUNTER:
		return Counter, true
	case dto.MetricType_HISTOGRAM:
		return Histogram, true
	case dto.MetricType_SUMMARY:
		return Summary, true
	}
	return "", false
}

// edgesOf returns the finite bucket edges of a histogram's first series.
func edgesOf(f *dto.MetricFamily) []float64 {
	var edges []float64
	for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
		if !math.IsInf(b.GetUpperBound(), 1) {
			edges = append(edges, b.GetUpperBound())
		}
	}
	return edges
}

// absent says what was looked for.
func absent(candidates []Metric) string {
	reason := candidates[0].Name + " is not on the page"
	if len(candidates) > 1 {
		reason += fmt.Sprintf(", nor are %d other names of it", len(candidates)-1)
	}
	if candidates[0].Optional || candidates[0].MayBeAbsent {
		reason += " (optional, or not before its first event)"
	}
	return reason
}

// nothing is the error of a page without any of the engine's signals.
func (p *Page) nothing(e *Engine) error {
	err := fmt.Errorf("no metric of %s on a page of %d families: %w", e.Title, len(p.families), ErrNoSignal)
	for _, name := range Names() {
		other, lookupErr := Lookup(name)
		if lookupErr != nil || name == e.Name {
			continue
		}
		for _, s := range other.Signals() {
			if slices.ContainsFunc(other.Candidates(s.Name), p.has) {
				return fmt.Errorf("%w; it looks like %s: set engine: %s", err, other.Title, strings.ToLower(other.Name))
			}
		}
	}
	return e.hint(err)
}
