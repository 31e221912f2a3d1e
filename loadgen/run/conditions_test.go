package run

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"firstbreach/loadgen/plan"
)

func TestEngine(t *testing.T) {
	tests := map[string]struct {
		pages map[string]string
		want  map[string]string
	}{
		"vllm":               {map[string]string{"/version": `{"version":"0.32.0"}`}, map[string]string{"engine": "vllm", "engine_version": "0.32.0"}},
		"ollama":             {map[string]string{"/api/version": `{"version":"0.33.0"}`}, map[string]string{"engine": "ollama", "engine_version": "0.33.0"}},
		"llama.cpp":          {map[string]string{"/props": `{"build_info":"b6000-abcdef","total_slots":2}`}, map[string]string{"engine": "llamacpp", "engine_version": "b6000-abcdef", "engine_slots": "2"}},
		"the simulator":      {map[string]string{"/version": `{"version":"firstbreach-sim-1"}`, "/api/version": `{"version":"firstbreach-sim-1"}`}, map[string]string{"engine": "sim", "engine_version": "firstbreach-sim-1"}},
		"one that is silent": {nil, nil},
		"one that answers everything with a page": {map[string]string{"/version": "<html>", "/props": "[]", "/api/version": `{"version":7}`}, nil},
	}
	for name, tc := range tests {
		for _, suffix := range []string{"", "/", "/v1", "/api"} {
			t.Run(name+suffix, func(t *testing.T) {
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					page, ok := tc.pages[r.URL.Path]
					if !ok || r.Header.Get("Authorization") != "Bearer s3cret" {
						http.NotFound(w, r)
						return
					}
					fmt.Fprint(w, page)
				}))
				defer srv.Close()
				t.Setenv("TEST_KEY", "s3cret")
				p := &plan.Plan{Target: plan.Target{URL: srv.URL + suffix, APIKey: plan.Secret{Env: "TEST_KEY"}}}
				r := &Runner{opts: Options{Plan: p, HTTP: srv.Client()}}
				if d := cmp.Diff(tc.want, r.engine(t.Context())); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

// hangs is a target that takes a question and never answers.
type hangs struct{}

func (hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestATargetThatHangsCostsTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{opts: Options{Plan: &plan.Plan{Target: plan.Target{URL: "http://target.invalid"}}, HTTP: &http.Client{Transport: hangs{}}}}
		began := time.Now()
		if got := r.engine(t.Context()); got != nil {
			t.Errorf("got %v", got)
		}
		if took := time.Since(began); took != askTimeout {
			t.Errorf("it took %s", took)
		}
	})
}
