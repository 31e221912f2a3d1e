package deploy

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestExporterManifest: decoded as Kubernetes decodes it, no key unknown; mounts have volumes, labels
// meet their selectors, and the command has no flag that the exporter hasn't.
func TestExporterManifest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("kubernetes", "exporter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, second, ok := bytes.Cut(text, []byte("\n---\n"))
	if !ok {
		t.Fatal("there aren't two documents")
	}
	var set appsv1.DaemonSet
	var service corev1.Service
	if err := yaml.UnmarshalStrict(first, &set); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(second, &service); err != nil {
		t.Fatal(err)
	}
	pod := set.Spec.Template
	for key, value := range set.Spec.Selector.MatchLabels {
		if pod.Labels[key] != value || service.Spec.Selector[key] != value {
			t.Errorf("label %s is %q on the pod and %q in the service, not %q", key, pod.Labels[key], service.Spec.Selector[key], value)
		}
	}
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
	}
	c := pod.Spec.Containers[0]
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] || !m.ReadOnly {
			t.Errorf("mount %s: volume there %v, read only %v", m.Name, volumes[m.Name], m.ReadOnly)
		}
	}
	if service.Spec.Ports[0].TargetPort.StrVal != c.Ports[0].Name || service.Spec.Ports[0].Port != c.Ports[0].ContainerPort {
		t.Errorf("the service's port %+v isn't the container's %+v", service.Spec.Ports[0], c.Ports[0])
	}
	if !pinned.MatchString(c.Image) {
		t.Errorf("image %s has no exact version", c.Image)
	}
	if checkFlags(t, binaries(t), set.Name, c.Command) == 0 {
		t.Error("no flag was checked")
	}
}
