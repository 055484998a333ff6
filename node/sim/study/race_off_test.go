//go:build !race

package study

// raceDetected: the race detector is on, and all is several times slower.
const raceDetected = false
