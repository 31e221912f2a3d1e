package store

import (
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
)

// bodyLimit bounds one scraped page; a vLLM page with every histogram is under 1 MB.
const bodyLimit = "64MB"

// The part of a prometheus.yml that the store writes. It goes through Prometheus's own loader, so
// that defaults and checks are Prometheus's, and /api/v1/status/config shows what a person would
// have had to write.
type (
	promFile struct {
		Global        promGlobal       `yaml:"global"`
		RuleFiles     []string         `yaml:"rule_files,omitempty"`
		ScrapeConfigs []promScrapeConf `yaml:"scrape_configs,omitempty"`
	}
	promGlobal struct {
		ScrapeInterval     string   `yaml:"scrape_interval"`
		ScrapeTimeout      string   `yaml:"scrape_timeout"`
		EvaluationInterval string   `yaml:"evaluation_interval"`
		ScrapeProtocols    []string `yaml:"scrape_protocols"`
		BodySizeLimit      string   `yaml:"body_size_limit"`
		Native             bool     `yaml:"scrape_native_histograms"`
		Classic            bool     `yaml:"always_scrape_classic_histograms"`
	}
	promScrapeConf struct {
		JobName  string       `yaml:"job_name"`
		Fallback string       `yaml:"fallback_scrape_protocol"`
		Static   []promStatic `yaml:"static_configs"`
	}
	promStatic struct {
		Targets []string          `yaml:"targets"`
		Labels  map[string]string `yaml:"labels,omitempty"`
	}
)

// prometheusConfig turns o into a loaded Prometheus configuration.
func prometheusConfig(o Options) (*config.Config, error) {
	every := promDuration(o.ScrapeInterval)
	f := promFile{
		Global: promGlobal{
			ScrapeInterval: every, ScrapeTimeout: every, EvaluationInterval: every,
			// Only the protobuf format carries native histograms.
			ScrapeProtocols: []string{"PrometheusProto", "OpenMetricsText1.0.0", "OpenMetricsText0.0.1", "PrometheusText1.0.0", "PrometheusText0.0.4"},
			BodySizeLimit:   bodyLimit,
			Native:          !o.NoNativeHistograms,
			Classic:         !o.NoClassicHistograms,
		},
		RuleFiles: o.RuleFiles,
	}
	index := map[string]int{}
	for _, t := range o.Targets {
		i, ok := index[t.Job]
		if !ok {
			i = len(f.ScrapeConfigs)
			index[t.Job] = i
			// Some engines send no Content-Type, or a wrong one; their page is text all the same.
			f.ScrapeConfigs = append(f.ScrapeConfigs, promScrapeConf{JobName: t.Job, Fallback: "PrometheusText0.0.4"})
		}
		static, err := staticConfig(t)
		if err != nil {
			return nil, err
		}
		f.ScrapeConfigs[i].Static = append(f.ScrapeConfigs[i].Static, static)
	}
	text, err := yaml.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("write the Prometheus configuration: %w", err)
	}
	cfg, err := config.Load(string(text), o.Logger)
	if err != nil {
		return nil, fmt.Errorf("targets make no valid Prometheus configuration: %w", err)
	}
	return cfg, nil
}

// staticConfig says scheme, path and parameters by the target's own labels, so that targets of
// one job may differ in them.
func staticConfig(t Target) (promStatic, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return promStatic{}, fmt.Errorf("target of job %q: %w", t.Job, err)
	}
	labels := map[string]string{"__scheme__": u.Scheme}
	if u.Path != "" {
		labels["__metrics_path__"] = u.Path
	}
	for name, values := range u.Query() {
		labels["__param_"+name] = values[0]
	}
	maps.Copy(labels, t.Labels)
	return promStatic{Targets: []string{u.Host}, Labels: labels}, nil
}

func promDuration(d time.Duration) string { return model.Duration(d).String() }
