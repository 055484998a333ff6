package sim

import (
	"math/bits"

	"github.com/cloudshare/cloudshare/fsm"
)

// KeyedRand gives numbers that look random and depend on a key only, so that a result
// never depends on the order in which others are computed.
type KeyedRand struct {
	key uint64
	n   uint64
}

// NewKeyedRand returns the numbers of a key made of parts.
func NewKeyedRand(parts ...uint64) *KeyedRand {
	k := uint64(0)
	for _, p := range parts {
		k = fsm.Mix(k ^ fsm.Mix(p))
	}
	return &KeyedRand{key: k}
}

// Next returns 64 bits.
func (d *KeyedRand) Next() uint64 {
	d.n++
	return fsm.Mix(d.key ^ fsm.Mix(d.n))
}

// Below returns a number in [0, n), n ≥ 1.
func (d *KeyedRand) Below(n int64) int64 { return Scale(d.Next(), n) }

// Scale spreads 64 bits over [0, n).
func Scale(x uint64, n int64) int64 {
	hi, _ := bits.Mul64(x, uint64(n))
	return int64(hi)
}

// shuffle puts s into an order that d draws.
func shuffle[T any](d *KeyedRand, s []T) {
	for i := len(s) - 1; i > 0; i-- {
		j := d.Below(int64(i + 1))
		s[i], s[j] = s[j], s[i]
	}
}
