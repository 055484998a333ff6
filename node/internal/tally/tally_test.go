package tally

import (
	"testing"

	"pgregory.net/rapid"
)

// TestByUser: the sum is that of all users, and nothing is kept of who has nothing.
func TestByUser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all ByUser[int]
		want, sum := map[string]int{}, 0
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			user, n := rapid.SampledFrom([]string{"", "alice", "bob"}).Draw(t, "user"), rapid.IntRange(-3, 3).Draw(t, "n")
			all.Add(user, n)
			want[user] += n
			sum += n
		}
		kept := 0
		for user, n := range want {
			if all.Of(user) != n {
				t.Fatalf("user %q has %d, not %d", user, all.Of(user), n)
			}
			if n != 0 {
				kept++
			}
		}
		if all.Sum() != sum || len(all.amounts) != kept {
			t.Fatalf("%d of %d users; want %d of %d", all.Sum(), len(all.amounts), sum, kept)
		}
	})
}
