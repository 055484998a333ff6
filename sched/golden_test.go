package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestPolicies runs the scripts in testdata/policies; `go test -rewrite` writes
// their answers again. Commands:
//
//	task owner=0 at=1 weight=2 r=3 s=4 [e=7]   without e it still runs
//	site id=0 [share=1000] [last=5]
//	standing policy=ORIG_DIRECT mode=partial now=10
//	order policy=ORIG_DIRECT mode=partial now=10
func TestPolicies(t *testing.T) {
	datadriven.Walk(t, "testdata/policies", func(t *testing.T, path string) {
		g := new(golden)
		datadriven.RunTest(t, path, g.run)
	})
}

// golden is the federation one script builds.
type golden struct {
	history []task
	shares  [sites]int64
	last    [sites]uint64
}

func (g *golden) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "task":
		k := task{e: -1}
		d.ScanArgs(t, "owner", &k.owner)
		d.ScanArgs(t, "at", &k.executor)
		d.ScanArgs(t, "weight", &k.weight)
		d.ScanArgs(t, "r", &k.r)
		d.ScanArgs(t, "s", &k.s)
		d.MaybeScanArgs(t, "e", &k.e)
		g.history = append(g.history, k)
		return ""
	case "site":
		var id int
		d.ScanArgs(t, "id", &id)
		d.MaybeScanArgs(t, "share", &g.shares[id])
		d.MaybeScanArgs(t, "last", &g.last[id])
		return ""
	case "standing":
		return g.standing(g.args(t, d))
	case "order":
		return g.order(t, g.args(t, d))
	}
	t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	return ""
}

type query struct {
	policy string
	mode   Mode
	now    int64
}

func (g *golden) args(t *testing.T, d *datadriven.TestData) query {
	var q query
	var mode string
	d.ScanArgs(t, "policy", &q.policy)
	d.ScanArgs(t, "mode", &mode)
	d.ScanArgs(t, "now", &q.now)
	var err error
	if q.mode, err = ParseMode(mode); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	return q
}

func (g *golden) account(site int) *Account {
	a := account(g.history, site)
	a.Share, a.LastStart = g.shares[site], g.last[site]
	return a
}

func (g *golden) standing(q query) string {
	var out strings.Builder
	fmt.Fprintf(&out, "unit %s\n", Unit(q.policy))
	for site := range sites {
		c, u, p := Standing(q.policy, q.mode, g.account(site), q.now)
		fmt.Fprintf(&out, "site %d: %v - %v = %v\n", site, c, u, p)
	}
	return out.String()
}

// order lists the sites from the greatest rank down; ties share a line.
func (g *golden) order(t *testing.T, q query) string {
	p := mustNew(t, q.policy, q.mode)
	var ranks [sites]Rank
	ids := make([]int, sites)
	for i := range ids {
		ids[i], ranks[i] = i, p.Rank(g.account(i), q.now)
	}
	slices.SortStableFunc(ids, func(a, b int) int { return ranks[b].Compare(ranks[a]) })
	var out strings.Builder
	for i, id := range ids {
		switch {
		case i > 0 && ranks[id].Compare(ranks[ids[i-1]]) == 0:
			fmt.Fprintf(&out, " = %d", id)
		case i > 0:
			fmt.Fprintf(&out, "\n%d: %v/%d", id, ranks[id].Num, ranks[id].Den)
		default:
			fmt.Fprintf(&out, "%d: %v/%d", id, ranks[id].Num, ranks[id].Den)
		}
	}
	return out.String() + "\n"
}
