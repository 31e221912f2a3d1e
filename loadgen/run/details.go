package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	commonmodel "github.com/prometheus/common/model"

	"firstbreach/internal/signal"
	"firstbreach/loadgen/record"
)

// maxAnswer bounds what is read of one answer about the target.
const maxAnswer = 8 << 20

// detail is one value in an engine's description of itself. Only what is named here is kept: such
// descriptions hold keys, random markers and clocks too.
type detail struct {
	condition string
	path      []string // of keys in JSON; in a list, the object whose id, name or model is the plan's
	hash      bool     // keep the digest of what is there: it is long
}

// question is one page on which an engine tells about itself.
type question struct {
	path    string
	post    bool // the model's name is sent as {"model": NAME}
	details []detail
}

// questions by engine. A page that isn't there, and a value that isn't on it, is left out.
func questions() map[string][]question {
	return map[string][]question{
		"llamacpp": {{path: "/props", details: []detail{
			{"engine_context_length", []string{"default_generation_settings", "n_ctx"}, false},
			{"engine_slots", []string{"total_slots"}, false},
			{"engine_model", []string{"model_path"}, false},
			{"engine_quantization", []string{"model_ftype"}, false},
			{"engine_chat_template_sha256", []string{"chat_template"}, true},
		}}, {path: "/v1/models", details: []detail{
			{"model_parameters", []string{"data", "meta", "n_params"}, false},
			{"model_bytes", []string{"data", "meta", "size"}, false},
		}}},
		"ollama": {{path: "/api/tags", details: []detail{
			{"model_digest", []string{"models", "digest"}, false},
		}}, {path: "/api/show", post: true, details: []detail{
			{"model_parameters", []string{"details", "parameter_size"}, false},
			{"engine_quantization", []string{"details", "quantization_level"}, false},
			{"engine_parameters_sha256", []string{"parameters"}, true},
			{"engine_chat_template_sha256", []string{"template"}, true},
		}}, {path: "/api/ps", details: []detail{
			{"engine_context_length", []string{"models", "context_length"}, false},
			{"engine_gpu_bytes", []string{"models", "size_vram"}, false},
		}}},
		"vllm": {{path: "/v1/models", details: []detail{
			{"engine_model", []string{"data", "root"}, false},
			{"engine_context_length", []string{"data", "max_model_len"}, false},
		}}},
		"sglang": {{path: "/get_server_info", details: serverArgs()}},
	}
}

// serverArgs are the flags of an SGLang server that change what is measured.
func serverArgs() []detail {
	var out []detail
	for _, name := range []string{"model_path", "context_length", "tp_size", "dp_size", "pp_size", "dtype", "quantization", "kv_cache_dtype",
		"mem_fraction_static", "max_running_requests", "max_queued_requests", "max_total_tokens", "chunked_prefill_size", "max_prefill_tokens",
		"schedule_policy", "attention_backend", "sampling_backend", "stream_interval", "disable_radix_cache", "disable_cuda_graph",
		"speculative_algorithm", "speculative_num_draft_tokens"} {
		condition := "engine_" + name
		if name == "model_path" {
			condition = "engine_model"
		}
		out = append(out, detail{condition, []string{name}, false})
	}
	return out
}

// details asks the engine what it runs.
func (r *Runner) details(ctx context.Context, engine string) map[string]string {
	asked := questions()[engine]
	answers := make([]any, len(asked))
	var wg sync.WaitGroup
	for i, q := range asked {
		wg.Go(func() { answers[i] = r.answer(ctx, q) })
	}
	wg.Wait()
	out := map[string]string{}
	for i, q := range asked {
		for _, d := range q.details {
			if text := textOf(r.at(answers[i], d.path)); text != "" {
				if d.hash {
					sum := sha256.Sum256([]byte(text))
					text = hex.EncodeToString(sum[:8])
				}
				out[d.condition] = clip(text)
			}
		}
	}
	return out
}

// answer is the JSON of a page; nil for whatever isn't JSON.
func (r *Runner) answer(ctx context.Context, q question) any {
	method, body := http.MethodGet, []byte(nil)
	if q.post {
		method = http.MethodPost
		body, _ = json.Marshal(map[string]string{"model": r.opts.Plan.Target.Model})
	}
	page, _ := r.get(ctx, method, root(r.opts.Plan.Target.URL)+q.path, body, true)
	decoder := json.NewDecoder(bytes.NewReader(page))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return nil
	}
	return v
}

