package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"firstbreach/loadgen/record"
)

// The store that is asked at the end may want a tenant.
func TestConfirmSendsTheTenant(t *testing.T) {
	var tenant string
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant = r.Header.Get("X-Scope-OrgID")
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[]}}`))
	}))
	defer store.Close()
	file := filepath.Join(t.TempDir(), "http.yml")
	if err := os.WriteFile(file, []byte("http_headers: {X-Scope-OrgID: {values: [team-a]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	confirm, err := (&runCommand{prometheus: store.URL, httpConfig: file}).confirm()
	if err != nil {
		t.Fatal(err)
	}
	if err := confirm(t.Context(), record.Manifest{Run: "r1", StartedAt: time.Now()}); err != nil {
		t.Error(err)
	}
	if tenant != "team-a" {
		t.Errorf("tenant %q", tenant)
	}
}
