package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// voidLate voids the rounds of a step in which the client read late, where that matters: the values
// that it read too late to tell are counted as slow, and if the step's verdict were another one with
// all of them within the threshold, it rests on the client and not on the service. It returns the
// rounds that are left.
//
// More slow requests never turn a breach into an ok, so the two ends of the range speak for all
// between them.
func (r *StepResult) voidLate(run Run, missing map[string]string, valid []Step) []Step {
	if !slices.ContainsFunc(valid, func(s Step) bool { return s.late() > 0 }) {
		return valid
	}
	early := make([]Step, len(valid))
	for i, s := range valid {
		early[i] = s.earliest()
	}
	var differ []string
	latest, earliest := judgeObjectives(run, missing, valid), judgeObjectives(run, missing, early)
	for i := range latest {
		if latest[i].Verdict != earliest[i].Verdict {
			differ = append(differ, fmt.Sprintf("%s is %s to %s", latest[i].Name, earliest[i].Verdict, latest[i].Verdict))
		}
	}
	for i, s := range r.Rounds {
		at := slices.IndexFunc(valid, func(v Step) bool { return v.Round == s.Round && v.Step == s.Step })
		if at < 0 || valid[at].late() == 0 {
			continue
		}
		found := fmt.Sprintf("the client read late, so for %s it can't be told whether the threshold was met", count(valid[at].late(), "value"))
		if len(differ) == 0 {
			r.Rounds[i].Checks = append(r.Rounds[i].Checks, Check{checkLate, Warn, found + "; the verdict is the same either way"})
			continue
		}
		r.Rounds[i].Checks = append(r.Rounds[i].Checks, failed(checkLate, "%s (%s): run fewer streams, split the run into shards, or give the load generator a host of its own",
			found, strings.Join(differ, ", ")))
		r.Rounds[i].Valid = false
	}
	if len(differ) == 0 {
		return valid
	}
	return slices.DeleteFunc(slices.Clone(valid), func(s Step) bool { return s.late() > 0 })
}

// late is how many values of all objectives the client read too late to tell.
func (s Step) late() int64 {
	var n int64
	for _, c := range s.Counts {
		n += c.Late
	}
	return n
}

// earliest is the step as it would be had every chunk come as early as it can have.
func (s Step) earliest() Step {
	all := make(map[string]Count, len(s.Counts))
	for name, c := range s.Counts {
		c.Slow -= min(c.Late, c.Slow)
		all[name] = c
	}
	s.Counts = all
	return s
}
