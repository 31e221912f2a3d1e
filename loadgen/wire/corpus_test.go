package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// corpusCase is one line of testdata/corpus/expect.json. Times are numbers of reads, counted from
// 1: read k comes k × 10 ms after the request. 0 means undefined.
type corpusCase struct {
	File        string `json:"file"`
	Vector      int    `json:"vector"`
	API         string `json:"api"`
	ContentType string `json:"content_type"`
	Cuts        string `json:"cuts"` // "" one event a read, "data" one "data:" line a read, "whole" all in one

	Outcome     Outcome   `json:"outcome"`
	FirstEvent  int       `json:"first_event"`
	TTFT        int       `json:"ttft"`
	FirstText   int       `json:"first_text"`
	E2E         int       `json:"e2e"`
	Failed      int       `json:"failed"`
	Chunks      int       `json:"chunks"`
	Comments    int       `json:"comments"`
	Prompt      int       `json:"prompt"`
	Cached      int       `json:"cached"`
	Tokens      int       `json:"tokens"`
	TokenSource string    `json:"token_source"`
	TPOTms      *float64  `json:"tpot_ms"`
	TPOTns      *float64  `json:"tpot_ns"`
	GapsMS      []float64 `json:"gaps_ms"`
	QueueMS     *float64  `json:"queue_ms"`
	QueueSource string    `json:"queue_source"`
	Warnings    []string  `json:"warnings"`
	Error       string    `json:"error"` // a part of it; "" means any
}

func corpus(t testing.TB) []corpusCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/corpus/expect.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []corpusCase
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&cases); err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		if cases[i].API == "" {
			cases[i].API = "openai-chat"
		}
		if cases[i].ContentType == "" {
			cases[i].ContentType = "text/event-stream"
		}
	}
	return cases
}

// parts returns the body of a case as the reads that bring it.
func (c corpusCase) parts(t testing.TB, f framing) []segment {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata/corpus", c.File))
	if err != nil {
		t.Fatal(err)
	}
	switch c.Cuts {
	case "whole":
		return []segment{{10 * time.Millisecond, body}}
	case "data":
		var parts []segment
		for _, p := range bytes.SplitAfter(body, []byte("\n\n")) {
			if n := len(parts); n > 0 && !bytes.Contains(parts[n-1].data, []byte("data:")) {
				parts[n-1].data = append(parts[n-1].data, p...)
			} else if len(p) > 0 {
				parts = append(parts, segment{time.Duration(n+1) * 10 * time.Millisecond, bytes.Clone(p)})
			}
		}
		return parts
	}
	return events(body, f)
}

// view is the part of a Result that the corpus fixes, in a form that reads well in a diff.
type view struct {
	Outcome                                                           Outcome
	FirstEvent, TTFT, FirstText, E2E, Failed, TPOT, Queue, Gaps       string
	Chunks, Comments                                                  int
	Prompt, Cached, Tokens, TokenSource, QueueSource, Warnings, Error string
}

func (c corpusCase) want() view {
	read := func(n int) string {
		if n == 0 {
			return ""
		}
		return (time.Duration(n) * 10 * time.Millisecond).String()
	}
	num := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	ms := func(v *float64) string {
		if v == nil {
			return ""
		}
		return time.Duration(*v * float64(time.Millisecond)).String()
	}
	v := view{
		Outcome: c.Outcome, FirstEvent: read(c.FirstEvent), TTFT: read(c.TTFT), FirstText: read(c.FirstText), E2E: read(c.E2E), Failed: read(c.Failed),
		TPOT: ms(c.TPOTms), Queue: ms(c.QueueMS), Chunks: c.Chunks, Comments: c.Comments, Prompt: num(c.Prompt), Cached: num(c.Cached),
		Tokens: num(c.Tokens), TokenSource: c.TokenSource, QueueSource: c.QueueSource, Warnings: strings.Join(c.Warnings, " "),
	}
	if c.TPOTns != nil {
		v.TPOT = time.Duration(*c.TPOTns).String()
	}
	for _, g := range c.GapsMS {
		v.Gaps += ms(&g) + " "
	}
	return v
}

func viewOf(r Result) view {
	dur := func(d *time.Duration) string {
		if d == nil {
			return ""
		}
		return d.String()
	}
	num := func(n *int) string {
		if n == nil {
			return ""
		}
		return fmt.Sprint(*n)
	}
	v := view{
		Outcome: r.Outcome, FirstEvent: dur(r.FirstEvent), TTFT: dur(r.TTFT), FirstText: dur(r.FirstText), E2E: dur(r.E2E), Failed: dur(r.FailedAt),
		TPOT: dur(r.TPOT), Queue: dur(r.QueueWait), Chunks: r.Chunks, Comments: r.Comments, Prompt: num(r.PromptTokens), Cached: num(r.CachedPromptTokens),
		Tokens: num(r.OutputTokens), TokenSource: string(r.TokenSource), QueueSource: r.QueueWaitSource, Warnings: strings.Join(r.Warnings, " "),
	}
	for _, g := range r.Gaps {
		v.Gaps += g.String() + " "
	}
	return v
}

// check compares r with what the case wants, its exact times included.
func (c corpusCase) check(t *testing.T, r Result) {
	t.Helper()
	got, want := viewOf(r), c.want()
	if want.Failed == "" {
		got.Failed = "" // the end of a truncated stream is looked at by no case
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", c.File, d)
	}
	if !strings.Contains(r.Error, c.Error) || (r.Error == "") != (r.Outcome == OK) {
		t.Errorf("%s: error %q, want one with %q", c.File, r.Error, c.Error)
	}
}

