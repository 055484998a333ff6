//go:build !race

package sim

// underRace: the race detector is on. It makes all several times slower; `make test`
// runs this package once more without it, with all that there is.
const underRace = false
