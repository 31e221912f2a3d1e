package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// keyKeeper wants a key, and gives it back wherever a server might: in headers, in the body of an error,
// in an error event of the stream and as the reason of a redirect.
func keyKeeper(t *testing.T, key string) *httptest.Server {
	var n, wrong atomic.Int64
	plain := "Bearer " + key
	coded := base64.StdEncoding.EncodeToString([]byte(key))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Request-Authorization", r.Header.Get("Authorization"))
		w.Header().Set("Server", "gateway "+coded)
		if r.Method != http.MethodPost {
			http.Error(w, "no such page for "+plain, http.StatusNotFound)
			return
		}
		if r.Header.Get("Authorization") != plain {
			wrong.Add(1)
		}
		event := `data: {"error":{"message":"quota of %s (%s) is used up","type":"server_error"}}` + "\n\n"
		switch n.Add(1) {
		case 4:
			http.Error(w, fmt.Sprintf(`{"error":{"message":"Incorrect API key provided: %s, %s"}}`, plain, coded), http.StatusUnauthorized)
		case 7:
			w.Header().Set("Retry-After", plain)
			http.Error(w, "busy: "+plain+" "+coded, http.StatusServiceUnavailable)
		case 10:
			http.Redirect(w, r, "/login?key="+key, http.StatusFound)
		case 13:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<p>%s %s</p>", plain, coded)
		case 16:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, event, key, coded)
		case 19:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {%s broken %s\n\n", key, coded)
		default:
			time.Sleep(3 * time.Millisecond)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"system_fingerprint\":%q,\"model\":%[1]q,\"choices\":[{\"index\":0,\"delta\":{\"content\":%[1]q},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", key)
		}
	}))
	t.Cleanup(func() {
		srv.Close()
		if n.Load() < 20 || wrong.Load() > 0 {
			t.Errorf("%d requests, %d of them without the key: this test shows nothing", n.Load(), wrong.Load())
		}
	})
	return srv
}

// An API key, plain or in base64, is in nothing that a run leaves or says, even where the server gives
// it back.
func TestTheKeyIsShownNowhere(t *testing.T) {
	const key = "sk-hunter2/+secret0123456789"
	for _, from := range []string{"env", "file"} {
		t.Run(from, func(t *testing.T) {
			srv := keyKeeper(t, key)
			e := &endpoint{Server: srv}
			args, dir := files(t, e, func(plan string) string {
				how := "{env: FB_TEST_RUN_KEY}"
				if from == "file" {
					path := filepath.Join(t.TempDir(), "key")
					if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
						t.Fatal(err)
					}
					how = "{file: " + path + "}"
				} else {
					t.Setenv("FB_TEST_RUN_KEY", key)
				}
				plan, _, _ = strings.Cut(plan, "restore:")
				return strings.Replace(plan, "model: m}", "model: m, api_key: "+how+"}", 1)
			})
			p := launch(t, append(with(args, "--scrape.wait", "5s"), "--log.level", "debug")...)
			page := p.scrape(t)
			if status := p.exit(t); status != 0 {
				t.Fatalf("exit status %d: %s", status, p.said())
			}
			outputs := map[string]string{"stdout and stderr": p.said(), "the metrics page": page()}
			err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				b, err := os.ReadFile(path)
				outputs[d.Name()] = string(b)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(outputs["the metrics page"]) == 0 || len(outputs["ledger.jsonl"]) == 0 || len(outputs["manifest.json"]) == 0 {
				t.Fatal("an output is empty: this test shows nothing")
			}
			coded := base64.StdEncoding.EncodeToString([]byte(key))
			for name, text := range outputs {
				for _, form := range []string{key, coded, strings.TrimRight(coded, "="), base64.RawURLEncoding.EncodeToString([]byte(key)), "hunter2"} {
					if i := strings.Index(text, form); i >= 0 {
						t.Errorf("the key is in %s: %s", name, text[max(0, i-120):min(len(text), i+60)])
						break
					}
				}
			}
		})
	}
}
