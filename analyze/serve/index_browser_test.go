package serve

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"firstbreach/analyze/window"
	"firstbreach/internal/browsertest"
)

// The index on a phone: four days of reports, one of each verdict, and a service with a long name.
func TestIndexInBrowser(t *testing.T) {
	p := browsertest.Open(t)
	long := "recommendations_of_" + strings.Repeat("checkout_", 4) + "eu_1"
	b := newBench(t, strings.Replace(configText, "keep: 3d", "keep: 30d", 1), "chat", long)
	b.at(start())
	verdicts := []window.State{window.OK, window.Undecided, window.NoData, window.Breach}
	for day, v := range verdicts {
		b.result.Verdict = v
		b.at(start().AddDate(0, 0, day).Add(15 * time.Minute))
	}
	h, err := b.Handler()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	defer s.Close()

	for _, scheme := range []string{"light", "dark"} {
		p.Media("screen", scheme)
		if status := p.Go(s.URL); status != http.StatusOK {
			t.Fatalf("the index: %d", status)
		}
		p.FitsSideways(390)
		browsertest.Eval[int](p, "document.querySelectorAll('details').forEach(d => d.open = true), 0")
		p.FitsSideways(390)
		p.Readable()
	}
	words := "[...document.querySelectorAll('b')].filter(e => shown(e) && e.getBoundingClientRect().right <= innerWidth).map(e => e.innerText)"
	got := browsertest.Eval[[]string](p, words)
	if want := []string{"breach", "no data", "undecided", "ok"}; !slices.Equal(got, slices.Concat(want, want)) {
		t.Errorf("the verdicts read %q, want %q of each service", got, want)
	}
	links := browsertest.Eval[[]string](p, "[...document.links].filter(shown).map(a => a.href)")
	if want := 2 * len(verdicts); len(links) != want {
		t.Errorf("%d links, want %d: %q", len(links), want, links)
	}
	followAll(t, p, links)
	if _, errors := p.Seen(); len(errors) > 0 {
		t.Errorf("the console says %q", errors)
	}
}

// followAll opens what the index links to, each the report that its address names.
func followAll(t *testing.T, p *browsertest.Page, links []string) {
	t.Helper()
	for _, link := range links {
		if status := p.Go(link); status != http.StatusOK {
			t.Errorf("%s: %d", link, status)
		}
		service := strings.Split(link, "/")[4]
		if h1 := browsertest.Eval[string](p, "document.querySelector('h1').innerText"); !strings.Contains(h1, service) {
			t.Errorf("%s is headed %q, want a report of %q", link, h1, service)
		}
		p.FitsSideways(390)
	}
}
