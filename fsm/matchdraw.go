package fsm

import "math/bits"

// Mix spreads the bits of x over the whole word. It is the finalizer of splitmix64, a bijection in which
// each output bit depends on every input bit. It keys choices that must be the same on every replica and
// in every simulation.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Draw returns the choice of a machine for a decision: a position in [0, total) of free milli-cores laid
// end to end, by site and machine name. total > 0; retry counts machines of this decision that fit
// nothing.
func Draw(seed, decision, retry uint64, total int64) int64 {
	r, _ := bits.Mul64(Mix(Mix(seed^decision)^retry), uint64(total))
	return int64(r)
}
