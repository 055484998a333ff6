package sched

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func drawRank(t *rapid.T, name string) Rank {
	den := rapid.OneOf(rapid.Int64Range(0, 4), rapid.Int64Range(1, math.MaxInt64),
		rapid.Just(int64(math.MaxInt64))).Draw(t, name+".den")
	num := rapid.OneOf(rapid.Custom(func(t *rapid.T) Int128 { return drawInt128(t, "wide") }),
		rapid.Map(rapid.Int64Range(-4, 4), Int64)).Draw(t, name+".num")
	return Rank{Num: num, Den: den}
}

// compareBig is the oracle: fractions of any size, Den = 0 as −∞.
func compareBig(r, o Rank) int {
	switch {
	case r.Den == 0 && o.Den == 0:
		return 0
	case r.Den == 0:
		return -1
	case o.Den == 0:
		return 1
	}
	return new(big.Rat).SetFrac(toBig(r.Num), big.NewInt(r.Den)).
		Cmp(new(big.Rat).SetFrac(toBig(o.Num), big.NewInt(o.Den)))
}

func TestRankCompareAgainstRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, o := drawRank(t, "r"), drawRank(t, "o")
		want := compareBig(r, o)
		if got := r.Compare(o); got != want {
			t.Fatalf("%v.Compare(%v) = %d, want %d", r, o, got, want)
		}
		if got := o.Compare(r); got != -want {
			t.Fatalf("Compare is not antisymmetric for %v and %v", r, o)
		}
	})
}

func TestRankCompareNearTies(t *testing.T) {
	top := Int128{Hi: math.MaxInt64, Lo: math.MaxUint64}
	low := Int128{Hi: math.MinInt64}
	for _, c := range []struct {
		name string
		r, o Rank
		want int
	}{
		{"equal fractions", Rank{Int64(1), 3}, Rank{Int64(2), 6}, 0},
		{"below 128 bits apart", Rank{top, math.MaxInt64}, Rank{top.Sub(Int64(1)), math.MaxInt64 - 1}, -1},
		{"least against greatest", Rank{low, 1}, Rank{top, math.MaxInt64}, -1},
		{"least over more is greater", Rank{low, 2}, Rank{low, 1}, 1},
		{"zero over anything is equal", Rank{Int128{}, 7}, Rank{Int128{}, 9}, 0},
		{"no share ranks last", Rank{Int64(9), 0}, Rank{low, 1}, -1},
		{"two without a share tie", Rank{Int64(9), 0}, Rank{low, 0}, 0},
	} {
		if got := c.r.Compare(c.o); got != c.want {
			t.Errorf("%s: Compare = %d, want %d", c.name, got, c.want)
		}
		if got := compareBig(c.r, c.o); got != c.want {
			t.Errorf("%s: the oracle says %d, want %d", c.name, got, c.want)
		}
	}
}
