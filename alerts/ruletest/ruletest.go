package ruletest

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
	"golang.org/x/sync/errgroup"

	"firstbreach/alerts/rules"
	"firstbreach/internal/sli"
)

// File is a test file of promtool test rules.
type File struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []Test         `yaml:"tests,omitempty"`
}

// Test is one scenario.
type Test struct {
	Name       string         `yaml:"name"`
	Interval   model.Duration `yaml:"interval"`
	Input      []Input        `yaml:"input_series,omitempty"`
	AlertTests []AlertTest    `yaml:"alert_rule_test"`
}

// Input is one series, its values in promtool's notation.
type Input struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

// AlertTest lists every alert of one name that fires at a time.
type AlertTest struct {
	At        model.Duration `yaml:"eval_time"`
	Alertname string         `yaml:"alertname"`
	Expected  []Expected     `yaml:"exp_alerts,omitempty"`
}

// Expected is one alert that fires.
type Expected struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// interval is that of the samples and of the evaluation.
const interval = time.Minute

// Make makes the tests of a set of rules that lies in ruleFile, beside the tests.
func Make(set *rules.Set, ruleFile string) (*File, error) {
	f := &File{RuleFiles: []string{ruleFile}, EvaluationInterval: model.Duration(interval)}
	f.Tests = make([]Test, len(set.Scenarios))
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i, s := range set.Scenarios {
		work.Go(func() (err error) {
			if f.Tests[i], err = test(s); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			return nil
		})
	}
	return f, work.Wait()
}

func test(s rules.Scenario) (Test, error) {
	t := Test{Name: s.Name, Interval: model.Duration(interval)}
	for _, feed := range s.Feed {
		t.Input = append(t.Input, Input{series(feed), values(feed, s)})
	}
	byName := map[string]*AlertTest{}
	for _, name := range s.Quiet {
		byName[name] = &AlertTest{At: model.Duration(s.At), Alertname: name}
	}
	for _, firing := range s.Firing {
		name := firing.Alert.Rule.Alert
		if byName[name] == nil {
			byName[name] = &AlertTest{At: model.Duration(s.At), Alertname: name}
		}
		e, err := expected(firing)
		if err != nil {
			return t, err
		}
		byName[name].Expected = append(byName[name].Expected, e)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		t.AlertTests = append(t.AlertTests, *byName[name])
	}
	return t, nil
}

func series(f sli.Feed) string {
	set := maps.Clone(f.Labels)
	set[model.MetricNameLabel] = f.Name
	return labels.FromMap(set).String()
}

// values are the samples up to the scenario's time: first value, growth, number of samples.
func values(f sli.Feed, s rules.Scenario) string {
	v := f.Healthy
	if s.Broken {
		v = f.Broken
	}
	n := int(s.At/interval) + 1
	text := strconv.FormatFloat(v, 'f', -1, 64)
	switch {
	case s.Idle:
		return fmt.Sprintf("100+0x%d", n)
	case f.Gauge:
		return fmt.Sprintf("%s+0x%d", text, n)
	}
	return fmt.Sprintf("0+%sx%d", text, n)
}

// expected expands what the rule's templates say of this series, as Prometheus does.
func expected(f rules.Firing) (Expected, error) {
	set := labels.FromMap(f.Labels)
	e := Expected{Labels: maps.Clone(f.Labels), Annotations: map[string]string{}}
	if e.Labels == nil {
		e.Labels = map[string]string{}
	}
	for name, text := range f.Alert.Rule.Labels {
		value, err := expand(name, text, set, f.Value)
		if err != nil {
			return e, err
		}
		e.Labels[name] = value
	}
	for name, text := range f.Alert.Rule.Annotations {
		value, err := expand(name, text, set, f.Value)
		if err != nil {
			return e, err
		}
		e.Annotations[name] = value
	}
	return e, nil
}

func expand(name, text string, set labels.Labels, value float64) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	data := template.AlertTemplateData(set.Map(), nil, "", promql.Sample{Metric: set, F: value})
	defs := "{{$labels := .Labels}}{{$value := .Value}}"
	return template.NewTemplateExpander(context.Background(), defs+text, name, data, model.Now(), nil, &url.URL{}, nil).Expand()
}
