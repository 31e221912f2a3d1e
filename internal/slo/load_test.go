package slo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The shipped file is what most people start from: it must load, hold all layers and every kind of
// objective but an expression, and mean what its comments say.
func TestShippedFile(t *testing.T) {
	f, err := Load("../../alerts/slo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if f.Service != "chat" || f.Engine != "vllm" || f.Window != 30*24*time.Hour {
		t.Errorf("service %q, engine %q, window %v", f.Service, f.Engine, f.Window)
	}
	want := Selectors{
		Engine: map[string]string{"job": "vllm"}, Host: map[string]string{"job": "exporter"},
		GPU: map[string]string{"job": "exporter"}, Probe: map[string]string{"job": "probe"},
	}
	if diff := cmp.Diff(want, f.Selectors); diff != "" {
		t.Error(diff)
	}
	ttft := f.Objectives[0]
	if ttft.Name != "ttft" || ttft.Kind != Latency || ttft.Threshold != 750*time.Millisecond || ttft.Target.Text() != "95%" || !ttft.Alerts() {
		t.Errorf("first objective %+v", ttft)
	}
	kinds, layers := map[Kind]int{}, map[Layer]int{}
	for _, o := range f.Objectives {
		kinds[o.Kind]++
		layers[o.Layer]++
		if o.Alerts() != (o.Layer != Resource) {
			t.Errorf("%s: alerts is %v", o.Name, o.Alerts())
		}
	}
	if diff := cmp.Diff(map[Kind]int{Latency: 3, Success: 1, Timeouts: 1, Capacity: 1, Recovery: 1, Gauge: 8}, kinds); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[Layer]int{User: 7, Service: 2, Resource: 6}, layers); diff != "" {
		t.Error(diff)
	}
	if n := len(f.PerRequest()); n != 5 {
		t.Errorf("%d per-request objectives, want 5", n)
	}
}
