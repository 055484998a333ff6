package store

import (
	"strings"
	"testing"
)

// TestUsersHavePlacesOfTheirOwn: however long their names are, and whatever is in them.
func TestUsersHavePlacesOfTheirOwn(t *testing.T) {
	seen := map[Place]string{}
	long := strings.Repeat("x", 200)
	for _, user := range []string{"", "a", "hash-", long, long + "y", "user-a"} {
		p := OwnOf(user)
		if other, twice := seen[p]; twice {
			t.Errorf("%q and %q share %v", user, other, p)
		}
		if seen[p] = user; len(p.Owner) > MaxOwner || p.Space != Own {
			t.Errorf("%q is at %v", user, p)
		}
	}
}
