//go:build race

package sim

// underRace: the race detector is on.
const underRace = true
