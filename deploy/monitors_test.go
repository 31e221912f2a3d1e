package deploy

import (
	"log/slog"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

func TestProbeManifest(t *testing.T) {
	var d appsv1.Deployment
	var s corev1.Service
	manifest(t, "probe.yaml", &d, &s)
	checkPod(t, d.Spec.Template)
	checkService(t, d.Spec.Selector, d.Spec.Template, s)
	if *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Error("two probes may ask at once")
	}
}

// monitor is what a ServiceMonitor and a PodMonitor have in common.
type monitor struct {
	name     string
	selector metav1.LabelSelector
	native   monitoring.NativeHistogramConfig
	port     string
	interval monitoring.Duration
	relabel  []monitoring.RelabelConfig
}

// monitors are those of monitors.yaml, decoded strictly: of Services, and of pods.
func monitors(t *testing.T) (services, pods []monitor) {
	t.Helper()
	var exporter, probe, analyze monitoring.ServiceMonitor
	var loadgen, engine monitoring.PodMonitor
	manifest(t, "monitors.yaml", &exporter, &probe, &analyze, &loadgen, &engine)
	for _, m := range []monitoring.ServiceMonitor{exporter, probe, analyze} {
		if m.Kind != monitoring.ServiceMonitorsKind || len(m.Spec.Endpoints) != 1 {
			t.Fatalf("%s %s has %d endpoints", m.Kind, m.Name, len(m.Spec.Endpoints))
		}
		e := m.Spec.Endpoints[0]
		services = append(services, monitor{m.Name, m.Spec.Selector, m.Spec.NativeHistogramConfig, e.Port, e.Interval, e.RelabelConfigs})
	}
	for _, m := range []monitoring.PodMonitor{loadgen, engine} {
		if m.Kind != monitoring.PodMonitorsKind || len(m.Spec.PodMetricsEndpoints) != 1 || m.Spec.PodMetricsEndpoints[0].Port == nil {
			t.Fatalf("%s %s: %+v", m.Kind, m.Name, m.Spec.PodMetricsEndpoints)
		}
		e := m.Spec.PodMetricsEndpoints[0]
		pods = append(pods, monitor{m.Name, m.Spec.Selector, m.Spec.NativeHistogramConfig, *e.Port, e.Interval, e.RelabelConfigs})
	}
	if exporter.Spec.AttachMetadata == nil || exporter.Spec.AttachMetadata.Node == nil || !*exporter.Spec.AttachMetadata.Node {
		t.Error("role comes from a label of the node, which isn't asked for")
	}
	return services, pods
}

// picks reports whether the monitor selects an object with these labels.
func (m monitor) picks(t *testing.T, has map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(&m.selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(k8slabels.Set(has))
}

// Every monitor picks one of our Services, or the pods of our Job, at a port that it names.
func TestMonitorsSelect(t *testing.T) {
	services := make([]corev1.Service, 3)
	manifest(t, "exporter.yaml", new(appsv1.DaemonSet), &services[0])
	manifest(t, "probe.yaml", new(appsv1.Deployment), &services[1])
	manifest(t, "analyze.yaml", new(appsv1.Deployment), &services[2])
	var job batchv1.Job
	manifest(t, "loadgen-job.yaml", &job)
	ofServices, ofPods := monitors(t)
	for _, m := range ofServices {
		var picked []string
		for _, s := range services {
			if !m.picks(t, s.Labels) {
				continue
			}
			picked = append(picked, s.Name)
			if !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == m.port }) {
				t.Errorf("%s: the service has no port %s: %+v", m.name, m.port, s.Spec.Ports)
			}
		}
		if !slices.Equal(picked, []string{m.name}) {
			t.Errorf("%s picks %q", m.name, picked)
		}
	}
	pod := job.Spec.Template
	if m := ofPods[0]; !m.picks(t, pod.Labels) || pod.Spec.Containers[0].Ports[0].Name != m.port {
		t.Errorf("%s doesn't scrape the Job's pods at port %s: %v, %+v", m.name, m.port, pod.Labels, pod.Spec.Containers[0].Ports)
	}
	if m := ofPods[1]; m.picks(t, pod.Labels) {
		t.Errorf("%s takes the load generator for an engine", m.name)
	}
}

