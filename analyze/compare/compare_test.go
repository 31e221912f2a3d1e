package compare

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firstbreach/analyze/report"
	"firstbreach/loadgen/record"
)

// made is a run of three rounds at four levels, its latencies times latency, its throughput times rate. Noise is
// fixed and small, another one for each seed.
func made(id string, latency, rate float64, bad int64, seed int) Run {
	d := &report.Document{Schema: report.Schema, Run: id, Version: "v", Service: "chat", State: "none",
		Conditions: map[string]string{"model": "m", "engine": "vllm", "engine_version": "1", "model_digest": "d", "url": "http://127.0.0.1:1"}}
	for i, n := range []int{1, 2, 4, 8} {
		s := report.Step{Phase: "ramp", Concurrency: n, RoundsValid: 3, Valid: true}
		share := float64(bad) / 300
		s.Objectives = []report.ObjectiveResult{{Name: "ttft", Total: 300, Bad: bad, Share: &share, Allowance: 0.05, Dispersion: 1,
			PerRound: []report.RoundCount{{Round: 1, Over: n == 8}, {Round: 2, Over: n == 8}, {Round: 3, Over: n == 8}}}}
		for round := 1; round <= 3; round++ {
			noise := 1 + 0.01*math.Sin(float64(7*i+3*round+11*seed))
			v, x := latency*noise*float64(n), rate*noise*10
			q := report.Quantiles{P95: &v}
			s.Rounds = append(s.Rounds, report.Round{Round: round, Valid: true,
				Latency: report.Latency{TTFT: q, E2E: q}, Throughput: report.Throughput{Requests: &x, Tokens: &x}})
		}
		d.Steps = append(d.Steps, s)
	}
	return Run{Report: d}
}

func TestOutcomes(t *testing.T) {
	a := made("a", 1, 1, 3, 1)
	for name, c := range map[string]struct {
		b    Run
		want Outcome
	}{
		"same":                                {made("b", 1, 1, 3, 2), NoDifference},
		"slower":                              {made("b", 1.2, 1, 3, 2), Regression},
		"quicker":                             {made("b", 0.8, 1, 3, 2), Improvement},
		"more tokens but later":               {made("b", 1.2, 1.2, 3, 2), TradeOff},
		"less throughput":                     {made("b", 1, 0.8, 3, 2), Regression},
		"more misses":                         {made("b", 1, 1, 30, 2), Regression},
		"slower by less than is worth naming": {made("b", 1.02, 1, 3, 2), NoDifference},
		"on the edge of it":                   {made("b", 1.05, 1, 3, 2), Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Compare(a, c.b, Options{}); got.Outcome != c.want {
				t.Errorf("%s, want %s: %s", got.Outcome, c.want, got.Reason)
			}
		})
	}
}

func TestFloorOfRunsOfTheSame(t *testing.T) {
	a, b := made("a", 1, 1, 3, 1), made("b", 1.2, 1, 3, 2)
	got := Compare(a, b, Options{Same: []Run{made("aa", 1.3, 1, 3, 3)}})
	if got.Outcome == Regression {
		t.Error("20 % slower is a regression where two runs of the same thing differ by 30 %")
	}
	other := made("aa", 1.3, 1, 3, 3)
	other.Report.Conditions["model"] = "another"
	if got := Compare(a, b, Options{Same: []Run{other}}); got.Outcome != Regression || !strings.Contains(strings.Join(got.Notes, " "), "wasn't used: they differ in model") {
		t.Errorf("a run of another model gave the floor: %s, %q", got.Outcome, got.Notes)
	}
}

func TestGate(t *testing.T) {
	a, b := made("a", 1, 1, 3, 1), made("b", 1.2, 1, 3, 2)
	b.Report.Conditions["engine_version"] = "2"
	b.Report.Conditions["url"] = "http://127.0.0.1:99" // another port of this machine is no difference
	a.Plan, b.Plan = "fixed: {seed: 7}\nrounds: 3\n", "fixed: {seed: 8}\nrounds: 5\n"
	got := Compare(a, b, Options{})
	if got.Outcome != NotComparable || !strings.Contains(got.Reason, "differ in engine_version, plan.fixed.seed;") {
		t.Errorf("%s: %s", got.Outcome, got.Reason)
	}
	if got := Compare(a, b, Options{Intended: []string{"engine_version"}}); got.Outcome != NotComparable || strings.Contains(got.Reason, "engine_version") {
		t.Errorf("%s: %s", got.Outcome, got.Reason)
	}
	if got := Compare(a, b, Options{Intended: []string{"engine_version", "plan"}}); got.Outcome != Regression {
		t.Errorf("%s: %s", got.Outcome, got.Reason)
	}
	b.Report.State, b.Report.Reason = "invalid", "the client was the bottleneck"
	if got := Compare(a, b, Options{Intended: []string{"engine_version", "plan"}}); got.Outcome != NotComparable || !strings.Contains(got.Reason, "the client was the bottleneck") {
		t.Errorf("%s: %s", got.Outcome, got.Reason)
	}
}

