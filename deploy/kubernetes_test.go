package deploy

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestExporterManifest: decoded as Kubernetes decodes it, no key unknown; mounts have volumes, labels
// meet their selectors, and the command has no flag that the exporter hasn't.
func TestExporterManifest(t *testing.T) {
	var set appsv1.DaemonSet
	var service corev1.Service
	manifest(t, "exporter.yaml", &set, &service)
	pod := set.Spec.Template
	checkService(t, set.Spec.Selector, pod, service)
	c := pod.Spec.Containers[0]
	for _, m := range c.VolumeMounts {
		if !m.ReadOnly {
			t.Errorf("mount %s could be written", m.Name)
		}
	}
	checkPod(t, pod)
}

// checkService: the pod's labels are those that its selector and its Service look for, and the Service's port is
// the container's.
func checkService(t *testing.T, selector *metav1.LabelSelector, pod corev1.PodTemplateSpec, service corev1.Service) {
	t.Helper()
	for key, value := range selector.MatchLabels {
		if pod.Labels[key] != value || service.Spec.Selector[key] != value {
			t.Errorf("label %s is %q on the pod and %q in the service, not %q", key, pod.Labels[key], service.Spec.Selector[key], value)
		}
	}
	c := pod.Spec.Containers[0]
	if service.Spec.Ports[0].TargetPort.StrVal != c.Ports[0].Name || service.Spec.Ports[0].Port != c.Ports[0].ContainerPort {
		t.Errorf("the service's port %+v isn't the container's %+v", service.Spec.Ports[0], c.Ports[0])
	}
}

// manifest decodes the documents of a file as Kubernetes does, no key unknown.
func manifest(t *testing.T, name string, into ...any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(text, []byte("\n---\n"))
	if len(documents) != len(into) {
		t.Fatalf("%d documents in %s, want %d", len(documents), name, len(into))
	}
	for i, d := range documents {
		if err := yaml.UnmarshalStrict(d, into[i]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// checkPod: mounts have volumes, images a version, flags exist, and every variable of the command is one
// that the container has.
func checkPod(t *testing.T, pod corev1.PodTemplateSpec) {
	t.Helper()
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
	}
	c := pod.Spec.Containers[0]
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("mount %s has no volume", m.Name)
		}
	}
	if !pinned.MatchString(c.Image) {
		t.Errorf("image %s has no exact version", c.Image)
	}
	has := map[string]bool{}
	for _, e := range c.Env {
		has[e.Name] = true
	}
	for _, v := range regexp.MustCompile(`\$\((\w+)\)`).FindAllStringSubmatch(strings.Join(c.Command, " "), -1) {
		if !has[v[1]] {
			t.Errorf("$(%s) is no variable of the container", v[1])
		}
	}
	if checkFlags(t, binaries(t), c.Name, c.Command) == 0 {
		t.Error("no flag was checked")
	}
	if pod.Spec.SecurityContext == nil || pod.Spec.SecurityContext.RunAsNonRoot == nil || !*pod.Spec.SecurityContext.RunAsNonRoot {
		t.Error("it may run as root")
	}
}

// As many pods as shards, each with its own number, all at once; none is started again.
func TestLoadgenJob(t *testing.T) {
	var job batchv1.Job
	manifest(t, "loadgen-job.yaml", &job)
	checkPod(t, job.Spec.Template)
	if job.Spec.CompletionMode == nil || *job.Spec.CompletionMode != batchv1.IndexedCompletion || *job.Spec.BackoffLimit != 0 ||
		*job.Spec.Completions != *job.Spec.Parallelism || job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("%+v", job.Spec)
	}
	command := strings.Join(job.Spec.Template.Spec.Containers[0].Command, " ")
	if *job.Spec.Completions != 3 || !strings.Contains(command, "--shard=$(JOB_COMPLETION_INDEX)/3 ") {
		t.Errorf("%d completions: %s", *job.Spec.Completions, command)
	}
}

func TestAnalyzeManifest(t *testing.T) {
	var d appsv1.Deployment
	var s corev1.Service
	manifest(t, "analyze.yaml", &d, &s)
	checkPod(t, d.Spec.Template)
	c := d.Spec.Template.Spec.Containers[0]
	if *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Error("two pods may write the same reports")
	}
	if s.Spec.Ports[0].TargetPort.StrVal != c.Ports[0].Name || s.Spec.Ports[0].Port != c.Ports[0].ContainerPort || c.ReadinessProbe.HTTPGet.Port.StrVal != c.Ports[0].Name {
		t.Errorf("ports %+v, %+v", s.Spec.Ports, c.Ports)
	}
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value || s.Spec.Selector[key] != value {
			t.Errorf("label %s", key)
		}
	}
}
