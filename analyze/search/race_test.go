//go:build race

package search

// underRace reports whether the race detector slows everything down.
const underRace = true
