package tally

import (
	"testing"

	"pgregory.net/rapid"
)

// TestByUser: the sum is that of all users, and nothing is kept of who has nothing.
func TestByUser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all ByUser[Count]
		want, sum := map[string]Count{}, Count(0)
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			user, n := rapid.SampledFrom([]string{"", "alice", "bob"}).Draw(t, "user"), Count(rapid.IntRange(0, 3).Draw(t, "n"))
			sign := rapid.SampledFrom([]int{1, -1}).Draw(t, "sign")
			all.Add(user, n, sign)
			want[user] += Count(sign) * n
			sum += Count(sign) * n
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
