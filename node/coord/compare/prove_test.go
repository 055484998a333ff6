package compare

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord"
)

// Whoever has signed the history alone, and no state, contradicts nobody who has the same history: neither does it
// bring those that differ together, nor is it one of them.
func TestSlowSitesAreNoCamp(t *testing.T) {
	says := func(site string, state byte) Statement {
		return Statement{
			Site: site, Format: "f", Checkpoint: coord.Checkpoint{Entry: 5, Hashed: state > 0, Hash: Hash{state}},
		}
	}
	for name, x := range map[string]struct {
		list []Statement
		want string
	}{
		"the slow one first":        {[]Statement{says("slow", 0), says("b", 1), says("own", 2)}, "[[b] [own]] []"},
		"the slow one between them": {[]Statement{says("a", 1), says("slow", 0), says("b", 2)}, "[[a] [b]] []"},
		"one who lied, beside it":   {[]Statement{says("slow", 0), says("b", 1), says("b", 2)}, "[[b] [b]] [b]"},
		"nobody is contradicted":    {[]Statement{says("slow", 0), says("b", 1), says("c", 1)}, "none"},
	} {
		got := "none"
		if p, err := prove(&Evidence{}, x.list); err == nil {
			got = fmt.Sprint(p.Camps, " ", p.Lied)
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}
