package routing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/alertmanager/config"
	"github.com/prometheus/alertmanager/dispatch"
	amlabels "github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"firstbreach/alerts/rules"
	"firstbreach/internal/slo"
)

// owners is an SLO file whose owners have these contacts, each with one objective.
func owners(t *testing.T, contacts map[string]string) *slo.File {
	t.Helper()
	f := &slo.File{Path: "slo.yaml", Service: "chat", Owners: map[string]slo.Owner{}}
	for name, contact := range contacts {
		f.Owners[name] = slo.Owner{Contact: contact}
		f.Objectives = append(f.Objectives, slo.Objective{Name: fmt.Sprint("o", len(f.Objectives)), Owner: name, Action: "Act."})
	}
	return f
}

func load(t *testing.T, c *Config) *config.Config {
	t.Helper()
	text, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(string(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return loaded
}

// Whatever a team is called, its alerts reach its receiver, and nobody else's do.
func TestOddOwners(t *testing.T) {
	odd := []string{`team "a" #1`, `b:x,{y}`, `c, d`, `{{ .e }}`, `группа`, `1e3`, `on`, `back\slash`, `a=b`, `x|y`, "it's"}
	contacts := map[string]string{}
	for i, name := range odd {
		contacts[name] = fmt.Sprintf("https://hooks.example.com/%d", i)
	}
	c, err := Make([]*slo.File{owners(t, contacts)}, Base{})
	if err != nil {
		t.Fatal(err)
	}
	root := dispatch.NewRoute(load(t, c).Route, nil)
	receiverOf := func(owner, severity string) string {
		matched := root.Match(model.LabelSet{"owner": model.LabelValue(owner), "severity": model.LabelValue(severity)})
		if len(matched) != 1 {
			t.Fatalf("%q matches %d routes", owner, len(matched))
		}
		return matched[0].RouteOpts.Receiver
	}
	for _, name := range odd {
		for _, severity := range []string{rules.Page, rules.Ticket} {
			if got := receiverOf(name, severity); got != name {
				t.Errorf("alerts of %q go to %q", name, got)
			}
		}
	}
	if got := receiverOf("stranger", rules.Page); got != Default {
		t.Errorf("alerts of nobody we know go to %q", got)
	}
}

func TestContacts(t *testing.T) {
	base := Base{Path: "base.yml", Global: map[string]any{"smtp_smarthost": "mail:25", "smtp_from": "a@example.com"},
		Receivers: []map[string]any{{"name": "pagerduty-chat"}}}
	for _, c := range []struct{ contact, receiver, kind string }{
		{"#oncall", "team", "slack"}, {"https://hooks.example.com/x", "team", "webhook"}, {"oncall@example.com", "team", "email"}, {"receiver:pagerduty-chat", "pagerduty-chat", ""},
	} {
		made, err := Make([]*slo.File{owners(t, map[string]string{"team": c.contact})}, base)
		if err != nil {
			t.Errorf("%s: %v", c.contact, err)
			continue
		}
		loaded := load(t, made)
		if got := loaded.Route.Routes[0].Receiver; got != c.receiver {
			t.Errorf("%s: receiver %q", c.contact, got)
		}
		for _, r := range loaded.Receivers {
			if r.Name != c.receiver || c.kind == "" {
				continue
			}
			have := map[string]int{"slack": len(r.SlackConfigs), "webhook": len(r.WebhookConfigs), "email": len(r.EmailConfigs)}
			if have[c.kind] != 1 {
				t.Errorf("%s: %v, want one %s", c.contact, have, c.kind)
			}
		}
	}
}

func TestContactsThatReachNobody(t *testing.T) {
	for _, c := range []struct {
		contact string
		base    Base
		want    string
	}{
		{"the ops people", Base{}, `slo.yaml: owners.team.contact: "the ops people" can't be made a receiver (fix: write "#channel" for Slack`},
		{"#", Base{}, "write \"#channel\""},
		{"receiver:pagerduty", Base{}, "name the file that has receiver pagerduty with --alertmanager.base"},
		{"receiver:pagerduty", Base{Path: "base.yml"}, "add receiver pagerduty to base.yml"},
		{"a@example.com", Base{}, "global.smtp_smarthost"},
		{"https://user:pw@hooks.example.com", Base{}, "without a password"},
		{"#x", Base{Path: "base.yml", Receivers: []map[string]any{{"name": "team"}}}, `write contact: "receiver:team"`},
		{"#x", Base{Path: "base.yml", Receivers: []map[string]any{{"webhook_configs": nil}}}, "base.yml: receivers[0].name: is missing"},
	} {
		_, err := Make([]*slo.File{owners(t, map[string]string{"team": c.contact})}, c.base)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %q", c.contact, err, c.want)
		}
	}
	two := owners(t, map[string]string{"team": "#b"})
	two.Path = "other.yaml"
	if _, err := Make([]*slo.File{owners(t, map[string]string{"team": "#a"}), two}, Base{}); err == nil || !strings.Contains(err.Error(), `is "#b" here and "#a" in slo.yaml`) {
		t.Error(err)
	}
}

// Every label in an inhibition's equal is on every alert, and no alert is both source and target.
func TestInhibition(t *testing.T) {
	on := map[string]bool{rules.LabelService: true, rules.LabelSLO: true, rules.LabelLayer: true, rules.LabelOwner: true, rules.LabelSeverity: true}
	c, err := Make([]*slo.File{owners(t, map[string]string{"team": "#a"})}, Base{})
	if err != nil {
		t.Fatal(err)
	}
	alerts := []model.LabelSet{
		{"alertname": rules.AlertBurn, "severity": rules.Page}, {"alertname": rules.AlertBurn, "severity": rules.Ticket},
		{"alertname": rules.AlertDown, "severity": rules.Page, "source": "engine"}, {"alertname": rules.AlertDown, "severity": rules.Ticket, "source": "gpu"},
		{"alertname": rules.AlertThreshold, "severity": rules.Ticket}, {"alertname": rules.AlertRecovery, "severity": rules.Page},
	}
	matches := func(ms []*amlabels.Matcher, set model.LabelSet) bool {
		for _, m := range ms {
			if !m.Matches(string(set[model.LabelName(m.Name)])) {
				return false
			}
		}
		return true
	}
	silenced := map[int][]int{}
	for _, r := range load(t, c).InhibitRules {
		for _, l := range r.Equal {
			if !on[l] {
				t.Errorf("%s is not on every alert", l)
			}
		}
		for i, source := range alerts {
			for j, target := range alerts {
				if !matches(r.SourceMatchers, source) || !matches(r.TargetMatchers, target) {
					continue
				}
				if i == j {
					t.Errorf("%v silences itself", source)
				}
				silenced[i] = append(silenced[i], j)
			}
		}
	}
	if got := fmt.Sprint(silenced); got != "map[0:[1] 2:[0 1 4 5]]" {
		t.Errorf("silenced: %s", got)
	}
}
