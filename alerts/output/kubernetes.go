package output

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/prometheus/model/rulefmt"

	"firstbreach/alerts/rules"
	"firstbreach/internal/generated"
	"firstbreach/internal/slo"
	"firstbreach/internal/strictyaml"
)

const objectSuffix = ".prometheusrule.yaml"

// ObjectFile is the name of the file with a service's PrometheusRule.
func ObjectFile(service string) string { return service + objectSuffix }

// prometheusRule is the Prometheus Operator's object for rules. It has the fields that we write: the
// operator's own types print empty ones as well, and durations in another way.
type prometheusRule struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       struct {
		Groups []rulefmt.RuleGroup `yaml:"groups"`
	} `yaml:"spec"`
}

type metadata struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

// objectName is what the API server takes as the name of an object (RFC 1123).
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// Kubernetes prints the rules of a service as a PrometheusRule: the same groups as in its rule file.
func Kubernetes(f *slo.File, set *rules.Set) ([]generated.File, error) {
	if len(set.Groups) == 0 {
		return nil, noRule(f)
	}
	if !objectName.MatchString(f.Service) {
		return nil, &strictyaml.Error{Problems: []strictyaml.Problem{{File: f.Path, Key: "service",
			Message: fmt.Sprintf("%q can't be in the name of a Kubernetes object", f.Service),
			Fix:     "use lower-case letters, digits, - and . between them only"}}}
	}
	object := prometheusRule{APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule",
		Metadata: metadata{Name: "firstbreach-" + f.Service, Labels: map[string]string{"app.kubernetes.io/name": "firstbreach"}}}
	object.Spec.Groups = set.Groups
	text, err := print(header(f, set.Notes), object)
	return []generated.File{{Name: ObjectFile(f.Service), Content: text}}, err
}

// OursKubernetes reports whether a file is a PrometheusRule that was generated before.
func OursKubernetes(name string, content []byte) bool {
	return strings.HasSuffix(name, objectSuffix) && marked(content)
}