// get reads a page of the target, with the target's headers and key where asked for.
func (r *Runner) get(ctx context.Context, method, url string, body []byte, withKey bool) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if withKey {
		for k, v := range r.opts.Plan.Target.Headers {
			req.Header.Set(k, v)
		}
		if key, err := r.opts.Plan.Target.APIKey.Value(); err == nil && key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
	}
	res, err := r.opts.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	return io.ReadAll(io.LimitReader(res.Body, maxAnswer))
}

// at follows a path into an answer. Of a list it takes the plan's model, or the only entry.
func (r *Runner) at(v any, keys []string) any {
	for _, key := range keys {
		if list, ok := v.([]any); ok {
			v = r.mine(list)
		}
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[key]
	}
	return v
}

func (r *Runner) mine(list []any) any {
	want := r.opts.Plan.Target.Model
	for _, item := range list {
		object, _ := item.(map[string]any)
		for _, key := range []string{"id", "name", "model"} {
			if name, _ := object[key].(string); name != "" && (name == want || name == want+":latest") {
				return item
			}
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return nil
}

// textOf writes a scalar; "" for everything else.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// clip bounds a value that somebody else wrote.
func clip(text string) string {
	const most = 200
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// cacheConfig is where vLLM tells its cache's settings: labels of a gauge on its metrics page.
const cacheConfig = "vllm:cache_config_info"

// fromMetrics reads what the engine's own page and the exporter on its host tell.
func (r *Runner) fromMetrics(ctx context.Context) map[string]string {
	t, out := r.opts.Plan.Target, map[string]string{}
	if t.Metrics != "" {
		for _, labels := range r.labels(ctx, t.Metrics, cacheConfig) {
			for _, name := range []string{"block_size", "cache_dtype", "enable_prefix_caching", "gpu_memory_utilization", "num_gpu_blocks"} {
				if v := labels[name]; v != "" {
					out["engine_"+name] = clip(v)
				}
			}
		}
	}
	if t.HostMetrics != "" {
		for _, labels := range r.labels(ctx, t.HostMetrics, signal.HostInfo) {
			out["target_os"], out["target_kernel"], out["target_arch"] = clip(labels["os"]), clip(labels["kernel"]), clip(labels["arch"])
		}
		var gpus []string
		for _, labels := range r.labels(ctx, t.HostMetrics, signal.GPUInfo) {
			gpus = append(gpus, labels["name"])
			out["target_gpu_driver"] = clip(labels["driver"])
		}
		if slices.Sort(gpus); len(gpus) > 0 {
			out["target_gpus"] = clip(strings.Join(gpus, ", "))
		}
	}
	return out
}

// labels are those of each series of one metric on a page.
func (r *Runner) labels(ctx context.Context, url, metric string) (out []map[string]string) {
	page, err := r.get(ctx, http.MethodGet, url, nil, false)
	if err != nil {
		return nil
	}
	parser := expfmt.NewTextParser(commonmodel.UTF8Validation)
	families, _ := parser.TextToMetricFamilies(bytes.NewReader(page)) // what was read before an error counts
	var family *dto.MetricFamily = families[metric]
	for _, m := range family.GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		out = append(out, labels)
	}
	return out
}

// governors names the frequency governors of this machine's CPUs; "" where the kernel has none.
func governors(sys string) string {
	files, _ := os.ReadDir(path.Join(sys, "devices/system/cpu"))
	var found []string
	for _, f := range files {
		b, err := os.ReadFile(path.Join(sys, "devices/system/cpu", f.Name(), "cpufreq/scaling_governor"))
		if name := strings.TrimSpace(string(b)); err == nil && name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// lookAgain reads the target's conditions at a later moment, such as before round 2, and notes what is another
// than at the start. What can't be read this time has not changed; what couldn't be read before (a model that was
// not loaded yet) is added.
func (r *Runner) lookAgain(ctx context.Context, when string) {
	now := r.targetConditions(ctx)
	r.edit(func(m *record.Manifest) {
		for _, name := range sortedKeys(now) {
			was, known := m.Conditions[name]
			switch {
			case !known:
				m.Conditions[name] = now[name]
			case was != now[name]:
				change := fmt.Sprintf("%s %s → %s %s", name, was, now[name], when)
				if !r.changed[name+"\x00"+now[name]] {
					if r.changed == nil {
						r.changed = map[string]bool{}
					}
					r.changed[name+"\x00"+now[name]] = true
					m.Changed = append(m.Changed, change)
				}
			}
		}
	})
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
