package ruletest_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"firstbreach/internal/promplay"
)

// The tests of this file stand in docs/reported.md: what users of other rule generators ran into.

// Prometheus 2 keeps an edge as the engine spells it, 1, and Prometheus 3 writes it as a float, 1.0. The
// same rules count both.
func TestBucketEdgeInBothSpellings(t *testing.T) {
	for _, le := range []string{"1", "1.0"} {
		p := promplay.New(t, ruleText(t, "vllm", ttft))
		page := vllm(promplay.Counter(60), promplay.Counter(45), nil)
		page[2].Labels["le"] = le
		p.Run(10, page...)
		if v, ok := p.Value(`slo:bad_requests:ratio5m{slo="ttft"}`); !ok || v != 0.25 {
			t.Errorf("le=%q: bad share %v, %v; want 0.25", le, v, ok)
		}
	}
}

// A tightened target judges the same history by its own budget at once: the budget is a number in the
// rule and not a series with a past, so nothing is divided by 0 on the way.
func TestBudgetFollowsItsTarget(t *testing.T) {
	half := vllm(promplay.Counter(199), nil, promplay.Counter(1)) // 0.5 % are bad
	half = append(half[:1], half[3:]...)
	for target, want := range map[string]float64{"99%": 0.5, "99.9%": -4, "50%": 0.99} {
		p := promplay.New(t, ruleText(t, "vllm", strings.Replace(success, "99%", target, 1)))
		p.Run(130, half...)
		if v, ok := p.Value(`slo:error_budget_remaining:ratio`); !ok || math.Abs(v-want) > 1e-6 {
			t.Errorf("%s: budget left %v, %v; want %v", target, v, ok, want)
		}
	}
}

// A budget that is spent to the last request is 0, not a float's residue below it.
func TestSpentBudgetIsZero(t *testing.T) {
	for target, good := range map[string]float64{"90%": 2.7, "95%": 5.7, "99%": 29.7, "99.5%": 59.7, "99.9%": 299.7} {
		page := vllm(promplay.Counter(good), nil, promplay.Counter(0.3)) // one part of a budget in all; counts that no float holds exactly
		p := promplay.New(t, ruleText(t, "vllm", strings.Replace(success, "99%", target, 1)))
		p.Run(130, append(page[:1], page[3:]...)...)
		if v, ok := p.Value(`slo:error_budget_remaining:ratio`); !ok || v != 0 {
			t.Errorf("%s: budget left %v, %v; want 0", target, v, ok)
		}
	}
}

// An hour of few requests weighs what it has requests, not what a quiet hour among busy ones has of a day.
func TestUnevenTraffic(t *testing.T) {
	quietThenBusy := func(quiet, busy float64) func(int) float64 {
		return func(m int) float64 { return quiet*math.Min(float64(m), 60) + busy*math.Max(0, float64(m)-60) }
	}
	page := vllm(quietThenBusy(0, 99), nil, quietThenBusy(1, 0))
	p := promplay.New(t, ruleText(t, "vllm", success))
	p.Run(125, append(page[:1], page[3:]...)...)
	// The mean of the two hours' shares would be a half.
	if v, ok := p.Value(`slo:bad_requests:ratio1d`); !ok || math.Abs(v-0.01) > 0.002 {
		t.Errorf("bad share of the day %v, %v; want about 0.01", v, ok)
	}
}

// Three objectives on one histogram record three shares: every series and every selector of one says
// whose it is.
func TestObjectivesOfOneMetricStayApart(t *testing.T) {
	var objectives strings.Builder
	edges := map[string]float64{"250ms": 0.25, "500ms": 0.5, "1s": 0.75}
	for threshold := range edges {
		objectives.WriteString(strings.NewReplacer("ttft,", "t"+threshold+",", "1s", threshold).Replace(ttft))
	}
	p := promplay.New(t, ruleText(t, "vllm", objectives.String()))
	page := vllm(promplay.Counter(100), promplay.Counter(75), nil)
	for le, inTime := range map[string]float64{"0.25": 25, "0.5": 50} {
		labels := map[string]string{"job": "serving", "instance": "a:1", "engine": "0", "le": le}
		page = append(page, series(page[2].Name, labels, promplay.Counter(inTime)))
	}
	p.Run(10, page...)
	for threshold, inTime := range edges {
		v, ok := p.Value(`slo:bad_requests:ratio5m{slo="t` + threshold + `"}`)
		if !ok || math.Abs(v-(1-inTime)) > 1e-9 {
			t.Errorf("%s: bad share %v, %v; want %v", threshold, v, ok, 1-inTime)
		}
	}
	if n := len(p.Query(`slo:bad_requests:ratio5m`)); n != len(edges) {
		t.Errorf("%d recorded shares, want %d", n, len(edges))
	}
	if n := len(p.Query(`{__name__=~"slo:.+", le!=""}`)); n > 0 {
		t.Errorf("%d recorded series have the label le", n)
	}
}

// A selector may fix a label that the rules set or group by: it only narrows what is read.
func TestSelectorFixesALabelOfTheRules(t *testing.T) {
	head := strings.Replace(sloHead, "engine: {job: serving}", "engine: {job: serving, instance: 'a:1', service: other, slo: x, engine: '0'}", 1)
	p := promplay.New(t, ruleTextOf(t, head, "vllm", ttft+
		"- {name: queue, layer: service, signal: requests_waiting, max: 4, owner: team, action: Act.}\n"))
	fixed := func(set map[string]string) map[string]string {
		set["service"], set["slo"], set["engine"] = "other", "x", "0"
		return set
	}
	page := vllm(promplay.Counter(60), promplay.Counter(45), nil)
	for i := range page {
		page[i].Labels = fixed(page[i].Labels)
	}
	waiting := fixed(map[string]string{"job": "serving", "instance": "a:1"})
	p.Run(10, append(page, series("vllm:num_requests_waiting", waiting, func(int) float64 { return 9 }))...)
	if v, ok := p.Value(`slo:bad_requests:ratio5m{service="chat",slo="ttft"}`); !ok || v != 0.25 {
		t.Errorf("bad share %v, %v; want 0.25", v, ok)
	}
	if got := strings.Join(p.Firing(), "; "); got != "FirstbreachThresholdCrossed queue warning" {
		t.Errorf("fires: %s", got)
	}
}

// An owner's name that looks like a number, a date or a truth value is a text in every rule.
func TestOwnersThatLookLikeNumbers(t *testing.T) {
	for _, owner := range []string{"007", "1e3", "on", "null", "0x1F", "2026-12-07"} {
		quoted := strconv.Quote(owner)
		objectives := strings.Replace(success, "owner: team", "owner: "+quoted, 1)
		p := promplay.New(t, ruleTextOf(t, strings.Replace(sloHead, "{team:", "{"+quoted+":", 1), "vllm", objectives))
		page := vllm(promplay.Counter(60), promplay.Counter(60), nil)
		p.Run(3, page...)
		if n := len(p.Query(`slo:info{owner=` + quoted + `}`)); n != 1 {
			t.Errorf("owner %s: %d series of slo:info have it, want 1", quoted, n)
		}
	}
}
