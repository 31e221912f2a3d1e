package main

import (
	"strings"
	"testing"
	"time"

	"firstbreach/loadgen/plan"
)

func TestSharding(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	boxed := &plan.Plan{Path: "plan.yaml", Step: plan.Step{Duration: time.Minute}}
	for name, c := range map[string]struct {
		cmd  runCommand
		plan *plan.Plan
		want string // in the error; "" for none
	}{
		"whole":            {runCommand{}, boxed, ""},
		"shard":            {runCommand{id: "r", shard: "1/3", startAt: "2026-01-02T03:05:00Z"}, boxed, ""},
		"4/3":              {runCommand{id: "r", shard: "4/3", startAt: "2026-01-02T03:05:00Z"}, boxed, "--shard: \"4/3\": shards count from 0"},
		"in the past":      {runCommand{id: "r", shard: "1/3", startAt: "2026-01-02T03:04:00Z"}, boxed, "in the past by 5s"},
		"no run ID":        {runCommand{shard: "1/3", startAt: "2026-01-02T03:05:00Z"}, boxed, "--shard needs --run-id"},
		"no time":          {runCommand{id: "r", shard: "1/3"}, boxed, "--shard needs --start-at"},
		"broken time":      {runCommand{id: "r", shard: "1/3", startAt: "soon"}, boxed, "write it as 2026-01-02T03:06:05Z"},
		"time alone":       {runCommand{startAt: "2026-01-02T03:05:00Z"}, boxed, "add --shard"},
		"steps by number":  {runCommand{id: "r", shard: "1/3", startAt: "2026-01-02T03:05:00Z"}, &plan.Plan{Path: "plan.yaml", Step: plan.Step{Requests: 5}}, "plan.yaml: step: with --shard"},
		"asked Prometheus": {runCommand{id: "r", shard: "1/3", startAt: "2026-01-02T03:05:00Z", prometheus: "http://p"}, boxed, "a shard knows only its own"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := c.cmd.sharding(c.plan, now)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}
