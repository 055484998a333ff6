package sched

import (
	"math/bits"
	"strconv"
)

// Int128 is a signed 128-bit integer in two's complement: its value is
// Hi·2⁶⁴ + Lo.
//
// Add, Sub, Neg and MulInt64 work modulo 2¹²⁸. A chain of them is therefore
// exact whenever its final value lies in [−2¹²⁷, 2¹²⁷), even if a value in
// between did not: DESIGN.md proves the range for every sum kept here.
type Int128 struct {
	Hi int64
	Lo uint64
}

// Int64 returns v as an Int128.
func Int64(v int64) Int128 { return Int128{Hi: v >> 63, Lo: uint64(v)} }

// Uint64 returns v as an Int128.
func Uint64(v uint64) Int128 { return Int128{Lo: v} }

// Mul64 returns a·b; it is exact for all arguments.
func Mul64(a, b int64) Int128 { return Int64(a).MulInt64(b) }

// Add returns x + y.
func (x Int128) Add(y Int128) Int128 {
	lo, carry := bits.Add64(x.Lo, y.Lo, 0)
	return Int128{Hi: x.Hi + y.Hi + int64(carry), Lo: lo}
}

// Sub returns x − y.
func (x Int128) Sub(y Int128) Int128 {
	lo, borrow := bits.Sub64(x.Lo, y.Lo, 0)
	return Int128{Hi: x.Hi - y.Hi - int64(borrow), Lo: lo}
}

// Neg returns −x.
func (x Int128) Neg() Int128 { return Int128{}.Sub(x) }

// MulInt64 returns x·m; it is exact if |x·m| < 2¹²⁷.
func (x Int128) MulInt64(m int64) Int128 {
	hi, lo := bits.Mul64(x.Lo, uint64(m))
	hi += uint64(x.Hi) * uint64(m)
	if m < 0 { // uint64(m) is m + 2⁶⁴
		hi -= x.Lo
	}
	return Int128{Hi: int64(hi), Lo: lo}
}

// Double returns 2x.
func (x Int128) Double() Int128 { return x.Add(x) }

// Half returns x/2, rounded down; callers use it on even values only.
func (x Int128) Half() Int128 {
	return Int128{Hi: x.Hi >> 1, Lo: x.Lo>>1 | uint64(x.Hi)<<63}
}

// Div returns x/m, rounded down.
//
// REQUIRES: x ≥ 0, m > 0.
func (x Int128) Div(m int64) Int128 {
	if x.Hi == 0 {
		return Int128{Lo: x.Lo / uint64(m)}
	}
	hi := uint64(x.Hi) / uint64(m)
	lo, _ := bits.Div64(uint64(x.Hi)%uint64(m), x.Lo, uint64(m))
	return Int128{Hi: int64(hi), Lo: lo}
}

// Cmp returns −1, 0 or +1 as x is less than, equal to or greater than y.
func (x Int128) Cmp(y Int128) int {
	switch {
	case x == y:
		return 0
	case x.Hi < y.Hi || x.Hi == y.Hi && x.Lo < y.Lo:
		return -1
	}
	return 1
}

// IsZero reports whether x = 0.
func (x Int128) IsZero() bool { return x == Int128{} }

// Sign returns −1, 0 or +1 with the sign of x.
func (x Int128) Sign() int {
	switch {
	case x.Hi < 0:
		return -1
	case x.IsZero():
		return 0
	}
	return 1
}

// magnitude returns |x| as two unsigned words; −2¹²⁷ has one too.
func (x Int128) magnitude() (hi, lo uint64) {
	if x.Hi < 0 {
		x = x.Neg()
	}
	return uint64(x.Hi), x.Lo
}

// String returns x in decimal.
func (x Int128) String() string {
	// 1e19 is the greatest power of ten in a word, so 39 digits are at most
	// three groups of 19.
	const group, digits = 10_000_000_000_000_000_000, 19
	hi, lo := x.magnitude()
	var buf [48]byte
	at := len(buf)
	for {
		var rem uint64
		top := hi / group
		lo, rem = bits.Div64(hi%group, lo, group)
		hi = top
		s := strconv.AppendUint(nil, rem, 10)
		at -= len(s)
		copy(buf[at:], s)
		if hi == 0 && lo == 0 {
			break
		}
		for range digits - len(s) {
			at--
			buf[at] = '0'
		}
	}
	if x.Hi < 0 {
		at--
		buf[at] = '-'
	}
	return string(buf[at:])
}
