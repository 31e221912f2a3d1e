package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// seeds adds every body of the corpus for these dialects to a fuzz target.
func seeds(f *testing.F, prefix string) {
	for _, c := range corpus(f) {
		if !strings.HasPrefix(c.API, prefix) {
			continue
		}
		body, err := os.ReadFile(filepath.Join("testdata/corpus", c.File))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, uint16(len(body)/2))
	}
}

// checkFuzzed holds what must be true of any bytes at all: a stream is ok only if it says that it
// ended and reports no error, its numbers fit together, and the reads that brought it don't matter.
func checkFuzzed(t *testing.T, c *Client, contentType string, body []byte, cut uint16) {
	r := decode(c, contentType, []segment{{1, body}})
	switch {
	case r.Outcome == OK:
		if r.E2E == nil || r.Error != "" || r.FailedAt != nil {
			t.Errorf("ok with E2E %v, error %q", r.E2E, r.Error)
		}
		finished := bytes.Contains(body, []byte("finish_reason")) || bytes.Contains(body, []byte("done")) || bytes.Contains(body, []byte(`\u`))
		if !finished {
			t.Errorf("ok without a terminal marker")
		}
	case r.Error == "" || r.E2E != nil || r.TPOT != nil:
		t.Errorf("%s with error %q, E2E %v, TPOT %v", r.Outcome, r.Error, r.E2E, r.TPOT)
	}
	if (r.TTFT == nil) != (r.Chunks == 0) || len(r.Gaps) >= max(r.Chunks, 1) {
		t.Errorf("TTFT %v, %d chunks, %d gaps", r.TTFT, r.Chunks, len(r.Gaps))
	}
	at := int(cut) % (len(body) + 1)
	split := decode(c, contentType, []segment{{1, body[:at]}, {1, body[at:]}})
	a, b := viewOf(r), viewOf(split)
	a.Failed, b.Failed = "", "" // of a truncated stream: when it was looked at
	if a != b {
		t.Errorf("cut at %d:\n%+v\n%+v", at, a, b)
	}
}

func FuzzSSE(f *testing.F) {
	seeds(f, "openai")
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) {
		checkFuzzed(t, newTestClient(t, "openai-chat", Options{}), "text/event-stream", body, cut)
	})
}

func FuzzNDJSON(f *testing.F) {
	seeds(f, "ollama")
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) {
		checkFuzzed(t, newTestClient(t, "ollama-chat", Options{}), "application/x-ndjson", body, cut)
	})
}

// FuzzScanner compares the scanner's judgement with encoding/json's.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `{"a":[1,-0.5e+3,true,false,null,"x\"\\\/\b\f\n\r\t\u00e9"]}`, ` {"a" : {} } `, `{"a":1,"a":2}`, `0`, `-0`, `1E9`,
		``, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[,1]`, `{,}`, `01`, `-`, `1.`, `.5`, `1e`, `NaN`, `nul`, `truex`, `"\x"`, `"\u12"`, "\"\n\"", `{} {}`, `{"a":1}x`, `{1:2}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := scanner{b: data}
		s.skip()
		got := s.end()
		if want := json.Valid(data); got != want && !(want && strings.Count(string(data), "[")+strings.Count(string(data), "{") > maxDepth) {
			t.Errorf("%q: valid %v, encoding/json says %v", data, got, want)
		}
		var e event
		if parseOpenAI(data, &e) && !json.Valid(data) || parseOllama(data, &e) && !json.Valid(data) {
			t.Errorf("%q was taken for JSON", data)
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"7", "0.5", "Mon, 30 Nov 2026 21:51:09 GMT", "soon", "-1", "1e300", "NaN", "Inf", ""} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, seconds, millis string) {
		h := map[string][]string{"Retry-After": {seconds}, "Retry-After-Ms": {millis}}
		if d := retryAfter(h, time.Now()); d != nil && (*d < 0 || *d > maxRetryAfter) {
			t.Errorf("%q, %q: %v", seconds, millis, *d)
		}
	})
}
