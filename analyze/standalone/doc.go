// Package standalone is the one-command main job: it starts the simulated engine (or takes a target),
// the exporter, the load generator and the embedded store, runs the plan, analyses it and leaves the
// report in the run directory.
//
// It only joins the other rooms together: what is measured, stored or judged is theirs.
package standalone
