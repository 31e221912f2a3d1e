package signal

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

func vllmPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("testdata/vllm-0.32.prom")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestProbeVLLMPage(t *testing.T) {
	e, _ := Lookup(VLLM)
	found, err := e.Probe(strings.NewReader(vllmPage(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		SignalTTFT:             "vllm:time_to_first_token_seconds",
		SignalDuration:         "vllm:e2e_request_latency_seconds",
		SignalTPOT:             "vllm:request_time_per_output_token_seconds",
		SignalITL:              "vllm:inter_token_latency_seconds",
		SignalSuccessRatio:     "http_requests_total",
		SignalRequestsRunning:  "vllm:num_requests_running",
		SignalRequestsWaiting:  "vllm:num_requests_waiting",
		SignalQueueTime:        "vllm:request_queue_time_seconds",
		SignalKVCacheUsage:     "vllm:kv_cache_usage_perc",
		SignalPreemptions:      "vllm:num_preemptions_total",
		SignalPromptTokens:     "vllm:prompt_tokens_total",
		SignalOutputTokens:     "vllm:generation_tokens_total",
		SignalRequestsFinished: "vllm:request_success_total",
		SignalRejections:       "vllm:admission_rejections_total",
	}
	for s, name := range want {
		if got := found.Found[s].Name; got != name {
			t.Errorf("%s: found %q, want %q", s, got, name)
		}
	}
	if len(found.Found) != len(want) {
		t.Errorf("found %d signals, want %d", len(found.Found), len(want))
	}
	// No warning: types and bucket edges are as the real engine has them.
	if len(found.Warnings) > 0 {
		t.Errorf("warnings: %q", found.Warnings)
	}
	for _, s := range []string{SignalICL, SignalTimeoutRatio, SignalCPUUtilization} {
		if found.Missing[s] == "" {
			t.Errorf("%s is missing without a reason", s)
		}
	}
}

// The labels that the catalogue has for vLLM are on the page, all of them.
func TestVLLMLabels(t *testing.T) {
	page, err := ReadPage(strings.NewReader(vllmPage(t)))
	if err != nil {
		t.Fatal(err)
	}
	e, _ := Lookup(VLLM)
	found, err := page.Presence(e)
	if err != nil {
		t.Fatal(err)
	}
	for s, m := range found.Found {
		var labels []string
		for _, l := range page.families[m.Name].GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		want := slices.Sorted(slices.Values(m.Labels))
		if slices.Sort(labels); !slices.Equal(labels, want) {
			t.Errorf("%s: %s has labels %v, the catalogue has %v", s, m.Name, labels, want)
		}
	}
	// The python client's creation times are families of their own and never candidates.
	if !page.hasFamily("vllm:prompt_tokens_created") {
		t.Error("the page has no _created gauge: the capture is not the real one")
	}
	for s, m := range found.Found {
		if strings.HasSuffix(m.Name, "_created") {
			t.Errorf("%s: %s is a creation time", s, m.Name)
		}
	}
}

func TestProbeOldAndRenamed(t *testing.T) {
	const old = `# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{model_name="m"} 0.5
# TYPE vllm_num_requests_running gauge
vllm_num_requests_running{model_name="m"} 2
# TYPE vllm:num_requests_waiting counter
vllm:num_requests_waiting{model_name="m"} 2
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.2"} 1
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 2
vllm:time_to_first_token_seconds_sum 1
vllm:time_to_first_token_seconds_count 2
`
	e, _ := Lookup(VLLM)
	found, err := e.Probe(strings.NewReader(old))
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Found[SignalKVCacheUsage].Name; got != "vllm:gpu_cache_usage_perc" {
		t.Errorf("KV cache: %q", got)
	}
	if got := found.Found[SignalRequestsRunning].Name; got != "vllm_num_requests_running" {
		t.Errorf("running: %q", got)
	}
	if got := found.Found[SignalTTFT].Buckets; !slices.Equal(got, []float64{0.2}) {
		t.Errorf("edges = %v, want those of the page", got)
	}
	text := strings.Join(found.Warnings, "\n")
	if !strings.Contains(text, "num_requests_waiting is a counter") || !strings.Contains(text, "other bucket edges") {
		t.Errorf("warnings: %s", text)
	}
}

func TestProbeSumOfHistogramAndAbsentTerm(t *testing.T) {
	const page = `# TYPE tgi_request_input_length histogram
tgi_request_input_length_bucket{le="+Inf"} 2
tgi_request_input_length_sum 60
tgi_request_input_length_count 2
# TYPE tgi_request_success counter
tgi_request_success{method="generate_stream"} 2
# TYPE tgi_batch_current_max_tokens gauge
tgi_batch_current_max_tokens 5
`
	e, _ := Lookup(TGI)
	found, err := e.Probe(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Found[SignalPromptTokens].Name; got != "tgi_request_input_length_sum" {
		t.Errorf("prompt tokens: %q", got)
	}
	if _, ok := found.Found[SignalSuccessRatio]; !ok {
		t.Errorf("no failure has happened yet, so the ratio is there: %s", found.Missing[SignalSuccessRatio])
	}
	if _, ok := found.Found[SignalKVCacheUsage]; ok {
		t.Error("a ratio without its denominator is not there")
	}
	if found.Missing[SignalTTFT] == "" {
		t.Error("TGI's TTFT is missing without a reason")
	}
}

func TestProbeNone(t *testing.T) {
	e, _ := Lookup(SGLang)
	_, err := e.Probe(strings.NewReader("# TYPE up gauge\nup 1\n"))
	if !errors.Is(err, ErrNoSignal) || !strings.Contains(err.Error(), "--enable-metrics") {
		t.Errorf("error = %v", err)
	}
	_, err = e.Probe(strings.NewReader(vllmPage(t)))
	if !errors.Is(err, ErrNoSignal) || !strings.Contains(err.Error(), "engine: vllm") {
		t.Errorf("error = %v", err)
	}
	_, err = e.Probe(strings.NewReader("<html><body>404</body></html>"))
	if err == nil || errors.Is(err, ErrNoSignal) {
		t.Errorf("error = %v", err)
	}
}

func TestDetect(t *testing.T) {
	page, err := ReadPage(strings.NewReader(vllmPage(t)))
	if err != nil {
		t.Fatal(err)
	}
	engines := page.Detect()
	if len(engines) != 1 || engines[0].Name != VLLM {
		t.Errorf("engines = %v", engines)
	}
	if page, err = ReadPage(strings.NewReader("")); err != nil || len(page.Detect()) != 0 {
		t.Errorf("an empty page: %v, %v", page, err)
	}
}

func TestProbeURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.Error(w, "not here", http.StatusNotImplemented)
			return
		}
		http.ServeFile(w, r, "testdata/vllm-0.32.prom")
	}))
	defer server.Close()
	e, _ := Lookup(VLLM)
	found, err := e.ProbeURL(context.Background(), server.Client(), server.URL+"/metrics")
	if err != nil || len(found.Found) == 0 {
		t.Errorf("found %v, error %v", found, err)
	}
	e, _ = Lookup(LlamaCPP)
	_, err = e.ProbeURL(context.Background(), server.Client(), server.URL+"/metric")
	if err == nil || !strings.Contains(err.Error(), "501") || !strings.Contains(err.Error(), "--metrics") {
		t.Errorf("error = %v", err)
	}
}
