//go:build race

package fsm

// underRace: the race detector is on.
const underRace = true