// The operator scrapes the jobs of prometheus.yml, with the same interval and the labels that are
// there: the rules and a load test's queries pick series by job and role.
func TestMonitorsLabelAsPrometheusConfigDoes(t *testing.T) {
	plain, err := config.LoadFile("prometheus.yml", false, promslog.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	scraped := map[string]*config.ScrapeConfig{}
	for _, s := range plain.ScrapeConfigs {
		if s.JobName != "prometheus" && s.JobName != "alertmanager" { // the operator's own
			scraped[s.JobName] = s
		}
	}
	roles := map[string]string{"exporter": "target", "engine": "target"}
	services, pods := monitors(t)
	for _, m := range slices.Concat(services, pods) {
		found := labels.FromStrings("job", m.name, "service", m.name, "__meta_kubernetes_node_label_firstbreach_role", "target")
		got := m.target(t, found)
		job := got.Get("job")
		s := scraped[job]
		if s == nil {
			t.Errorf("%s: prometheus.yml has no job %s", m.name, job)
			continue
		}
		delete(scraped, job)
		if string(m.interval) != s.ScrapeInterval.String() {
			t.Errorf("%s is scraped every %s, in prometheus.yml every %s", m.name, m.interval, s.ScrapeInterval)
		}
		if got.Get("role") != roles[job] {
			t.Errorf("%s: role %q, want %q", m.name, got.Get("role"), roles[job])
		}
	}
	if len(scraped) > 0 {
		t.Errorf("no monitor for the jobs %q of prometheus.yml", slices.Sorted(maps.Keys(scraped)))
	}
	for role, want := range map[string]string{"": "", "client": "client", "gpu": ""} {
		if got := services[0].target(t, labels.FromStrings("__meta_kubernetes_node_label_firstbreach_role", role)).Get("role"); got != want {
			t.Errorf("a node labelled %q has role %q, want %q", role, got, want)
		}
	}
}

// target are the labels that Prometheus gives a target with these found ones.
func (m monitor) target(t *testing.T, found labels.Labels) labels.Labels {
	t.Helper()
	b := labels.NewBuilder(found)
	for _, r := range m.relabel {
		c := relabel.DefaultRelabelConfig
		c.TargetLabel, c.NameValidationScheme = r.TargetLabel, model.UTF8Validation
		if r.Action != "" {
			c.Action = relabel.Action(r.Action)
		}
		if r.Regex != "" {
			c.Regex = relabel.MustNewRegexp(r.Regex)
		}
		if r.Replacement != nil {
			c.Replacement = *r.Replacement
		}
		for _, l := range r.SourceLabels {
			c.SourceLabels = append(c.SourceLabels, model.LabelName(l))
		}
		if err := c.Validate(model.UTF8Validation); err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
		if !relabel.ProcessBuilder(b, &c) {
			t.Fatalf("%s drops the target %s", m.name, found)
		}
	}
	return b.Labels()
}

// Objectives are counted at classic bucket edges, so those are kept wherever native histograms are.
func TestMonitorsKeepClassicBuckets(t *testing.T) {
	services, pods := monitors(t)
	native := 0
	for _, m := range slices.Concat(services, pods) {
		if m.native.ScrapeNativeHistograms == nil || !*m.native.ScrapeNativeHistograms {
			continue
		}
		native++
		if m.native.ScrapeClassicHistograms == nil || !*m.native.ScrapeClassicHistograms {
			t.Errorf("%s drops classic buckets", m.name)
		}
	}
	if native != 2 {
		t.Errorf("%d monitors take native histograms, want those of the probe and the load generator", native)
	}
}

// The PrometheusRule has the groups of the rule file, to the letter, and Prometheus takes them; their
// queries pick jobs that a monitor sets.
func TestPrometheusRule(t *testing.T) {
	var object monitoring.PrometheusRule
	manifest(t, "demo.prometheusrule.yaml", &object)
	if object.APIVersion != monitoring.SchemeGroupVersion.String() || object.Kind != monitoring.PrometheusRuleKind || object.Name == "" {
		t.Errorf("%s %s %q", object.APIVersion, object.Kind, object.Name)
	}
	text, err := os.ReadFile("alerts/demo.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file monitoring.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(file, object.Spec); diff != "" || len(file.Groups) == 0 {
		t.Errorf("%d groups, rule file (-) and object (+) differ:\n%s", len(file.Groups), diff)
	}
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true})
	groups, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, errs := rulefmt.Parse(groups, false, model.LegacyValidation, p, slog.New(slog.DiscardHandler)); len(errs) > 0 {
		t.Error(errs)
	}
	jobs := map[string]bool{}
	for _, g := range object.Spec.Groups {
		for _, r := range g.Rules {
			for _, job := range jobsOf(t, p, r.Expr.StrVal) {
				jobs[job] = true
			}
		}
	}
	services, pods := monitors(t)
	for _, m := range slices.Concat(services, pods) {
		delete(jobs, m.target(t, labels.EmptyLabels()).Get("job"))
	}
	if len(jobs) > 0 {
		t.Errorf("rules read the jobs %q, which no monitor sets", slices.Sorted(maps.Keys(jobs)))
	}
}

// jobsOf are the jobs that an expression picks series by.
func jobsOf(t *testing.T, p parser.Parser, expr string) []string {
	t.Helper()
	e, err := p.ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	var jobs []string
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			for _, m := range v.LabelMatchers {
				if m.Name == model.JobLabel {
					jobs = append(jobs, m.Value)
				}
			}
		}
		return nil
	})
	return jobs
}
