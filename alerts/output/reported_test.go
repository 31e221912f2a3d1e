package output

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"go.yaml.in/yaml/v3"

	"firstbreach/alerts/routing"
	"firstbreach/internal/generated"
	"firstbreach/internal/slo"
)

// Every generated file is one YAML document: Prometheus loads the first of several and says nothing.
func TestOneDocumentPerFile(t *testing.T) {
	f, set := awkwardSet(t)
	plain, err := Rules(f, set)
	if err != nil {
		t.Fatal(err)
	}
	object, err := Kubernetes(f, set)
	if err != nil {
		t.Fatal(err)
	}
	for name := range f.Owners {
		f.Owners[name] = slo.Owner{Contact: "#team"}
	}
	routes, err := routing.Make([]*slo.File{f}, routing.Base{})
	if err != nil {
		t.Fatal(err)
	}
	routed, err := Routing([]*slo.File{f}, routes)
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range [][]generated.File{plain, object, routed[:1]} { // routed[1] are templates, no YAML
		for _, file := range made {
			d := yaml.NewDecoder(bytes.NewReader(file.Content))
			var first, second any
			if err := d.Decode(&first); err != nil || first == nil {
				t.Errorf("%s: %v", file.Name, err)
			}
			if err := d.Decode(&second); !errors.Is(err, io.EOF) {
				t.Errorf("%s: a second document: %v %v", file.Name, second, err)
			}
		}
	}
}