func TestCorpusThroughHTTP(t *testing.T) {
	for _, c := range corpus(t) {
		t.Run(c.File, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newTestClient(t, c.API, Options{})
				c.check(t, play(t, client, chunked(c.ContentType, c.parts(t, client.dialect.framing()))))
			})
		})
	}
}

// TestCorpusAtEverySplit has each body come in two reads cut at every byte, and byte by byte: what
// is counted must not depend on the cut.
func TestCorpusAtEverySplit(t *testing.T) {
	for _, c := range corpus(t) {
		t.Run(c.File, func(t *testing.T) {
			client := newTestClient(t, c.API, Options{})
			contentType, _, _ := strings.Cut(c.ContentType, ";")
			var body []byte
			for _, p := range c.parts(t, client.dialect.framing()) {
				body = append(body, p.data...)
			}
			timeless := func(v view) view {
				v.FirstEvent, v.TTFT, v.FirstText, v.E2E, v.Failed, v.TPOT, v.Gaps, v.Queue = "", "", "", "", "", "", "", ""
				v.QueueSource, v.Warnings = "", "" // a queue wait is checked against the client's own times
				return v
			}
			want := timeless(c.want())
			step := max(1, len(body)/100) // every cut is in the replay byte by byte below
			for cut := 1; cut < len(body); cut += step {
				got := timeless(viewOf(decode(client, contentType, []segment{{1, body[:cut]}, {2, body[cut:]}})))
				if got != want {
					t.Fatalf("cut at %d (-want +got):\n%s", cut, cmp.Diff(want, got))
				}
			}
			var bytewise []segment
			for i := range body {
				bytewise = append(bytewise, segment{time.Duration(i + 1), body[i : i+1]})
			}
			r := decode(client, contentType, bytewise)
			if got := timeless(viewOf(r)); got != want {
				t.Fatalf("byte by byte (-want +got):\n%s", cmp.Diff(want, got))
			}
			if c.TTFT > 1 && (r.TTFT == nil || *r.TTFT <= *r.FirstEvent) {
				t.Errorf("byte by byte: TTFT %v, first event %v", r.TTFT, r.FirstEvent)
			}
		})
	}
}

// TestCorpusOverLoopback sends each body through real sockets, whole and cut in two at every place that
// matters: two segments of one HTTP chunk, a little apart.
func TestCorpusOverLoopback(t *testing.T) {
	cases := corpus(t)
	bodies := map[string][]byte{}
	for _, c := range cases {
		body, err := os.ReadFile(filepath.Join("testdata/corpus", c.File))
		if err != nil {
			t.Fatal(err)
		}
		bodies[c.File] = body
	}
	url := serveCuts(t, cases, bodies)
	for _, c := range cases {
		t.Run(c.File, func(t *testing.T) {
			client := newTestClient(t, c.API, Options{BaseURL: url})
			defer client.CloseIdle()
			want := c.want()
			cuts := make(chan int)
			var workers sync.WaitGroup
			for range 8 {
				workers.Go(func() {
					for cut := range cuts {
						r := client.Do(t.Context(), fmt.Appendf(nil, `{"case":%q,"cut":%d}`, c.File, cut))
						got := viewOf(r)
						if got.Outcome != want.Outcome || got.Chunks != want.Chunks || got.Tokens != want.Tokens || got.TokenSource != want.TokenSource || got.Prompt != want.Prompt ||
							got.Comments != want.Comments || (got.TTFT == "") != (want.TTFT == "") || (got.E2E == "") != (want.E2E == "") || (got.TPOT == "") != (want.TPOT == "") {
							t.Errorf("cut at %d (-want +got):\n%s", cut, cmp.Diff(want, got))
						}
					}
				})
			}
			for _, cut := range cutsOf(bodies[c.File]) {
				cuts <- cut
			}
			close(cuts)
			workers.Wait()
		})
	}
}

// serveCuts answers with a case of the corpus, cut where the request says.
func serveCuts(t *testing.T, cases []corpusCase, bodies map[string][]byte) (url string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct {
			Case string
			Cut  int
		}
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		i := slices.IndexFunc(cases, func(c corpusCase) bool { return c.File == ask.Case })
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		body := bodies[ask.Case]
		head := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", cases[i].ContentType, len(body))
		_, _ = conn.Write(append(head, body[:ask.Cut]...))
		time.Sleep(500 * time.Microsecond)
		_, _ = conn.Write(append(bytes.Clone(body[ask.Cut:]), "\r\n0\r\n\r\n"...))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// cutsOf lists where a cut may matter: at and beside line ends and braces, inside the names of fields,
// inside escapes and runes. Of very many, some.
func cutsOf(body []byte) []int {
	const most = 60
	var cuts []int
	for i, c := range body {
		start := i == 0 || body[i-1] == '\n' || body[i-1] == '\r'
		switch {
		case start:
			cuts = append(cuts, i, i+2, i+4, i+5) // before, in and behind the word "data", behind its colon
		case c == '\n', c == '\r', c == '{', c == '}', c == '\\', c >= 0x80:
			cuts = append(cuts, i, i+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	cuts = slices.DeleteFunc(cuts, func(at int) bool { return at > len(body) })
	if n := len(cuts); n > most {
		some := cuts[:0:0]
		for i := range most {
			some = append(some, cuts[i*n/most])
		}
		cuts = append(some, len(body))
	}
	return cuts
}
