package report

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"firstbreach/internal/browsertest"
)

// The page as a person has it: a file, opened in a real browser.
func TestInBrowser(t *testing.T) {
	p := browsertest.Open(t)
	d := describe(breachRun())
	file := fileOf(t, d)
	p.Size(1280, 900)
	p.Media("screen", "light")
	p.Go(file)

	seesTheAnswer(t, p, d)
	opensByKeyboard(t, p)
	p.Readable()

	p.Media("screen", "dark")
	if l := browsertest.Eval[float64](p, "luminance(background(document.body))"); l > 0.05 {
		t.Errorf("dark mode: the background's luminance is %.3f", l)
	}
	p.Readable()

	p.Go(file) // as it comes, with the details closed
	p.FitsSideways(390)
	browsertest.Eval[int](p, "document.querySelectorAll('details').forEach(d => d.open = true), 0")
	p.FitsSideways(390)
	if h := browsertest.Eval[float64](p, "Math.min(...[...document.querySelectorAll('svg text')].map(e => e.getBoundingClientRect().height))"); h < 7 {
		t.Errorf("on a phone the smallest text of the charts is %.1f px high", h)
	}

	p.Size(1280, 900)
	p.Go(file)
	printsWhole(t, p)

	requests, errors := p.Seen()
	if want := []string{file}; !slices.Equal(slices.Compact(requests), want) {
		t.Errorf("asked for %q, want nothing but %q", requests, want)
	}
	if len(errors) > 0 {
		t.Errorf("the console says %q", errors)
	}
}

// Names are as long as the files that people write allow, with no place to break them.
func TestLongNamesInBrowser(t *testing.T) {
	p := browsertest.Open(t)
	run := breachRun()
	run.ID, run.Service = strings.Repeat("long_", 12)+"run", strings.Repeat("long_", 12)+"svc"
	name := strings.Repeat("long_", 11) + "objective"
	for i := range run.Steps {
		run.Steps[i].Counts[name] = run.Steps[i].Counts["ttft"]
	}
	run.Objectives[0].Name, run.Objectives[0].Owner = name, name
	p.Go(fileOf(t, describe(run)))
	browsertest.Eval[int](p, "document.querySelectorAll('details').forEach(d => d.open = true), 0")
	p.FitsSideways(390)
}

// fileOf writes a report into a folder of its own and returns its address.
func fileOf(t *testing.T, d *Document) string {
	t.Helper()
	var html bytes.Buffer
	if err := d.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), FileHTML)
	if err := os.WriteFile(path, html.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

func seesTheAnswer(t *testing.T, p *browsertest.Page, d *Document) {
	t.Helper()
	if got := browsertest.Eval[string](p, "document.querySelector('h1').innerText"); got != d.Headline()[0] {
		t.Errorf("the headline is %q, want %q", got, d.Headline()[0])
	}
	if !browsertest.Eval[bool](p, "shown(document.querySelector('h1')) && document.querySelector('h1').getBoundingClientRect().bottom < innerHeight") {
		t.Error("the headline is not on the first screen")
	}
	charts := browsertest.Eval[[]bool](p, "[...document.querySelectorAll('figure svg')].map(s => shown(s) && s.getBoundingClientRect().height > 40)")
	if want := len(d.ladderFigures()) + 1; len(charts) != want || slices.Contains(charts, false) {
		t.Errorf("the charts are shown: %v, want %d", charts, want)
	}
}

// opensByKeyboard goes through the page by tabulator and opens what is closed with the enter key.
func opensByKeyboard(t *testing.T, p *browsertest.Page) {
	t.Helper()
	closed := browsertest.Eval[int](p, "document.querySelectorAll('details:not([open])').length")
	var summaries int
	for range 100 {
		p.Tab()
		at := browsertest.Eval[struct {
			Name, Text string
			Ring       bool
		}](p, "focused()")
		if at.Name == "body" { // past the last
			break
		}
		if !at.Ring {
			t.Errorf("the focus on <%s> %q can't be seen", at.Name, at.Text)
		}
		if at.Name != "summary" {
			continue
		}
		summaries++
		if open := "document.activeElement.parentElement.open"; !browsertest.Eval[bool](p, open) {
			p.Enter()
			if !browsertest.Eval[bool](p, open) {
				t.Errorf("enter doesn't open %q", at.Text)
			}
		}
	}
	all := browsertest.Eval[int](p, "document.querySelectorAll('details').length")
	if closed == 0 || summaries != all {
		t.Errorf("%d of %d summaries had the focus; %d were closed", summaries, all, closed)
	}
}

// printsWhole looks at the page on paper, where nothing can be opened any more.
func printsWhole(t *testing.T, p *browsertest.Page) {
	t.Helper()
	p.Media("print", "dark")
	if l := browsertest.Eval[float64](p, "luminance(background(document.body))"); l < 0.95 {
		t.Errorf("print: the background's luminance is %.3f", l)
	}
	p.Readable()
	hidden := browsertest.Eval[[]string](p, "[...document.querySelectorAll('details')].filter(d => ![...d.children].every(shown)).map(d => d.innerText)")
	if len(hidden) > 0 {
		t.Errorf("not printed: %s", strings.Join(hidden, ", "))
	}
	p.Media("", "dark")
	if n := p.Print(); n < 1 {
		t.Errorf("%d pages", n)
	}
}
