package run

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/mem"

	"firstbreach/loadgen/plan"
)

// Names of conditions that are labels of loadgen_run_info too.
const (
	condModel         = "model"
	condAPI           = "api"
	condEngine        = "engine"
	condEngineVersion = "engine_version"
)

// askTimeout bounds each question to the target about itself. Load begins only after them, so that
// they measure nothing and disturb nothing.
const askTimeout = 2 * time.Second

// conditions are what must be the same for two runs to be compared: of the plan, of this machine
// and, as far as it tells, of the target. What can't be read is left out.
func (r *Runner) conditions(ctx context.Context) map[string]string {
	p := r.opts.Plan
	c := map[string]string{
		condModel: p.Target.Model, condAPI: p.Target.API, "url": p.Target.URL,
		"environment":    string(p.Environment),
		"output_tokens":  strconv.Itoa(p.Fixed.OutputTokens),
		"context_length": strconv.Itoa(p.Fixed.ContextLength),
		"temperature":    strconv.FormatFloat(p.Fixed.Temperature, 'g', -1, 64),
		"seed":           strconv.FormatInt(p.Fixed.Seed, 10),
		"prompts":        promptsCondition(p.Fixed.Prompts),
		"client_version": r.opts.Version,
		"client_go":      runtime.Version(),
	}
	machine(ctx, c)
	if p.Target.TLS.InsecureSkipVerify {
		c["tls_verification"] = "off"
	}
	c["output_length"] = outputLength(p.Target.API, p.Fixed.IgnoreEOS)
	maps.Copy(c, r.targetConditions(ctx))
	return c
}

// targetConditions are those that the target and its host tell, and those of this machine that
// somebody may turn meanwhile.
func (r *Runner) targetConditions(ctx context.Context) map[string]string {
	c := map[string]string{}
	maps.Copy(c, r.engine(ctx))
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	maps.Copy(c, r.fromMetrics(ctx))
	if g := governors("/sys"); g != "" {
		c["client_cpu_governor"] = g
	}
	return c
}

// outputLength says whether the answers are as long as the plan says.
func outputLength(api string, ignoreEOS bool) string {
	switch {
	case !ignoreEOS:
		return "at most output_tokens"
	case api == plan.OllamaChat || api == plan.OllamaGenerate:
		return "at most output_tokens: the API can't hold it"
	}
	return "held by ignore_eos and min_tokens"
}

func promptsCondition(p plan.Prompts) string {
	switch y := p.Synthetic; {
	case p.ShareGPT != "":
		return "sharegpt"
	case y == nil:
		return "file"
	default:
		text := "synthetic, " + strconv.Itoa(y.InputTokens) + " input tokens"
		if y.Lengths != nil {
			text = "synthetic, input tokens " + y.Lengths.String()
		}
		if y.SharedTokens > 0 {
			text += ", the first " + strconv.Itoa(y.SharedTokens) + " shared in " + strconv.Itoa(y.SharedGroups) + " group(s)"
		}
		return text
	}
}

// machine describes the machine that sends the load.
func machine(ctx context.Context, c map[string]string) {
	c["client_os"], c["client_arch"] = runtime.GOOS, runtime.GOARCH
	c["client_cpus"], c["client_gomaxprocs"] = strconv.Itoa(runtime.NumCPU()), strconv.Itoa(runtime.GOMAXPROCS(0))
	if name, err := os.Hostname(); err == nil {
		c["client_host"] = name
	}
	if info, err := host.InfoWithContext(ctx); err == nil {
		c["client_kernel"] = info.KernelVersion
		c["client_platform"] = strings.TrimSpace(info.Platform + " " + info.PlatformVersion)
	}
	if infos, err := cpu.InfoWithContext(ctx); err == nil && len(infos) > 0 {
		c["client_cpu_model"] = infos[0].ModelName
	}
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		c["client_memory_bytes"] = strconv.FormatUint(m.Total, 10)
	}
}

// about is one way in which an engine tells what it is.
type about struct {
	engine, path string
	field        string // of the JSON object, a string that is the version
}

// abouts are asked all at once; the first of them that is answered counts. Some servers answer the
// paths of others too, so the most particular comes first.
func abouts() []about {
	return []about{
		{"llamacpp", "/props", "build_info"},
		{"ollama", "/api/version", "version"},
		{"sglang", "/get_server_info", "version"},
		{"vllm", "/version", "version"},
	}
}

// simulated is how the version of this project's own simulator begins.
const simulated = "firstbreach-sim"

// engine asks the target what it is.
func (r *Runner) engine(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	asked := abouts()
	versions := make([]string, len(asked))
	var wg sync.WaitGroup
	for i, a := range asked {
		wg.Go(func() { versions[i] = r.askVersion(ctx, a) })
	}
	wg.Wait()
	for i, v := range versions {
		switch {
		case v == "":
		case strings.HasPrefix(v, simulated):
			return map[string]string{condEngine: "sim", condEngineVersion: v}
		default:
			c := map[string]string{condEngine: asked[i].engine, condEngineVersion: v}
			maps.Copy(c, r.details(ctx, asked[i].engine))
			return c
		}
	}
	return nil
}

// root is the target's address without the version of its API, which people give with it or without.
func root(url string) string {
	url = strings.TrimRight(url, "/")
	for _, version := range []string{"/v1", "/api"} {
		url = strings.TrimSuffix(url, version)
	}
	return url
}

// askVersion returns "" for whatever isn't a version.
func (r *Runner) askVersion(ctx context.Context, a about) string {
	page, err := r.get(ctx, http.MethodGet, root(r.opts.Plan.Target.URL)+a.path, nil, true)
	if err != nil {
		return ""
	}
	var answer map[string]any
	if err := json.Unmarshal(page, &answer); err != nil {
		return ""
	}
	version, _ := answer[a.field].(string)
	const most = 100
	return strings.ToValidUTF8(version[:min(len(version), most)], "")
}
