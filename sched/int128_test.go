package sched

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

var two128 = new(big.Int).Lsh(big.NewInt(1), 128)

// toBig is the oracle's reading of an Int128.
func toBig(x Int128) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(x.Hi), 64)
	return v.Add(v, new(big.Int).SetUint64(x.Lo))
}

// wrap reduces v into [−2¹²⁷, 2¹²⁷), as two's complement does.
func wrap(v *big.Int) *big.Int {
	v = new(big.Int).Mod(v, two128)
	if v.Bit(127) == 1 {
		v.Sub(v, two128)
	}
	return v
}

func mustEqual(t rapid.TB, got Int128, want *big.Int, what string) {
	t.Helper()
	if toBig(got).Cmp(want) != 0 {
		t.Fatalf("%s = %v, want %v", what, got, want)
	}
}

// edges draws values that sit at the borders of words more often than chance.
func edges() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3),
		rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64}))
}

func drawInt128(t *rapid.T, name string) Int128 {
	return Int128{Hi: edges().Draw(t, name+".hi"), Lo: uint64(edges().Draw(t, name+".lo"))}
}

func TestInt128AgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y, m := drawInt128(t, "x"), drawInt128(t, "y"), edges().Draw(t, "m")
		bx, by, bm := toBig(x), toBig(y), big.NewInt(m)
		mustEqual(t, x.Add(y), wrap(new(big.Int).Add(bx, by)), "x+y")
		mustEqual(t, x.Sub(y), wrap(new(big.Int).Sub(bx, by)), "x-y")
		mustEqual(t, x.Neg(), wrap(new(big.Int).Neg(bx)), "-x")
		mustEqual(t, x.Double(), wrap(new(big.Int).Lsh(bx, 1)), "2x")
		mustEqual(t, x.Half(), new(big.Int).Rsh(bx, 1), "x/2")
		mustEqual(t, x.MulInt64(m), wrap(new(big.Int).Mul(bx, bm)), "x*m")
		if got, want := x.Cmp(y), bx.Cmp(by); got != want {
			t.Fatalf("Cmp = %d, want %d", got, want)
		}
		if got, want := x.Sign(), bx.Sign(); got != want || x.IsZero() != (want == 0) {
			t.Fatalf("Sign = %d, IsZero = %v, want sign %d", got, x.IsZero(), want)
		}
		if got, want := x.String(), bx.String(); got != want {
			t.Fatalf("String = %q, want %q", got, want)
		}
	})
}

func TestInt128FromWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := edges().Draw(t, "a"), edges().Draw(t, "b")
		mustEqual(t, Int64(a), big.NewInt(a), "Int64")
		mustEqual(t, Uint64(uint64(a)), new(big.Int).SetUint64(uint64(a)), "Uint64")
		mustEqual(t, Mul64(a, b), new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), "Mul64")
	})
}

func TestInt128StringAtGroupBorders(t *testing.T) {
	for _, c := range []struct {
		x    Int128
		want string
	}{
		{Int128{}, "0"},
		{Int64(-1), "-1"},
		{Uint64(9_999_999_999_999_999_999), "9999999999999999999"},
		{Uint64(10_000_000_000_000_000_000), "10000000000000000000"},
		{Int64(10).MulInt64(1e18).MulInt64(1e18).MulInt64(10), "100000000000000000000000000000000000000"},
		{Int128{Hi: math.MaxInt64, Lo: math.MaxUint64}, "170141183460469231731687303715884105727"},
		{Int128{Hi: math.MinInt64}, "-170141183460469231731687303715884105728"},
	} {
		if got := c.x.String(); got != c.want {
			t.Errorf("String = %q, want %q", got, c.want)
		}
	}
}
