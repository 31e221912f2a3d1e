package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The names of the checks of the whole run.
const (
	checkState      = "run_state"
	checkRounds     = "rounds"
	checkSkew       = "clock_skew"
	checkConditions = "conditions"
	checkThreshold  = "threshold_edges"
	checkWarnings   = "query_warnings"
	checkSLO        = "slo_file" // only where another than the run's own was used
)

// named is how many steps a summary names before it counts the rest.
const named = 3

// missingEdges returns, for each per-request objective without a count in a step that is otherwise
// sound, why. It holds for the whole run: an edge that one step lacks is a setting, and not an
// accident of that step. A void step has no counts for its own reasons.
func missingEdges(run Run) map[string]string {
	missing := map[string]string{}
	for _, o := range run.Objectives {
		if !o.perRequest() {
			continue
		}
		for _, s := range run.Steps {
			why := s.Counts[o.Name].Missing
			if why != "" && (missing[o.Name] == "" || why < missing[o.Name]) && judgeRound(run, s).Valid {
				missing[o.Name] = why
			}
		}
	}
	return missing
}

// runChecks are the checks that no single step can answer for.
func runChecks(run Run, missing map[string]string) []Check {
	checks := []Check{runState(run), rounds(run), skew(run), conditions(run), thresholds(run, missing), warnings(run)}
	if run.OtherSLO != "" {
		checks = append(checks, Check{checkSLO, Warn, run.OtherSLO})
	}
	return checks
}

func runState(run Run) Check {
	reason := ""
	if run.Reason != "" {
		reason = " (" + run.Reason + ")"
	}
	switch run.State {
	case "complete":
		return passed(checkState, "the run is complete"+reason)
	case "interrupted":
		return Check{checkState, Warn, "the run was interrupted" + reason + "; its complete steps count"}
	case "running":
		return Check{checkState, Warn, "the run has no end: loadgen was killed, or is still running; its complete steps count"}
	}
	return Check{checkState, NotChecked, "no manifest says how the run ended"}
}

func rounds(run Run) Check {
	switch {
	case run.Rounds == 0:
		return Check{checkRounds, NotChecked, "the planned number of rounds is unknown"}
	case run.Rounds < minRounds:
		return Check{checkRounds, Warn, fmt.Sprintf("%s planned: a verdict needs %d valid ones", count(int64(run.Rounds), "round"), minRounds)}
	}
	return passed(checkRounds, count(int64(run.Rounds), "round")+" planned")
}

func skew(run Run) Check {
	if run.ClockSkew == nil || run.ScrapeInterval <= 0 {
		return Check{checkSkew, NotChecked, "the clock of Prometheus or the scrape interval is unknown"}
	}
	off := math.Abs(*run.ClockSkew)
	found := fmt.Sprintf("the clocks differ by %s, with a scrape every %s", inSeconds(off), inSeconds(run.ScrapeInterval))
	switch {
	case off > run.ScrapeInterval:
		return failed(checkSkew, "%s: set both clocks by NTP and run again", found)
	case off > run.ScrapeInterval/2:
		return Check{checkSkew, Warn, found + ": set both clocks by NTP"}
	}
	return passed(checkSkew, found)
}

func conditions(run Run) Check {
	switch {
	case len(run.ConditionsChanged) > 0:
		changed := slices.Clone(run.ConditionsChanged)
		slices.Sort(changed)
		return failed(checkConditions, "conditions changed between rounds (%s): keep them fixed and run again", strings.Join(changed, "; "))
	case len(run.Conditions) == 0:
		return Check{checkConditions, NotChecked, "no conditions were recorded"}
	}
	return passed(checkConditions, "the same in every round, as far as they are recorded")
}

func thresholds(run Run, missing map[string]string) Check {
	var why []string
	for _, o := range run.Objectives {
		if m := missing[o.Name]; m != "" {
			why = append(why, o.Name+": "+m)
		}
	}
	if len(why) > 0 {
		return failed(checkThreshold, "%s", strings.Join(why, "; "))
	}
	return passed(checkThreshold, "every threshold is a histogram edge, so the counts are exact")
}

func warnings(run Run) Check {
	if len(run.Warnings) > 0 {
		w := slices.Clone(run.Warnings)
		slices.Sort(w)
		return Check{checkWarnings, Warn, strings.Join(slices.Compact(w), "; ")}
	}
	return passed(checkWarnings, "Prometheus gave no warning")
}

// stepChecks sums up the checks of all steps of all rounds, one line for each kind of check, with
// the worst status found.
func stepChecks(steps []StepResult) []Check {
	type found struct {
		status Status
		where  []string
		detail string
		total  int
	}
	names := []string{checkEdges, checkScraped, checkManifest, checkResets, checkScrapes, checkRequests, checkCounts, checkClient, checkLate, checkLittle, checkConcurrency, checkRate}
	all := map[string]*found{}
	for _, s := range steps {
		for _, r := range s.Rounds {
			for _, c := range r.Checks {
				f := all[c.Name]
				if f == nil {
					f = &found{status: Passed}
					all[c.Name] = f
				}
				f.total++
				if c.Status.worse(f.status) {
					*f = found{status: c.Status, detail: c.Detail, total: f.total}
				}
				if c.Status == f.status && c.Status != Passed {
					f.where = append(f.where, fmt.Sprintf("%s %s round %d", s.Phase, s.Level(), r.Round))
				}
			}
		}
	}
	var checks []Check
	for _, name := range names {
		f := all[name]
		if f == nil {
			continue
		}
		checks = append(checks, Check{name, f.status, cmp.Or(summary(f.detail, f.where, f.total), fmt.Sprintf("all %d steps of all rounds", f.total))})
	}
	return checks
}

// summary names the first few of the steps that a check found wanting.
func summary(detail string, where []string, total int) string {
	switch {
	case len(where) == 0:
		return ""
	case len(where) == total && total > 1:
		return "every step: " + detail
	case len(where) > named:
		return fmt.Sprintf("%s and %d more: %s", strings.Join(where[:named], ", "), len(where)-named, detail)
	}
	return strings.Join(where, ", ") + ": " + detail
}
