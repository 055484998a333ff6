package numbers

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestList: the list has what a plain one has, whatever comes and goes.
func TestList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l List
		var plain []uint64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			first := rapid.Uint64Range(1, 5000).Draw(t, "first")
			at, found := slices.BinarySearch(plain, first)
			most := 1 // of numbers without a gap, in the list or not
			if found {
				for at+most < len(plain) && plain[at+most] == first+uint64(most) {
					most++
				}
				n := rapid.IntRange(1, most).Draw(t, "out")
				l.Remove(first, n)
				plain = slices.Delete(plain, at, at+n)
			} else {
				if most = 2000; at < len(plain) {
					most = int(min(plain[at]-first, 2000))
				}
				n := rapid.IntRange(1, most).Draw(t, "in")
				l.Add(first, n)
				more := make([]uint64, n)
				for i := range more {
					more[i] = first + uint64(i)
				}
				plain = slices.Insert(plain, at, more...)
			}
			if err := l.sameAs(plain, rapid.Uint64Range(0, 7000).Draw(t, "below")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func (l *List) sameAs(plain []uint64, below uint64) error {
	if got := slices.Collect(l.All()); !slices.Equal(got, plain) || l.n != len(plain) {
		return fmt.Errorf("%d numbers %v, want %v", l.n, got, plain)
	}
	for _, p := range l.pieces {
		if len(p) == 0 || len(p) > mostPiece {
			return fmt.Errorf("a piece of %d numbers", len(p))
		}
	}
	if least, ok := l.First(); ok != (len(plain) > 0) || ok && least != plain[0] {
		return fmt.Errorf("the first is %d (%t) of %v", least, ok, plain)
	}
	at := len(plain)
	if below > 0 {
		at, _ = slices.BinarySearch(plain, below)
	}
	if last, ok := l.LastBelow(below); ok != (at > 0) || ok && last != plain[at-1] {
		return fmt.Errorf("the last below %d is %d (%t) of %v", below, last, ok, plain)
	}
	return nil
}

// BenchmarkLeaveTheNumbers is what it costs that a held job leaves which is among so many, and another comes: in
// one slice 300,000 took 0.1 ms.
func BenchmarkLeaveTheNumbers(b *testing.B) {
	for _, n := range []int{3000, 30_000, 300_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var l List
			for i := range n / 1000 {
				l.Add(uint64(1000*i), 1000)
			}
			next := uint64(n)
			for at := uint64(n / 2); b.Loop(); at, next = at+7919%uint64(n/4), next+1 {
				num, _ := l.LastBelow(next/2 + at%uint64(n/4))
				l.Remove(num, 1)
				l.Add(next, 1)
			}
		})
	}
}
