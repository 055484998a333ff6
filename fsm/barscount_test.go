package fsm

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestBarCountsAddUp adds counts of many sites at once, with new offers in between, and compares the counts with
// a map.
func TestBarCountsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c barCounts
		sites, want := make([]site, 12), map[int32]int{}
		for i := range sites {
			sites[i].id = int32(i)
		}
		for range rapid.IntRange(1, 20).Draw(t, "times") {
			var more []barCount
			for i := range sites {
				x := &sites[i]
				if rapid.IntRange(0, 9).Draw(t, "offer") == 0 {
					x.offers++
					delete(want, x.id)
				}
				if n := rapid.IntRange(0, 4).Draw(t, "jobs") - min(2, want[x.id]); n != 0 {
					more = append(more, barCount{x.id, x.offers, n})
					if want[x.id] += n; want[x.id] == 0 {
						delete(want, x.id)
					}
				}
			}
			c.add(more)
			got := map[int32]int{}
			for i := range sites {
				if n := c.of(&sites[i]); n != 0 {
					got[int32(i)] = n
				}
			}
			if !maps.Equal(got, want) ||
				!slices.IsSortedFunc(c, func(a, b barCount) int { return int(a.site - b.site) }) {
				t.Fatalf("after %v: %v, want %v", more, c, want)
			}
			if slices.ContainsFunc(c, func(b barCount) bool { return b.jobs == 0 }) {
				t.Fatalf("a site of no jobs is kept: %v", c)
			}
		}
	})
}
