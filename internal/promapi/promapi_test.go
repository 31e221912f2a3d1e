package promapi_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"firstbreach/internal/promapi"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A store with tenants behind a path gets the path, the tenant and the key; the key's file counts from
// the folder of the file that names it.
func TestNewWithFile(t *testing.T) {
	var got *http.Request
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"scalar","result":[0,"1"]}}`))
	}))
	defer srv.Close()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "key"), "secret\n")
	file := write(t, filepath.Join(dir, "http.yml"), "authorization: {credentials_file: key}\nhttp_headers: {X-Scope-OrgID: {values: [team-a]}}\n")
	c, err := promapi.New(srv.URL+"/prometheus", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := v1.NewAPI(c).Query(t.Context(), "1", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got.URL.Path != "/prometheus/api/v1/query" || got.Header.Get("X-Scope-OrgID") != "team-a" || got.Header.Get("Authorization") != "Bearer secret" {
		t.Errorf("%s %v", got.URL, got.Header)
	}
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct{ url, file, want string }{
		"no address":   {"", "", "http://127.0.0.1:9090"},
		"no host":      {"http:/store", "", "is not the URL of a Prometheus"},
		"a scheme":     {"ftp://store", "", "is not the URL of a Prometheus"},
		"no such file": {"http://store", filepath.Join(dir, "none.yml"), "none.yml"},
		"empty":        {"http://store", write(t, filepath.Join(dir, "empty.yml"), "\n"), "empty.yml can't be used: is empty"},
		"unknown key":  {"http://store", write(t, filepath.Join(dir, "key.yml"), "authorisation: {}\n"), "authorisation"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := promapi.New(tc.url, tc.file); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q in it", err, tc.want)
			}
		})
	}
}