// A default that one plan writes out and the other doesn't is no difference; another value of it is one.
func TestDefaultsWrittenOut(t *testing.T) {
	a, b := made("a", 1, 1, 3, 1), made("b", 1, 1, 3, 2)
	a.Plan = "fixed: {prompts: {file: gone.jsonl}, output_tokens: 64}\nramp: {rate: [1, 2]}\n"
	for text, want := range map[string]string{
		a.Plan + "baseline: {concurrency: 1}\nrecovery: {concurrency: 1}\ncooldown: 2000ms\ntimeouts: {connect: 5s, first_token: 30s, idle: 30s, total: 120s}\nstep: {requests: 100}\nstop: {error_ratio: 50%}\n": "",
		"fixed: {prompts: {file: gone.jsonl}, output_tokens: 64, seed: 7, temperature: 0.0}\nramp: {rate: [1, 2], arrivals: poisson, max_in_flight: 512}\n":                                                       "",
		a.Plan + "timeouts: {total: 3m}\n":           "plan.timeouts.total: 2m0s, 3m0s",
		a.Plan + "baseline: {concurrency: 2}\n":      "plan.baseline.concurrency: 1, 2",
		a.Plan + "of_a_later_release: {idle: 30s}\n": "plan.apiVersion",
	} {
		b.Plan = text
		got := ""
		if ds := Differences(a, b, nil); len(ds) > 0 {
			got = ds[0].Key + ": " + ds[0].A + ", " + ds[0].B
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s\ndiffers in %q, want %q", text, got, want)
		}
	}
}

// An objective that was changed on purpose gives no share to compare.
func TestChangedObjective(t *testing.T) {
	a, b := made("a", 1, 1, 3, 1), made("b", 1, 1, 30, 2)
	a.Report.Objectives = []report.Objective{{Name: "ttft", Text: "TTFT ≤ 700 ms"}}
	b.Report.Objectives = []report.Objective{{Name: "ttft", Text: "TTFT ≤ 600 ms"}}
	got := Compare(a, b, Options{Intended: []string{"slo"}})
	if got.Outcome != NoDifference || !strings.Contains(strings.Join(got.Notes, " "), "missed ttft isn't compared") {
		t.Errorf("%s: %s, %q", got.Outcome, got.Reason, got.Notes)
	}
}

// One level alone that is 12 % slower is diluted to 3 % over four: that is neither shown nor ruled out.
func TestOneLevelAlone(t *testing.T) {
	a, b := made("a", 1, 1, 3, 1), made("b", 1, 1, 3, 2)
	for i := range b.Report.Steps[3].Rounds {
		*b.Report.Steps[3].Rounds[i].Latency.TTFT.P95 *= 1.12
	}
	if got := Compare(a, b, Options{}); got.Outcome != Inconclusive || !strings.Contains(got.Measures[0].Reason, "level 8") {
		t.Errorf("%s: %s", got.Outcome, got.Reason)
	}
}

// Two runs without a miss don't show that few more requests would miss in one of them: 0 of 100 leaves 3.7 points.
func TestNoMissesAreNoProof(t *testing.T) {
	_, diff, ci, _ := mantelHaenszel([]table{{0, 100, 0, 100}})
	if diff != 0 || ci[1] < 0.0365 || ci[0] > -0.0365 {
		t.Errorf("%v in %v", diff, ci)
	}
}

// Runs of the very same thing, with rounds that differ by 10 %: hardly any is called worse or better.
func TestRunsOfTheSameDiffer(t *testing.T) {
	rng, claims := rand.New(rand.NewPCG(1, 2)), 0
	for range 400 {
		a, b := made("a", 1, 1, 3, 1), made("b", 1, 1, 3, 1)
		for _, r := range []Run{a, b} {
			for i := range r.Report.Steps {
				for k := range r.Report.Steps[i].Rounds {
					*r.Report.Steps[i].Rounds[k].Latency.TTFT.P95 *= math.Exp(0.1 * rng.NormFloat64())
					*r.Report.Steps[i].Rounds[k].Throughput.Tokens *= math.Exp(0.1 * rng.NormFloat64())
				}
			}
		}
		switch Compare(a, b, Options{}).Outcome {
		case Regression, Improvement, TradeOff:
			claims++
		}
	}
	if claims > 20 {
		t.Errorf("%d of 400 pairs of the same were called different, more than 5 %%", claims)
	}
	t.Logf("%d of 400", claims)
}

