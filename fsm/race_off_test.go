//go:build !race

package fsm

// underRace: the race detector is on. It makes all several times slower, and a State is one
// goroutine's but for its snapshots, so random plays are fewer then; `make test` plays them
// without it, too.
const underRace = false
