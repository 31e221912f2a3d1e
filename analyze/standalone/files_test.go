package standalone

import (
	"testing"

	"firstbreach/internal/signal"
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
