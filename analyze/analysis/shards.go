package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// together is how far apart the shards of a run may begin to measure a step.
const together = time.Second

// ReadDirs reads what the directories of one run know of it: one, or one for each of its shards. The
// totals of the shards are added. What a missing or late shard makes of a step, its Limited says: with
// a part of the load it isn't the step that was asked for.
func ReadDirs(dirs []string) (Source, error) {
	var sources []Source
	for _, dir := range dirs {
		s, err := ReadDir(dir)
		if err != nil {
			return s, err
		}
		sources = append(sources, s)
	}
	first := sources[0]
	for i, s := range sources[1:] {
		a, b := first.Manifest, s.Manifest
		for _, d := range []struct{ what, a, b string }{
			{"run", a.Run, b.Run}, {"plan", a.PlanSHA256, b.PlanSHA256},
			{"SLO file", a.SLOSHA256, b.SLOSHA256}, {"prompts", a.Prompts, b.Prompts},
		} {
			if d.a != d.b {
				return first, fmt.Errorf("%s and %s are no shards of one run: the %s is another (%s, %s)", dirs[0], dirs[i+1], d.what, d.a, d.b)
			}
		}
	}
	manifests := map[string]*record.Manifest{}
	where := map[string]string{}
	of := 0
	for i, s := range sources {
		name := shardOf(s.Manifest)
		if other, twice := where[name]; twice {
			return first, fmt.Errorf("%s and %s are both of shard %q: name each run directory once", other, dirs[i], name)
		}
		where[name], manifests[name] = dirs[i], s.Manifest
		if shard, err := plan.ParseShard(name); err == nil {
			if of != 0 && shard.Of != of {
				return first, fmt.Errorf("%s is of a run with %d shards, and %s with %d: they are no shards of one run", dirs[i], shard.Of, dirs[0], of)
			}
			of = shard.Of
		}
	}
	if of == 0 {
		if len(dirs) > 1 {
			return first, fmt.Errorf("a run without shards has one directory: name either %s", strings.Join(dirs, " or "))
		}
		return first, nil
	}
	m := join(manifests, of)
	first.Manifest = &m
	return first, nil
}

// shardOf is the shard of a manifest; "" where there is none, or no step yet.
func shardOf(m *record.Manifest) string {
	if len(m.Steps) == 0 {
		return ""
	}
	return m.Steps[0].Shard
}

// join makes one manifest of those of all shards: that of the lowest, with everybody's totals.
func join(shards map[string]*record.Manifest, of int) record.Manifest {
	names := slices.Sorted(maps.Keys(shards))
	all := *shards[names[0]]
	all.Steps = nil
	at := map[record.StepID]int{}
	found := map[record.StepID]map[string]*time.Time{}
	for _, name := range names {
		m := shards[name]
		if m.State != record.Complete && all.State == record.Complete {
			all.State, all.Reason = m.State, "shard "+name+": "+m.Reason
		}
		if m.StartedAt.Before(all.StartedAt) {
			all.StartedAt = m.StartedAt
		}
		if all.EndedAt != nil && (m.EndedAt == nil || m.EndedAt.After(*all.EndedAt)) {
			all.EndedAt = m.EndedAt
		}
		for _, s := range m.Steps {
			id := record.StepID{Phase: s.Phase, Round: s.Round, Step: s.Step, Concurrency: s.Concurrency, Rate: s.Rate, Class: s.Class}
			i, ok := at[id]
			if !ok {
				i = len(all.Steps)
				at[id], found[id] = i, map[string]*time.Time{}
				fresh := s
				fresh.Shard, fresh.Limited, fresh.Warnings, fresh.Totals = "", nil, nil, map[string]record.Totals{}
				all.Steps = append(all.Steps, fresh)
			}
			found[id][name] = s.MeasureFrom
			addStep(&all.Steps[i], s, name)
		}
	}
	for id, i := range at {
		all.Steps[i].Limited = append(all.Steps[i].Limited, absent(found[id], of)...)
	}
	return all
}

// addStep adds one shard's part to a step.
func addStep(to *record.ManifestStep, s record.ManifestStep, name string) {
	to.Unscraped = to.Unscraped || s.Unscraped
	if to.Stopped == "" {
		to.Stopped = s.Stopped
	}
	for _, l := range s.Limited {
		to.Limited = append(to.Limited, "shard "+name+": "+l)
	}
	for _, w := range s.Warnings {
		to.Warnings = append(to.Warnings, "shard "+name+": "+w)
	}
	for window, t := range s.Totals {
		sum := to.Totals[window]
		sum.Outcomes, sum.Timeouts = add(sum.Outcomes, t.Outcomes), add(sum.Timeouts, t.Timeouts)
		if len(t.LateReads) > 0 {
			sum.LateReads = add(sum.LateReads, t.LateReads)
		}
		sum.Good += t.Good
		sum.OutputTokens += t.OutputTokens
		sum.PromptTokens += t.PromptTokens
		sum.Backoff += t.Backoff
		to.Totals[window] = sum
	}
}

func add(sum, more map[string]int) map[string]int {
	out := maps.Clone(sum)
	if out == nil {
		out = map[string]int{}
	}
	for k, n := range more {
		out[k] += n
	}
	return out
}

// absent names the shards that weren't in a step, or began to measure it later than the first.
func absent(measured map[string]*time.Time, of int) (why []string) {
	var first time.Time
	for _, at := range measured {
		if at != nil && (first.IsZero() || at.Before(first)) {
			first = *at
		}
	}
	for i := range of {
		name := plan.Shard{Index: i, Of: of}.String()
		at, there := measured[name]
		switch {
		case !there:
			why = append(why, fmt.Sprintf("shard %s missing: no run directory with its part of this step", name))
		case at == nil:
			why = append(why, fmt.Sprintf("shard %s missing: it never measured this step", name))
		case at.Sub(first) > together:
			why = append(why, fmt.Sprintf("shard %s late: it began to measure %s after the first", name, at.Sub(first).Round(time.Millisecond)))
		}
	}
	return why
}
