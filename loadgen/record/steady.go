package record

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firstbreach/internal/slo"
)

// NewSteady collects requests that belong to no run, as a probe sends them: the same series as a
// step's, without the step labels, all of them there at 0 from now on. It never ends.
func NewSteady(objectives []slo.Objective, now time.Time) *Step {
	s := newStep(StepID{}, describe(prometheus.Labels{}, true, objectives), newJudge(objectives, objectives))
	s.Enter(Measure, now)
	return s
}