// The p values are those of the exact distributions: 2/C(6,3) and 2/C(6,3)⁴.
func TestRankSum(t *testing.T) {
	apart := stratum{[]float64{1, 2, 3}, []float64{4, 5, 6}}
	tied := stratum{[]float64{1, 1, 1}, []float64{1, 1, 1}}
	for _, c := range []struct {
		strata []stratum
		want   float64
	}{
		{[]stratum{apart}, 0.1}, {[]stratum{apart, apart, apart, apart}, 1.25e-5}, {[]stratum{tied}, 1},
		{[]stratum{{[]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}}}, 2.0 / 70},
	} {
		if got := vanElteren(c.strata); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("p = %v, want %v", got, c.want)
		}
	}
}

// One table by hand: 10 of 100 against 20 of 100 is χ² = 3.90 with n − 1, p = 0.0483.
func TestMantelHaenszel(t *testing.T) {
	p, diff, ci, ok := mantelHaenszel([]table{{10, 100, 20, 100}})
	if !ok || math.Abs(p-0.0483) > 1e-4 || math.Abs(diff-0.1) > 1e-12 || ci[0] > 0.003 || ci[1] < 0.19 {
		t.Errorf("p = %v, difference %v in %v", p, diff, ci)
	}
}

func TestFirstBreachByRound(t *testing.T) {
	a, b := made("a", 1, 1, 3, 1), made("b", 1, 1, 3, 2)
	for i := range b.Report.Steps[1].Objectives[0].PerRound {
		b.Report.Steps[1].Objectives[0].PerRound[i].Over = true
	}
	f := Compare(a, b, Options{}).FirstBreach
	if *f.P != 0.1 || *f.PFloor != 0.1 || strings.Join(f.RoundsB, ",") != "2,2,2" || !strings.HasPrefix(f.Suspected, "moved down in all 3 rounds") {
		t.Errorf("%+v, p %v", f, *f.P)
	}
}

func save(t *testing.T, dir string, r Run) {
	t.Helper()
	text, err := json.Marshal(r.Report)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFindAndChain(t *testing.T) {
	folder := t.TempDir()
	b := made("run-b", 1, 1, 3, 2)
	b.Report.Conditions["model"] = "another"
	save(t, filepath.Join(folder, "1"), made("run-a", 1, 1, 3, 1))
	save(t, filepath.Join(folder, "2"), b)
	save(t, filepath.Join(folder, "3"), b)
	if err := os.Mkdir(filepath.Join(folder, "no run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r, err := Find("run-a", folder); err != nil || r.Report.Run != "run-a" {
		t.Errorf("%v, %v", r, err)
	}
	for name, says := range map[string]string{
		"run-c":                         "neither a run directory nor the ID of a run",
		"run-b":                         "2 runs in " + folder + " have the ID run-b: " + filepath.Join(folder, "2"),
		filepath.Join(folder, "no run"): "analyze report --run",
	} {
		if _, err := Find(name, folder); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
	chain, err := Chain(folder)
	if err != nil || len(chain) != 3 || !chain[0].First || strings.Join(chain[1].Changed, ",") != "model" || len(chain[2].Changed) != 0 {
		t.Errorf("%+v, %v", chain, err)
	}
}

// A run without a report is to be analysed, unless it still goes on.
func TestChainOfUnanalysedRuns(t *testing.T) {
	folder := t.TempDir()
	for state, want := range map[record.State]string{
		record.Running:     "still running; if loadgen was killed: analyze report --run ",
		record.Complete:    "no report: analyze report --run ",
		record.Interrupted: "no report: analyze report --run ",
	} {
		dir := filepath.Join(folder, string(state))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := record.WriteManifest(dir, record.Manifest{Schema: record.ManifestSchema, Run: string(state), State: state}); err != nil {
			t.Fatal(err)
		}
		chain, err := Chain(folder)
		if err != nil || len(chain) != 1 || chain[0].against() != want+dir {
			t.Errorf("%s: %+v, %v; want %s", state, chain, err, want+dir)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWriteWhereNobodyCan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a := made("a", 1, 1, 3, 1)
	if err := Compare(a, a, Options{}).WriteDir(filepath.Join(file, "out")); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
}
