package plan_test

import (
	"strings"
	"testing"
	"time"

	"firstbreach/loadgen/plan"
)

func TestParseShard(t *testing.T) {
	for text, want := range map[string]string{
		"0/3": "", "2/3": "", "0/1": "",
		"4/3": "shards count from 0, so those of 3 are 0/3 to 2/3", "3/3": "count from 0", "-1/3": "count from 0",
		"": "is no shard", "1": "is no shard", "a/b": "is no shard", "1/3/4": "is no shard",
		"0/0": "1 to 256", "0/257": "1 to 256",
	} {
		s, err := plan.ParseShard(text)
		switch {
		case want == "" && (err != nil || s.String() != text):
			t.Errorf("%q: got %v, %v", text, s, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got error %v, want %q in it", text, err, want)
		}
	}
}

// The parts add up, differ by one at most, and no request number is used twice.
func TestShares(t *testing.T) {
	for of := 1; of <= 7; of++ {
		for n := range 40 {
			sum, least, most := 0, n, 0
			for i := range of {
				share := plan.Shard{Index: i, Of: of}.Share(n)
				sum, least, most = sum+share, min(least, share), max(most, share)
			}
			if sum != n || most-least > 1 {
				t.Errorf("%d slots over %d shards: sum %d, between %d and %d", n, of, sum, least, most)
			}
		}
		seen := map[int]bool{}
		for i := range of {
			for n := range 20 {
				seen[plan.Shard{Index: i, Of: of}.Number(n)] = true
			}
		}
		if len(seen) != 20*of {
			t.Errorf("%d shards: %d numbers of %d", of, len(seen), 20*of)
		}
	}
	if one := (plan.Shard{}); one.Share(5) != 5 || one.Number(5) != 5 || one.String() != "" {
		t.Error("a run of one generator isn't whole")
	}
}

func TestCheckShards(t *testing.T) {
	p := &plan.Plan{Path: "plan.yaml", Step: plan.Step{Requests: 100}, Ramp: plan.Ramp{Rate: []float64{1}}, Classes: []plan.Class{{Name: "chat"}}}
	err := p.CheckShards()
	for _, want := range []string{"plan.yaml: step: with --shard", "step: {duration: 60s}", "plan.yaml: ramp.rate", "plan.yaml: classes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	p.Classes, p.Step, p.Ramp = nil, plan.Step{Duration: time.Minute}, plan.Ramp{Concurrency: []int{1}}
	if err := p.CheckShards(); err != nil {
		t.Error(err)
	}
}

func TestEdges(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := &plan.Plan{Step: plan.Step{Duration: 20 * time.Second}, Cooldown: 2 * time.Second}
	e := p.Edges(at, 2) // each step takes 5 + 20 + 5 + 2 s
	if got := e.Start.Sub(at); got != 64*time.Second {
		t.Errorf("start %v", got)
	}
	if a, b, c := e.MeasureFrom.Sub(e.Start), e.MeasureTo.Sub(e.Start), e.SendUntil.Sub(e.Start); a != 5*time.Second || b != 25*time.Second || c != 30*time.Second {
		t.Errorf("edges %v %v %v", a, b, c)
	}
}
