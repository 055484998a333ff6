package sim

import (
	"math/bits"

	"github.com/cloudshare/cloudshare/fsm"
)

// dice are numbers that look random and depend on a key only, so that a result
// never depends on the order in which others are computed.
type dice struct {
	key uint64
	n   uint64
}

// keyed returns the dice of a key made of parts.
func keyed(parts ...uint64) *dice {
	k := uint64(0)
	for _, p := range parts {
		k = fsm.Mix(k ^ fsm.Mix(p))
	}
	return &dice{key: k}
}

// next returns 64 bits.
func (d *dice) next() uint64 {
	d.n++
	return fsm.Mix(d.key ^ fsm.Mix(d.n))
}

// below returns a number in [0, n), n ≥ 1.
func (d *dice) below(n int64) int64 { return scale(d.next(), n) }

// scale spreads 64 bits over [0, n).
func scale(x uint64, n int64) int64 {
	hi, _ := bits.Mul64(x, uint64(n))
	return int64(hi)
}

// shuffle puts s into an order of the dice.
func shuffle[T any](d *dice, s []T) {
	for i := len(s) - 1; i > 0; i-- {
		j := d.below(int64(i + 1))
		s[i], s[j] = s[j], s[i]
	}
}
