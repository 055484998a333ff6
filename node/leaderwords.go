package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
)

// Placement is how far the voters are from each other.
type Placement = coord.Placement

// LeaderWords says why the leader is where it is: how far it is from a majority of the voters, who leads in turn with
// it, and what the others would have. "" if that is not known here.
func LeaderWords(leader string, p Placement) string {
	own, known := p.Majorities[leader]
	if !known {
		return ""
	}
	words := []string{"a majority within " + milliseconds(own)}
	turns := slices.DeleteFunc(slices.Clone(p.Turns), func(site string) bool { return site == leader })
	switch has := len(turns) < len(p.Turns); {
	case !has:
		turns = nil // all others that are known would have less
	case len(turns) == 0:
		words = append(words, "no other voter is as near, so it leads on")
	default:
		words = append(words, "in turn with "+strings.Join(turns, ", "))
	}
	var would []string
	for _, site := range sortedByValue(p.Majorities) {
		if site != leader && !slices.Contains(turns, site) {
			would = append(would, site+" would have "+milliseconds(p.Majorities[site]))
		}
	}
	return strings.Join(append(words, would...), "; ")
}

// sortedByValue returns the keys, those of the least values first.
func sortedByValue(of map[string]time.Duration) []string {
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[a], of[b]), cmp.Compare(a, b))
	})
}

// milliseconds words a round trip.
func milliseconds(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}
