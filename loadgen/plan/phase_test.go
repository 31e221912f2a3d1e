package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"firstbreach/internal/level"
)

func TestPhases(t *testing.T) {
	p, err := Parse("plan.yaml", file(`soak: {rate: 2.5, arrivals: constant, duration: 30m}`,
		`fluctuation: [{shape: square, concurrency: [2, 8], period: 1m, duration: 5m}, {shape: spike, rate: [1, 20], at: 1m, for: 20s, duration: 3m, max_in_flight: 100}]`,
		`drills: [{name: restart, concurrency: 4, at: 30s, duration: 3m, command: [sh, -c, 'exit 0'], timeout: 20s}, `+
			`{name: cut, rate: 3, at: 10s, for: 20s, duration: 1m, request: {url: 'http://proxy/cut'}, restore: {request: {url: 'http://proxy/heal'}}}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Stage{
		{Phase: PhaseSoak, Round: 1, Step: 1, Rate: 2.5},
		{Phase: PhaseFluctuation, Round: 1, Step: 1, Concurrency: 8}, {Phase: PhaseFluctuation, Round: 1, Step: 2, Rate: 20},
		{Phase: PhaseDrill, Round: 1, Step: 1, Concurrency: 4}, {Phase: PhaseDrill, Round: 1, Step: 2, Rate: 3},
	}
	if d := cmp.Diff(want, p.After()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(&Soak{HeldLoad{Rate: 2.5, Arrivals: Constant, MaxInFlight: DefaultInFlight}, 30 * time.Minute}, p.Soak); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Fluctuation{
		HeldLoad{Rate: 20, Arrivals: Poisson, MaxInFlight: 100},
		level.Curve{Shape: level.Spike, Low: 1, High: 20, PerSecond: true, At: 60, For: 20}, 3 * time.Minute,
	}, p.Fluctuations[1]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Drill{
		HeldLoad{Concurrency: 4}, "restart", 3 * time.Minute, 30 * time.Second,
		Restore{Command: []string{"sh", "-c", "exit 0"}, Timeout: 20 * time.Second}, 0, Restore{Timeout: time.Minute},
	}, p.Drills[0]); d != "" {
		t.Error(d)
	}
	if p.Bounds(want[2]) != (Step{Duration: 3 * time.Minute}) || p.Bounds(Stage{Phase: PhaseRamp}) != p.Step || p.Held(want[4]).MaxInFlight != DefaultInFlight {
		t.Error("bounds or load of a stage")
	}
	if p.highest() != DefaultInFlight {
		t.Errorf("up to %d in flight", p.highest())
	}
	if err := p.CheckCommands(); err != nil {
		t.Error(err)
	}
	p.Drills[0].Action.Command[0] = "/no/such/program"
	if err := p.CheckCommands(); err == nil || err.Error() != "plan.yaml: drills[0].command: /no/such/program can't be run: no such file or directory (fix: write the path of a program that this machine has)" {
		t.Errorf("a program that isn't there: %v", err)
	}
}

func TestPhaseFaults(t *testing.T) {
	fluctuation := func(s string) string { return "fluctuation: [{" + s + "}]" }
	drill := func(s string) string { return "drills: [{name: d, concurrency: 1, duration: 1m, at: 10s, " + s + "}]" }
	for _, c := range []struct{ line, want string }{
		{"soak: {duration: 1h}", "soak: names no load"},
		{"soak: {concurrency: 4}", "soak.duration: is missing"},
		{"soak: {concurrency: 4, duration: 2s}", "soak.duration: 2s is too short to tell anything"},
		{"soak: {concurrency: 4, rate: 2, duration: 1h}", "soak.rate: stands beside concurrency"},
		{"soak: {concurrency: 0, duration: 1h}", "soak.concurrency: 0 is no load"},
		{"soak: {concurrency: 4, arrivals: poisson, duration: 1h}", "soak.arrivals: has no meaning beside concurrency"},
		{"soak: {concurrency: 4, duration: 1h, windows: 3}", "soak.windows: unknown key"},
		{"fluctuation: {shape: sine}", "fluctuation: must be a list"},
		{fluctuation("concurrency: [2, 8], period: 1m, duration: 5m"), "fluctuation[0].shape: is missing"},
		{fluctuation("shape: saw, concurrency: [2, 8], period: 1m, duration: 5m"), `fluctuation[0].shape: unknown value "saw"`},
		{fluctuation("shape: spike, concurrency: [8, 2], at: 10s, for: 5s, duration: 1m"), "fluctuation[0].concurrency[1]: 2 is not above 8 (fix: write the lower level first, then the higher one)"},
		{fluctuation("shape: spike, rate: [2, 2], at: 10s, for: 5s, duration: 1m"), "fluctuation[0].rate[1]: 2 is not above 2"},
		{fluctuation("shape: square, concurrency: [1, 2, 3], period: 10s, duration: 1m"), "fluctuation[0].concurrency: has 3 levels"},
		{fluctuation("shape: square, concurrency: [1, 2], duration: 1m"), "fluctuation[0].period: is missing"},
		{fluctuation("shape: square, concurrency: [1, 2], period: 2m, duration: 1m"), "fluctuation[0].period: 120s is longer than the whole, 1m0s"},
		{fluctuation("shape: square, concurrency: [1, 2], period: 10s, at: 5s, duration: 1m"), "fluctuation[0].at: has no meaning for a square"},
		{fluctuation("shape: spike, concurrency: [1, 2], at: 50s, for: 20s, duration: 1m"), "fluctuation[0].for: ends at 70s, and nothing is left of 1m0s"},
		{fluctuation("shape: spike, concurrency: [1, 2], period: 5s, at: 5s, for: 20s, duration: 1m"), "fluctuation[0].period: has no meaning for a spike"},
		{drill(""), "drills[0]: does nothing"},
		{drill("command: reboot"), "drills[0].command: must be a list"},
		{drill("command: [x], request: {url: 'http://x'}"), "drills[0].request: stands beside command"},
		{drill("command: [x], for: 5s"), "drills[0].for: says when to undo the drill, but there is nothing that does"},
		{drill("command: [x], for: 50s, restore: {command: [y]}"), "drills[0].for: ends at 1m0s, and nothing is left of 1m0s"},
		{drill("command: [x], restore: {}"), "drills[0].restore: does nothing"},
		{"drills: [{name: d, concurrency: 1, duration: 1m, at: 60s, command: [x]}]", "drills[0].at: 1m0s is not before the end at 1m0s"},
		{"drills: [{concurrency: 1, duration: 1m, at: 6s, command: [x]}]", "drills[0].name: is missing"},
	} {
		_, err := Parse("plan.yaml", file(c.line))
		if err == nil {
			t.Errorf("%s is taken", c.line)
			continue
		}
		if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, "plan.yaml:") || !strings.Contains(text, c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.line, err, c.want)
		}
	}
	twice := "drills: [{name: d, concurrency: 1, duration: 1m, at: 6s, command: [x]}, {name: d, concurrency: 1, duration: 1m, at: 6s, command: [x]}]"
	if _, err := Parse("plan.yaml", file(twice)); err == nil || !strings.Contains(err.Error(), `drills[1].name: "d" is the name of another drill`) {
		t.Errorf("two drills of one name: %v", err)
	}
	if _, err := Parse("plan.yaml", file("environment: production", "ramp: {concurrency: [1]}", drill("command: [x]"))); err == nil ||
		!strings.Contains(err.Error(), "drills[0]: does harm on purpose, to a target that serves users") {
		t.Errorf("a drill in production: %v", err)
	}
}
