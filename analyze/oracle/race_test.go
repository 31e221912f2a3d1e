//go:build race

package oracle

// underRace: the race detector makes a run several times slower; one scenario is enough for it.
const underRace = true
