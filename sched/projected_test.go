package sched

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestProjected runs the scripts in testdata/projected; `go test -rewrite` writes
// their answers again. Nothing starts in reality; the virtual queues go on. Commands:
//
//	join sites=2 cores=2
//	release site=0 units=6 length=10 now=0
//	fair policy=ALONE now=0
func TestProjected(t *testing.T) {
	datadriven.Walk(t, "testdata/projected", func(t *testing.T, path string) {
		g := waitingRoom{by: map[string]*Coalitions{}}
		for _, p := range Projected() {
			g.by[p] = NewCoalitions(p, 0, 0, 0)
		}
		datadriven.RunTest(t, path, g.run)
	})
}

// waitingRoom is the federation that one script builds, under each policy.
type waitingRoom struct {
	by    map[string]*Coalitions
	waits []Waits
}

func (g *waitingRoom) run(t *testing.T, d *datadriven.TestData) string {
	var site, cores, units, length, now int64
	switch d.Cmd {
	case "join":
		d.ScanArgs(t, "sites", &site)
		d.ScanArgs(t, "cores", &cores)
		for range site {
			g.waits = append(g.waits, Waits{})
			for _, c := range g.by {
				c.Join(0, 0)
			}
			g.step(0, len(g.waits)-1, Change{Cores: cores})
		}
		return ""
	case "release":
		d.ScanArgs(t, "site", &site)
		d.ScanArgs(t, "units", &units)
		d.ScanArgs(t, "length", &length)
		d.ScanArgs(t, "now", &now)
		g.waits[site].Wait(units, now)
		var c Change
		c.New.Add(units, length, now)
		g.step(now, int(site), c)
		return ""
	case "fair":
		var policy string
		d.ScanArgs(t, "policy", &policy)
		d.ScanArgs(t, "now", &now)
		return g.fair(t, policy, now)
	}
	t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	return ""
}

func (g *waitingRoom) step(now int64, site int, c Change) {
	for _, q := range g.by {
		changes := make([]Change, q.Sites())
		changes[site] = c
		q.Step(now, changes, []int32{int32(site)}, 0)
	}
}

// fair lists what each site has waited, its fair share and its rank.
func (g *waitingRoom) fair(t *testing.T, policy string, now int64) string {
	c, p := g.by[policy], mustNew(t, policy, Partial)
	ahead, queued := c.Total(), int64(0)
	for i := range g.waits {
		ahead, queued = ahead.Sub(g.waits[i].At(now)), queued+g.waits[i].Units
	}
	var out strings.Builder
	fmt.Fprintf(&out, "together %v; %d wait, %v more\n", c.Total(), queued, ahead)
	for i := range g.waits {
		a := Account{Projection: Projection{
			Waits: g.waits[i], Fair: c.Fair(i), Scale: c.Scale(), Ahead: ahead,
			Queued: queued,
		}}
		fmt.Fprintf(&out, "site %d: waited %v, alone %v, fair %v/%d, rank %v\n", i, a.Projection.At(now), c.Own(i), c.Fair(i), c.Scale(), p.Rank(&a, now).Num)
	}
	return out.String()
}
