// Package browsertest opens pages in a headless Chromium, for tests of what a person sees of them. It
// knows a browser and nothing of what a page should say; only tests import it.
package browsertest

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

//go:embed look.js
var look string //nolint:gochecknoglobals // an embedded file

// names are the browsers that are looked for in PATH, in this order.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} //nolint:gochecknoglobals // a constant list

// limit is how long all that a test does with its page may take.
const limit = 60 * time.Second

// Page is one tab of a browser of its own, which ends with the test.
type Page struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	requests []string
	errors   []string
}

// Open starts a browser; without one in PATH it skips the test.
func Open(t testing.TB) *Page {
	t.Helper()
	p := &Page{TB: t}
	// A browser refuses root its sandbox, and the /dev/shm of a container is too small for it.
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(browser(t)), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true))
	ctx, stop := context.WithTimeout(context.Background(), limit)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(stop)
	p.ctx, stop = chromedp.NewContext(ctx, chromedp.WithListener(p.note))
	t.Cleanup(stop)
	p.do("start the browser")
	return p
}

func browser(t testing.TB) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("no browser to look at the page with: none of %s is in PATH", strings.Join(names, ", "))
	return ""
}

// note keeps what a page asked for and what it complained of.
func (p *Page) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		p.errors = append(p.errors, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		p.errors = append(p.errors, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.errors = append(p.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// Seen are the addresses that were asked for and the errors of the console since the browser started.
func (p *Page) Seen() (requests, errors []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests), slices.Clone(p.errors)
}

func (p *Page) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// Go loads an address and returns the status of the answer (of a file, 200).
func (p *Page) Go(url string) int64 {
	p.Helper()
	r, err := chromedp.Run(p.ctx, chromedp.NavigateResponse(url))
	if err != nil {
		p.Fatalf("%s: %v", url, err)
	}
	p.do("look.js", chromedp.Evaluate[chromedp.Void](look))
	return r.Status
}

// Size sets what the window shows, in CSS pixels.
func (p *Page) Size(width, height int64) {
	p.Helper()
	p.do("size", chromedp.EmulateViewport(width, height))
}

// Media emulates a medium ("screen", "print") and a colour scheme ("light", "dark").
func (p *Page) Media(medium, scheme string) {
	p.Helper()
	p.do("media", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
}

// Tab presses the tabulator key.
func (p *Page) Tab() { p.Helper(); p.do("tab", chromedp.KeyEvent(kb.Tab)) }

// Enter presses the enter key.
func (p *Page) Enter() { p.Helper(); p.do("enter", chromedp.KeyEvent(kb.Enter)) }

// Eval is the value of a JavaScript expression in the page; the functions of look.js are there.
func Eval[T any](p *Page, expression string) T {
	p.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

var pdfPage = regexp.MustCompile(`/Type\s*/Page\b[^s]`)

// Print prints to a PDF and counts its pages; the browser writes their objects uncompressed.
func (p *Page) Print() int {
	p.Helper()
	pdf, err := chromedp.Run(p.ctx, chromedp.PrintToPDF())
	if err != nil {
		p.Fatalf("print: %v", err)
	}
	return len(pdfPage.FindAll(pdf, -1))
}

// FitsSideways fails where a page of this width has to be scrolled sideways, and names what sticks out.
func (p *Page) FitsSideways(width int64) {
	p.Helper()
	p.Size(width, 844)
	if got := Eval[int64](p, "document.scrollingElement.scrollWidth"); got > width {
		p.Errorf("at %d px the page is %d px wide: %q", width, got, Eval[[]string](p, "sticksOut()"))
	}
}

// Readable fails where the contrast of a shown text to what is behind it is below 4.5, the least that
// WCAG 2.2 (1.4.3, level AA) asks for text of this size.
func (p *Page) Readable() {
	p.Helper()
	if n := Eval[int](p, "texts().length"); n == 0 {
		p.Error("no text is shown")
	}
	for _, s := range Eval[[]string](p, "faint(4.5)") {
		p.Errorf("too faint: %s", s)
	}
}
