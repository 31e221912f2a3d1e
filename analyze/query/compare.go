package query

import (
	"fmt"
	"slices"

	"firstbreach/loadgen/record"
)

// compareManifest names each total in which Prometheus and the manifest differ. The manifest's
// totals are the counters as they stood when the step ended, so any difference means that samples
// are missing, or were mixed up.
func (l *loader) compareManifest() {
	if l.Manifest == nil {
		return
	}
	known := map[stepKey]bool{}
	for _, ms := range l.Manifest.Steps {
		known[manifestKey(ms)] = true
		s := l.stepOf(manifestKey(ms))
		s.ManifestDiffers = s.differences(ms)
	}
	for k, s := range l.steps {
		if !known[k] {
			s.ManifestDiffers = []string{"the manifest doesn't have this step"}
		}
	}
}

func (s *step) differences(ms record.ManifestStep) []string {
	if len(s.windows) == 0 {
		return []string{notScraped}
	}
	var diffs []string
	note := func(window, what string, manifest int, prometheus int64) {
		if int64(manifest) != prometheus {
			diffs = append(diffs, fmt.Sprintf("%s %s: %d in the manifest, %d in Prometheus", window, what, manifest, prometheus))
		}
	}
	compare := func(window, what string, manifest map[string]int, prometheus map[string]int64) {
		first := len(diffs)
		for k, n := range manifest {
			note(window, what+k, n, prometheus[k])
		}
		for k, n := range prometheus {
			if _, ok := manifest[k]; !ok {
				note(window, what+k, 0, n)
			}
		}
		slices.Sort(diffs[first:])
	}
	for _, w := range windowNames(ms.Totals, s.windows) {
		ours, theirs := s.windows[w], ms.Totals[w]
		if ours == nil {
			ours = &totals{}
		}
		compare(w, "requests with outcome ", theirs.Outcomes, ours.outcomes)
		compare(w, "timeouts of kind ", theirs.Timeouts, ours.timeouts)
		compare(w, "late reads of ", theirs.LateReads, ours.late)
		note(w, "good requests", theirs.Good, ours.good)
		note(w, "output tokens", theirs.OutputTokens, ours.output)
		note(w, "prompt tokens", theirs.PromptTokens, ours.prompt)
	}
	return diffs
}

// windowNames lists the windows in the order in which they come, then whatever else there is.
func windowNames(a map[string]record.Totals, b map[string]*totals) []string {
	var out []string
	for _, w := range record.Windows() {
		out = append(out, string(w))
	}
	var others []string
	for w := range a {
		others = append(others, w)
	}
	for w := range b {
		others = append(others, w)
	}
	slices.Sort(others)
	for _, w := range others {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
