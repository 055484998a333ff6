package followers

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestBookIsBounded: whatever is added, the newest jobs are remembered within the bounds, each with its first followers
// and their count.
func TestBookIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Book
		const jobs, all = 4, 10
		added := map[uint64][]uint64{}
		for i := range rapid.Uint64Range(1, 60).Draw(t, "n") {
			job := rapid.Uint64Range(1, 8).Draw(t, "job")
			if b.jobs[job] == nil {
				added[job] = nil // forgotten, if it was there
			}
			added[job] = append(added[job], 100+i)
			b.add(job, 100+i, jobs, all)
			listed := 0
			for num, f := range b.jobs {
				listed += len(f.first)
				if first, n := b.Of(num, 3); n != len(added[num]) || !slices.Equal(first, added[num][:min(3, n)]) {
					t.Fatalf("job %d is followed by %v, %d in all; added were %v", num, first, n, added[num])
				}
			}
			if len(b.jobs) > jobs || listed > all || listed != b.all || len(b.order) != len(b.jobs) {
				t.Fatalf("%d jobs, %d of %d listed, in order %v", len(b.jobs), listed, b.all, b.order)
			}
		}
	})
}

// TestManyFollowersAreCounted: of those of one job the first are listed, and the others counted.
func TestManyFollowersAreCounted(t *testing.T) {
	var b Book
	for i := range uint64(10_000) {
		b.Add(1, 2+i)
	}
	if first, all := b.Of(1, 1000); len(first) != MaxListed || all != 10_000 || b.all != MaxListed {
		t.Errorf("%d of %d", len(first), all)
	}
	if first, all := b.Of(2, 1000); first != nil || all != 0 {
		t.Errorf("nobody follows it: %v, %d", first, all)
	}
}
