package plan

import (
	"strings"
	"testing"
	"time"

	"firstbreach/internal/slo"

	"github.com/google/go-cmp/cmp"
)

func objectives(t *testing.T) *slo.File {
	t.Helper()
	f, err := slo.Parse("slo.yaml", []byte(`
apiVersion: firstbreach/v1
service: chat
engine: vllm
objectives:
- {name: ttft, layer: user, signal: time_to_first_token, p95: 750ms}
- {name: success, layer: user, signal: success_ratio, target: 99%}
- {name: hangs, layer: user, signal: timeout_ratio, target: 99.9%}
- {name: capacity, layer: user, signal: capacity, min_concurrency: 4}
- {name: queue, layer: service, signal: requests_waiting, max: 4}
`))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestPreflight(t *testing.T) {
	p := Defaults()
	want := []Need{
		{"ttft", "95%", 59, 300, true, "ttft (95%): 59 requests without a miss decide it, the plan measures 3 rounds x 100 = 300 at each level: enough"},
		{"success", "99%", 299, 300, true, "success (99%): 299 requests without a miss decide it, the plan measures 3 rounds x 100 = 300 at each level: enough"},
		{"hangs", "99.9%", 2995, 300, false, "hangs (99.9%): 2995 requests without a miss decide it, the plan measures 3 rounds x 100 = 300 at each level: not enough; set step.requests to 999"},
	}
	if diff := cmp.Diff(want, Preflight(&p, objectives(t))); diff != "" {
		t.Error(diff)
	}
	p.Step = Step{Duration: time.Minute}
	for _, n := range Preflight(&p, objectives(t)) {
		if n.Enough || n.Planned != 0 || !strings.Contains(n.Sentence, "steps of 1m0s measure as many as the target answers") {
			t.Errorf("%+v", n)
		}
	}
}

func TestRequestsToShow(t *testing.T) {
	for target, want := range map[float64]int{0.5: 5, 0.9: 29, 0.95: 59, 0.99: 299, 0.999: 2995, 0.9999: 29956} {
		if got := requestsToShow(target); got != want {
			t.Errorf("%v: %d, want %d", target, got, want)
		}
	}
}
