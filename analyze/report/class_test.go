package report

import (
	"bytes"
	"strings"
	"testing"

	"firstbreach/analyze/verdict"
)

// A run with two classes has a verdict for each, and its headline says which broke first.
func TestClasses(t *testing.T) {
	run := breachRun()
	mixed := run
	mixed.Steps, mixed.Classes = nil, []verdict.Class{{Name: "chat", Objectives: []string{"ttft"}}, {Name: "batch", Objectives: []string{"success"}}}
	for _, s := range run.Steps {
		for _, class := range []string{"chat", "batch"} {
			s.Class = class
			s.InFlightSeconds, s.OccupancySeconds, s.SumE2E = s.InFlightSeconds/2, s.OccupancySeconds/2, s.SumE2E/2
			mixed.Steps = append(mixed.Steps, s)
			s.InFlightSeconds, s.OccupancySeconds, s.SumE2E = 2*s.InFlightSeconds, 2*s.OccupancySeconds, 2*s.SumE2E
		}
	}
	d := New(mixed, verdict.Judge(mixed), Meta{})
	if d.State != verdict.Breach || d.FirstBreach.Class != "chat" {
		t.Fatalf("%s %q, first breach %+v", d.State, d.Reason, d.FirstBreach)
	}
	if h := d.Headline()[0]; !strings.Contains(h, " of class chat at concurrency ") || strings.Count(h, "Of the other classes batch ") != 1 {
		t.Errorf("headline %q", h)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"md": func(b *bytes.Buffer) error { return d.WriteMarkdown(b) }, "html": func(b *bytes.Buffer) error { return d.WriteHTML(b) },
		"json": func(b *bytes.Buffer) error { return d.WriteJSON(b) }, "junit": func(b *bytes.Buffer) error { return d.WriteJUnit(b) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"md": "## By class of requests", "html": "By class of requests", "json": `"class": "batch"`, "junit": "concurrency_4.batch"}[name]
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s lacks %q", name, want)
		}
	}
	seen := map[string]bool{}
	for _, s := range d.charted() {
		if seen[s.name()] || s.Class != "chat" {
			t.Errorf("the charts have %s", s.name())
		}
		seen[s.name()] = true
	}
}
