package sched

import (
	"cmp"
	"math/bits"
)

// Rank is an exact fraction Num/Den, Den ≥ 0; Den = 0 ranks last.
// Ranks compare by cross multiplication (see Compare); only ranks of one
// policy at one time mean anything beside each other.
type Rank struct {
	Num Int128
	Den int64
}

// Compare returns −1, 0 or +1 as r ranks below, equal to or above o. Two ranks
// with Den = 0 are equal, whatever their Num.
//
// It is exact for all values: |Num| ≤ 2¹²⁷ and Den < 2⁶³ give |Num·Den| < 2¹⁹⁰,
// and the products are compared in 192 bits.
func (r Rank) Compare(o Rank) int {
	switch {
	case r.Den <= 0 || o.Den <= 0:
		return cmp.Compare(min(max(r.Den, 0), 1), min(max(o.Den, 0), 1))
	case r.Den == o.Den:
		return r.Num.Cmp(o.Num)
	}
	sign := r.Num.Sign()
	if s := o.Num.Sign(); s != sign {
		return cmp.Compare(sign, s)
	}
	return sign * compareProducts(r.Num, o.Den, o.Num, r.Den)
}

// compareProducts compares |a|·m with |b|·n, m and n ≥ 0.
func compareProducts(a Int128, m int64, b Int128, n int64) int {
	a2, a1, a0 := product(a, uint64(m))
	b2, b1, b0 := product(b, uint64(n))
	switch {
	case a2 != b2:
		return cmp.Compare(a2, b2)
	case a1 != b1:
		return cmp.Compare(a1, b1)
	}
	return cmp.Compare(a0, b0)
}

// product returns |x|·m in three words, the greatest first.
func product(x Int128, m uint64) (w2, w1, w0 uint64) {
	hi, lo := x.magnitude()
	carry, w0 := bits.Mul64(lo, m)
	w2, w1 = bits.Mul64(hi, m)
	w1, c := bits.Add64(w1, carry, 0)
	return w2 + c, w1, w0
}
