package coordtest

import (
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
)

// toldAnotherHistory: a member that was told another history than two more, though it led to the same state, stops;
// the others name it, lend on, and order on.
func toldAnotherHistory(t *testing.T, g *group) {
	machines, logs := map[string]*Forkable{}, map[string]coord.Log{}
	sites := []string{"a", "b", "c"}
	for _, site := range sites {
		machines[site] = NewForkable()
		logs[site] = g.c.Open(t, site, machines[site])
	}
	if _, compares := logs["a"].(coord.Comparing); !compares {
		t.Skip("members of this backend do not compare their states")
	}
	compared := func(site string) coord.Comparison { return logs[site].(coord.Comparing).Compared() }
	for _, site := range sites {
		awaitTrue(t, site+" agrees with the others", func() bool { return len(compared(site).Same) == 2 })
	}
	machines["c"].Retell()
	select {
	case <-logs["c"].Failed():
	case <-time.After(Patience):
		t.Fatalf("c goes on: %+v", compared("c"))
	}
	if err := logs["c"].Err(); err == nil || !strings.Contains(err.Error(), "its history has hash") {
		t.Errorf("c stopped for another reason: %v", err)
	}
	for _, site := range []string{"a", "b"} {
		if _, err := logs[site].Sync(g.ctx()); err != nil || logs[site].Err() != nil {
			t.Errorf("%s does not go on: %v, %v", site, err, logs[site].Err())
		}
		if unsure := compared(site).Unsure; unsure != "" {
			t.Errorf("%s is unsure: %s", site, unsure)
		}
	}
}

// awaitTrue waits for a condition that other goroutines bring about.
func awaitTrue(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.After(Patience); !cond(); {
		select {
		case <-end:
			t.Fatalf("%s: not so", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
