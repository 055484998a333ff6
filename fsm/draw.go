package fsm

import "math/bits"

// Mix spreads the bits of x over the whole word (SplitMix64). Choices that must
// be the same on every replica, and in every simulation, are keyed by it.
func Mix(x uint64) uint64 { return mix(x) }

// Draw is the choice of a machine for a decision: a position in [0, total) of
// free milli-cores laid end to end, by site and machine name. total > 0; retry
// counts machines of this decision that fit nothing.
func Draw(seed, decision, retry uint64, total int64) int64 {
	r, _ := bits.Mul64(mix(mix(seed^decision)^retry), uint64(total))
	return int64(r)
}
