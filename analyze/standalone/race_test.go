//go:build race

package standalone

// underRace: the race detector makes client, store and simulated engine, which are one process in these
// tests, several times slower. One scenario is enough for it, with times twice as long.
const underRace = true
