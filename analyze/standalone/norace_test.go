//go:build !race

package standalone

const underRace = false
