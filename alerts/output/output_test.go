package output

import (
	"fmt"
	"log/slog"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"firstbreach/alerts/rules"
	"firstbreach/internal/slo"
)

// awkward is an SLO file whose texts look like something else to a YAML library.
const awkward = `apiVersion: firstbreach/v1
service: chat
engine: vllm
selectors: {engine: {job: '1e3'}, probe: {job: 'on'}}
owners:
  '0x1F': {contact: '#a: b'}
  'no': {contact: "line 1\nline 2"}
objectives:
- {name: ttft, layer: user, signal: time_to_first_token, p95: 750ms, owner: '0x1F', action: "- one: two\n\n  # three \n"}
- {name: success, layer: user, signal: success_ratio, target: 99%, owner: 'no', action: "it's \"{{ broken }}\" \\ 100 % of xx ünïcode 東京 "}
`

func awkwardSet(t *testing.T) (*slo.File, *rules.Set) {
	t.Helper()
	f, err := slo.Parse("slo.yaml", []byte(awkward))
	if err != nil {
		t.Fatal(err)
	}
	set, err := rules.Make(f, rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f, set
}

// Prometheus reads what was meant: a text taken for a number, a lost blank or a duplicate rule would
// otherwise be found when an alert is missed.
func TestRulesReadBack(t *testing.T) {
	f, set := awkwardSet(t)
	files, err := Rules(f, set)
	if err != nil {
		t.Fatal(err)
	}
	got, errs := rulefmt.Parse(files[0].Content, false, model.LegacyValidation, parser.NewParser(parser.Options{EnableExperimentalFunctions: true}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatalf("%v in\n%s", errs, files[0].Content)
	}
	if len(got.Groups) != len(set.Groups) {
		t.Fatalf("%d groups, want %d", len(got.Groups), len(set.Groups))
	}
	seen := map[string]bool{}
	for i, g := range got.Groups {
		if len(g.Rules) != len(set.Groups[i].Rules) {
			t.Fatalf("group %s has %d rules, want %d", g.Name, len(g.Rules), len(set.Groups[i].Rules))
		}
		for j, r := range g.Rules {
			want := set.Groups[i].Rules[j]
			if got, want := texts(r), texts(want); got != want {
				t.Errorf("read\n%s\nmeant\n%s", got, want)
			}
			key := fmt.Sprint(r.Record, r.Alert, r.Labels)
			if seen[key] {
				t.Errorf("%s is there twice", key)
			}
			seen[key] = true
		}
	}
}

func texts(r rulefmt.Rule) string {
	return fmt.Sprintf("%q %q %q %q %q", r.Record, r.Alert, r.Expr, fmt.Sprint(r.Labels), fmt.Sprint(r.Annotations))
}

// So does the Prometheus Operator, which reads with another YAML library.
func TestKubernetesReadsBack(t *testing.T) {
	f, set := awkwardSet(t)
	files, err := Kubernetes(f, set)
	if err != nil {
		t.Fatal(err)
	}
	var got monitoring.PrometheusRule
	if err := yaml.UnmarshalStrict(files[0].Content, &got); err != nil {
		t.Fatalf("%v in\n%s", err, files[0].Content)
	}
	if len(got.Spec.Groups) != len(set.Groups) {
		t.Fatalf("%d groups, want %d", len(got.Spec.Groups), len(set.Groups))
	}
	for i, g := range got.Spec.Groups {
		if len(g.Rules) != len(set.Groups[i].Rules) {
			t.Fatalf("group %s has %d rules, want %d", g.Name, len(g.Rules), len(set.Groups[i].Rules))
		}
		for j, r := range g.Rules {
			read := rulefmt.Rule{Record: r.Record, Alert: r.Alert, Expr: r.Expr.StrVal, Labels: r.Labels, Annotations: r.Annotations}
			if got, want := texts(read), texts(set.Groups[i].Rules[j]); got != want {
				t.Errorf("read\n%s\nmeant\n%s", got, want)
			}
		}
	}
}
