package standalone

import (
	"strings"
	"testing"

	"firstbreach/internal/signal"
	"firstbreach/loadgen/sim"
)

// TestBuiltInFilesLoad loads what a run uses that names no file: against the simulated engine, and against
// a target of the command line, whether it has a metrics page or not.
func TestBuiltInFilesLoad(t *testing.T) {
	for name, o := range map[string]Options{
		"simulated": {},
		"target":    {Target: Target{URL: "http://127.0.0.1:1", API: "openai-chat", Model: "m"}},
		"metrics":   {Target: Target{URL: "http://127.0.0.1:1", API: "ollama-chat", Model: "m", Metrics: "http://127.0.0.1:1/metrics"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := o.load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if f.plan.Rounds < 3 || len(f.slo.PerRequest()) == 0 {
				t.Errorf("%d rounds, %d objectives: no verdict can be decided", f.plan.Rounds, len(f.slo.PerRequest()))
			}
			if o.Target.URL != "" && f.slo.Engine != signal.Probe {
				t.Errorf("engine %s, of a target that shows none", f.slo.Engine)
			}
		})
	}
}

// TestMetricsOfAPlansTarget: a plan that names no metrics page has it looked for, as a target of the command
// line has; one that it names is left alone.
func TestMetricsOfAPlansTarget(t *testing.T) {
	base := startEngine(t, sim.Default())
	dir, text := t.TempDir(), scenarioPlan(base, []int{1, 2})
	named := `, metrics: "` + base + `/metrics"`
	for name, c := range map[string]struct{ plan, want string }{
		"left out": {strings.Replace(text, named, "", 1), base + "/metrics"},
		"empty":    {strings.Replace(text, named, `, metrics: ""`, 1), base + "/metrics"},
		"named":    {strings.Replace(text, named, `, metrics: "http://127.0.0.1:1/m"`, 1), "http://127.0.0.1:1/m"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Options{PlanFile: writeFile(t, dir, "plan.yaml", c.plan), SLOFile: writeFile(t, dir, "slo.yaml", scenarioSLO())}.load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if f.plan.Target.Metrics != c.want {
				t.Errorf("metrics page %q, want %q", f.plan.Target.Metrics, c.want)
			}
		})
	}
}
